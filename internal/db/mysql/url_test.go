package mysql

import (
	"strings"
	"testing"

	"stroppy/internal/db/drivertest"
)

func TestErrorsContainNoPartOfThePassword(t *testing.T) {
	drivertest.Passwords(t, "mysql", "h:3306", []string{"/d", "/d?timeout=3s"}, "/?#", func(url string) (drivertest.Account, error) {
		a, err := parseURL(url)
		if err != nil {
			return drivertest.Account{}, err
		}
		if a.hosts[0].DBName != "d" {
			t.Errorf("the database of %s is %q", a.where(), a.hosts[0].DBName)
		}
		return drivertest.Account{Servers: a.where(), User: a.hosts[0].User, Password: a.hosts[0].Passwd}, nil
	})
	// A variable's value may be an expression of variables.
	if a, err := parseURL("mysql://u@h/d?sql_mode=CONCAT(@@sql_mode,',ANSI')"); err != nil || a.where() != "h:3306" || !strings.Contains(a.hosts[0].Params["sql_mode"], "@@") {
		t.Errorf("%+v, %v", a, err)
	}
}

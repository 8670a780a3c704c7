package mysql

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	addresses "stroppy/internal/db/address"
)

// TestNoPieceOfThePassword: whatever two special characters a password has, its
// URL is read right or refused, and neither the error nor the hosts tell of it.
func TestNoPieceOfThePassword(t *testing.T) {
	const special = "/?#@:%,&=;[] +'\"\\"
	for _, first := range special {
		for _, second := range special {
			password := "s3cr3t" + string(first) + "w0rd" + string(second) + "x9y8"
			for _, path := range []string{"/d", "/d?timeout=3s"} {
				a, err := parseURL("mysql://u:" + password + "@h:3306" + path)
				told := ""
				if err != nil {
					told = err.Error()
				} else {
					told = a.where()
					if decoded, err := url.PathUnescape(password); told != "h:3306" || err != nil || a.hosts[0].Passwd != decoded || a.hosts[0].DBName != "d" {
						t.Errorf("%s: %s, %+v", password, told, a.hosts[0])
					}
				}
				for _, piece := range []string{"s3cr3t", "w0rd", "x9y8"} {
					if strings.Contains(told, piece) {
						t.Errorf("%s: %q tells a piece of it", password, told)
					}
				}
				if unescaped := new(addresses.UnescapedError); strings.ContainsAny(password, "/?#") && (!errors.As(err, &unescaped) || !strings.Contains(told, "%2F")) {
					t.Errorf("%s gives %q, which does not say how to write it", password, told)
				}
			}
		}
	}
	// A variable's value may be an expression of variables.
	if a, err := parseURL("mysql://u@h/d?sql_mode=CONCAT(@@sql_mode,',ANSI')"); err != nil || a.where() != "h:3306" || !strings.Contains(a.hosts[0].Params["sql_mode"], "@@") {
		t.Errorf("%+v, %v", a, err)
	}
}

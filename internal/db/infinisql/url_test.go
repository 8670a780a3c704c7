package infinisql

import (
	"strings"
	"testing"

	"stroppy/internal/db/drivertest"
)

func TestURLIsParsedOrRefused(t *testing.T) {
	c, err := parseURL("infinisql://u:p%40@h/d?admin_port=99&procedures=/p&answer_timeout=3s")
	if err != nil || c.sql != "h:15432" || c.admin != "h:99" || c.user != "u" || c.password != "p@" || c.domain != "d" || c.procedures != "/p" || c.answer.String() != "3s" {
		t.Errorf("read as %+v, %v", c, err)
	}
	for text, says := range map[string]string{
		"infini://u:p@h/d":                   "does not begin with infinisql://",
		"infinisql://u:p@h":                  "stands a domain",
		"infinisql://u:p@h/_global":          "stands a domain",
		"infinisql://u:p@h/d/e":              "stands a domain",
		"infinisql://h/d":                    "stand a user",
		"infinisql://u@h/d":                  "stand a user",
		"infinisql://u%00:p@h/d":             "stand a user",
		"infinisql://u:p%00@h/d":             "stand a user",
		"infinisql://u:p@h,i/d":              "2 nodes are named",
		"infinisql://u:p@h/d?admin_port=0":   "from 1 to 65535",
		"infinisql://u:p@h/d?sslmode=verify": "the known ones are",
	} {
		if _, err := parseURL(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestErrorsContainNoPartOfThePassword(t *testing.T) {
	drivertest.Passwords(t, "infinisql://", "h:98", []string{"/d", "/d?answer_timeout=3s"}, "/?#@", func(text string) (drivertest.Account, error) {
		c, err := parseURL(text)
		return drivertest.Account{User: c.user, Password: c.password, Servers: c.sql}, err
	})
}

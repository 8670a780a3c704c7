package voltdb

import (
	"strings"
	"testing"

	"stroppy/internal/db/drivertest"
)

func TestURLIsParsedOrRefused(t *testing.T) {
	c, err := parseURL("voltdb://u:p%40@h1,h2:99?answer_timeout=3s")
	if err != nil || strings.Join(c.nodes, " ") != "h1:21212 h2:99" || c.user != "u" || c.password != "p@" || c.answer.String() != "3s" {
		t.Errorf("read as %+v, %v", c, err)
	}
	for text, says := range map[string]string{
		"volt://h":                     "does not begin with voltdb://",
		"voltdb://h/db":                "the URL ends after the nodes",
		"voltdb://h,h":                 "named twice",
		"voltdb://:p@h":                "stands a user",
		"voltdb://h?answer_timeout=no": "is no time",
		"voltdb://h?timeout=3s":        "the known ones are answer_timeout, connect_timeout",
	} {
		if _, err := parseURL(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestErrorsContainNoPartOfThePassword(t *testing.T) {
	drivertest.Passwords(t, "voltdb://", "h1:98,h2:99", []string{"", "?answer_timeout=3s"}, "/?#@", func(text string) (drivertest.Account, error) {
		c, err := parseURL(text)
		return drivertest.Account{User: c.user, Password: c.password, Servers: strings.Join(c.nodes, ",")}, err
	})
}

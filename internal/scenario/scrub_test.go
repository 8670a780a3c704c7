package scenario

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestScrubberHidesPasswordsInText(t *testing.T) {
	const (
		long  = "postgres://me:hunter2@h/db"
		word  = "postgres://me:server@h/db"
		short = "postgres://me:a@h/db"
	)
	for _, c := range []struct{ raw, text, want string }{
		{long, "cannot connect: password hunter2 was refused", "cannot connect: password xxxxx was refused"},
		{long, "cannot parse postgres://me:hunter2@h/db", "cannot parse postgres://me:xxxxx@h/db"},
		{"postgres://me:p%40ss@h/db", "p@ss or p%40ss", "xxxxx or xxxxx"},
		{"postgres://me:a%2Fb%22c@h/db", `parse "me:a/b\"c@h", or :a%2fb%22c@, or 'a/b"c'`, `parse "me:xxxxx@h", or :xxxxx@, or 'xxxxx'`},
		{"postgres://h/db?password=p+s&sslmode=disable", `no password "p s" and no password=p+s&`, `no password "xxxxx" and no password=xxxxx&`},
		{"postgres://me:pä ss@h/db", "net: p%C3%A4%20ss@h", "net: xxxxx@h"},

		// A word, a letter and a number are in sentences by chance.
		{word, "check the address, and whether a server runs there: a server/host", "check the address, and whether a server runs there: a server/host"},
		{word, `parse "postgres://me:server@h:x": invalid port`, `parse "postgres://me:xxxxx@h:x": invalid port`},
		{word, `invalid port ":server" after host, lookup server@h`, `invalid port ":xxxxx" after host, lookup xxxxx@h`},
		{word, "args beginning with: 'me' 'server', `server`, \"server\", password=server", "args beginning with: 'me' 'xxxxx', `xxxxx`, \"xxxxx\", password=xxxxx"},
		{word, `said {\"password\":\"server\"}`, `said {\"password\":\"xxxxx\"}`},
		{word, "servers=3, name=server: not a secret", "servers=3, name=server: not a secret"},
		{short, "open a database at a:1 as 'a'", "open a database at a:1 as 'xxxxx'"},
		{short, "cannot parse postgres://me:a@h/db or //me:a@h", "cannot parse postgres://me:xxxxx@h/db or //me:xxxxx@h"},
		{"postgres://me:5432@h/db", "open PostgreSQL at h:5432: 5432 times, \"h:5432\", h:5432/db", "open PostgreSQL at h:5432: 5432 times, \"h:5432\", h:5432/db"},
		{"postgres://me:5432@h/db", "//me:5432@h has '5432', password=5432", "//me:xxxxx@h has 'xxxxx', password=xxxxx"},
		{"postgres://me:x@h/db", "a password was xxxxx", "a password was xxxxx"},
		{"postgres://me:correct horse battery staple@h/db", "no correct horse battery staple here", "no xxxxx here"},

		// The shown URL has the word anyway.
		{"postgres://postgres:postgres@h/db", `user "postgres" is not known to postgres://postgres:postgres@`, `user "postgres" is not known to postgres://postgres:xxxxx@`},
		{"postgres://me:ost@host/db", `bad password "ost" for host`, `bad password "xxxxx" for host`},

		// Every part of an unreadable address may be a secret.
		{"host=h password='hunter2'", "near 'hunter2'", "near 'xxxxx'"},
		{"host=h password=in", "cannot read it in time: password=in", "cannot read it in time: password=xxxxx"},
		{"postgres://me:5432/hunter2@h/db", "invalid path /hunter2@h/db", "invalid path /xxxxx@h/db"},
		{"in", "it begins with a scheme in front, not with \"in\"", "it begins with a scheme in front, not with \"" + unreadable + "\""},
		{"memory:hunter2", "nothing may follow, and here follows hunter2", "nothing may follow, and here follows xxxxx"},
		{"", "PGPASSWORD is 0ther", "PGPASSWORD is xxxxx"},
		{"", "or the other", "or the other"},
	} {
		scrub := Scrubber(c.raw, "0ther", "other")
		got := scrub(c.text)
		if got != c.want {
			t.Errorf("Scrubber(%q)(%q) = %q, want %q", c.raw, c.text, got, c.want)
		}
		if again := scrub(got); again != got {
			t.Errorf("Scrubber(%q) makes %q of its own %q", c.raw, again, got)
		}
	}
}

// sentences holds errors of drivers that do not depend on the password.
var sentences = []string{
	"open PostgreSQL at h: connection refused: check the address, and whether a server runs there",
	"no answer in time: the password authentication failed for the user, check the user and the password in the URL",
	"wait for the write lock: database is locked: the write lock was not free within the time",
	"read the Redis URL: the port of the node is no number from 1 to 65535",
	"invalid username-password pair or user is disabled (using password: YES)",
}

// TestScrubberKeepsWordsThatEqualPasswords checks that ordinary words are not masked if the password happens to be
// such a word.
func TestScrubberKeepsWordsThatEqualPasswords(t *testing.T) {
	for _, sentence := range sentences {
		for from := range sentence {
			for to := from + 1; to <= len(sentence) && to-from < longAlone; to++ {
				password := sentence[from:to]
				if distinctive(password) || strings.TrimSpace(password) != password {
					continue // such as "from 1 t", which is no password by chance
				}
				raw := "mysql://u:" + url.PathEscape(password) + "@host.example/d"
				if got := Scrubber(raw)(sentence); got != sentence {
					t.Fatalf("the password %q is seen in %q", password, got)
				}
			}
		}
	}
	for _, word := range strings.Fields(strings.Join(sentences, " ")) {
		if distinctive(word) {
			t.Errorf("%q counts as distinctive", word)
		}
	}
}

// TestScrubberHidesPasswordsInEveryQuoting checks that a password is hidden wherever a library writes the URL, or
// the password as a value.
func TestScrubberHidesPasswordsInEveryQuoting(t *testing.T) {
	for _, password := range []string{
		"a", "7", "in", "the", "db", "server", "me", "5432", "Password", "hunter2", "p@ss", "a b", "ä", "a/b", "a:b", "%41", "q\"q", "it's", "back\\slash",
		"correct horse battery staple", "==", "#1", "x?y", "100%", "tab\there",
	} {
		for _, escaped := range []string{url.PathEscape(password), url.QueryEscape(password)} {
			for _, raw := range []string{"postgres://user:" + escaped + "@host:1/name", "postgres://host:1/name?password=" + escaped + "&sslmode=disable"} {
				scrub := Scrubber(raw)
				for _, text := range []string{
					"cannot parse " + raw + ": no",
					fmt.Sprintf("cannot parse %q: no", raw),
					"user:" + escaped + "@host",
					"lookup " + escaped + "@host",
					fmt.Sprintf("the password is %q", password),
					fmt.Sprintf("said %q", fmt.Sprintf("password %q", password)),
					"of 'user', '" + password + "'",
					"password=" + escaped + ", and so on",
					fmt.Sprintf("map[password:%q]", password),
				} {
					got := scrub(text)
					if without := strings.ReplaceAll(got, hidden, ""); len(without) >= len(text) || !strings.Contains(got, hidden) {
						t.Errorf("Scrubber(%q)(%q) = %q", raw, text, got)
					}
				}
			}
		}
	}
}

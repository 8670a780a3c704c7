package scenario

import (
	"net/url"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	ShowFiles([]string{"sqlite"})
	m.Run()
}

func TestRedactHidesURLPasswords(t *testing.T) {
	for _, c := range []struct{ raw, shown, bare string }{
		{"", "", ""},
		{"sqlite:bank.db", "sqlite:bank.db", "sqlite:bank.db"},
		{"sqlite:/home/me@work/bank #1.db?synchronous=normal", "sqlite:/home/me@work/bank #1.db?synchronous=normal", "sqlite:/home/me@work/bank #1.db?synchronous=normal"},
		{"sqlite:///tmp/bank.db", "sqlite:///tmp/bank.db", "sqlite:///tmp/bank.db"},
		{"memory:?mutant=lost-ack&rate=0.001", "memory:?mutant=lost-ack&rate=0.001", "memory:?mutant=lost-ack&rate=0.001"},
		{"noop:", "noop:", "noop:"},
		{"memory:hunter2", "memory:xxxxx", ""},
		{"memory:me:hunter2@h?mutant=torn", "memory:xxxxx", ""},
		{"noop:hunter2", "noop:xxxxx", ""},
		{"postgres:?password=hunter2&x=1", "postgres:?password=xxxxx&x=1", "postgres:?x=1"},
		{"postgres://me@h/db", "postgres://me@h/db", "postgres://me@h/db"},
		{"postgres://me:hunter2@h/db", "postgres://me:xxxxx@h/db", "postgres://me@h/db"},
		{"postgres://me:@h/db", "postgres://me:xxxxx@h/db", "postgres://me@h/db"},
		{"postgres://me:hunter2@h1:5432,h2:5433/db?sslmode=disable", "postgres://me:xxxxx@h1:5432,h2:5433/db?sslmode=disable", "postgres://me@h1:5432,h2:5433/db?sslmode=disable"},
		{"postgres://me:hun@ter2@h/db", "postgres://me:xxxxx@h/db", "postgres://me@h/db"},
		{"postgres://me:hun/ter2@h/db", "postgres:xxxxx", ""},
		{"postgres://me:5432/hunter2@h/db", "postgres:xxxxx", ""},
		{"postgres://me:hun#ter2@h/db", "postgres:xxxxx", ""},
		{"postgres://me:hun?ter2@h/db", "postgres:xxxxx", ""},
		{"postgres://me:%zzhunter2@h/db", "postgres://me:xxxxx@h/db", "postgres://me@h/db"},
		{"postgres://me:hunter2", "postgres:xxxxx", ""},
		{"postgres://h/db?user=me&password=hunter2&sslmode=disable", "postgres://h/db?user=me&password=xxxxx&sslmode=disable", "postgres://h/db?user=me&sslmode=disable"},
		{"postgres://h/db?PassWord=hunter2", "postgres://h/db?PassWord=xxxxx", "postgres://h/db"},
		{"postgres://h/db?p%61ssword=hunter2", "postgres://h/db?p%61ssword=xxxxx", "postgres://h/db"},
		{"postgres://h/db?sslpassword=hun&ter2", "postgres://h/db?sslpassword=xxxxx&xxxxx", "postgres://h/db"},
		{"postgres://h/db?password=hun#ter2", "postgres://h/db?password=xxxxx", "postgres://h/db"},
		{"postgres://h/db?%zz=hunter2", "postgres:xxxxx", ""},
		{"postgres://h/db?scram_client_key=hunter2&sslkey=/k.pem", "postgres://h/db?scram_client_key=xxxxx&sslkey=/k.pem", "postgres://h/db?sslkey=/k.pem"},
		{"mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:hunter2", "mongodb://h/?authMechanismProperties=xxxxx", "mongodb://h/"},
		{"postgres://[::1]:5432/db", "postgres://[::1]:5432/db", "postgres://[::1]:5432/db"},
		{"postgres://[hunter2]/db", "postgres:xxxxx", ""},
		{"postgres:me:hunter2@h", "postgres:xxxxx", ""},
		{"host=h user=me password=hunter2", "(an address that could not be read)", ""},
		{"me:hunter2@h/db", "me:xxxxx", ""},
		{"postgres://h\n/hunter2", "postgres:xxxxx", ""},
		{"etcd://root:hunter2@h1:2379,h2:2379", "etcd://root:xxxxx@h1:2379,h2:2379", "etcd://root@h1:2379,h2:2379"},
	} {
		if got := Redact(c.raw); got != c.shown {
			t.Errorf("Redact(%q) = %q, want %q", c.raw, got, c.shown)
		}
		if got, _ := WithoutSecrets(c.raw); got != c.bare {
			t.Errorf("WithoutSecrets(%q) = %q, want %q", c.raw, got, c.bare)
		}
	}
}

// FuzzRedact checks that a password is hidden in every place that a URL has for one.
func FuzzRedact(f *testing.F) {
	for _, seed := range []string{"", "p", "a@b", "a/b", "a:b", "a?b", "a#b", "a&b=c", "%41", "%zz", "[::1]", "1/2", "a,b@c", "é\n", "x y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const mark = "S3cr3tMark"
		secret := mark + text + mark
		escaped := url.QueryEscape(secret)
		for _, raw := range []string{
			"postgres://me:" + secret + "@h1:1,h2:2/db?sslmode=disable",
			"postgres://me:" + url.PathEscape(secret) + "@h/db",
			"postgres://h/db?password=" + escaped + "&sslmode=disable",
			"etcd://h1,h2?token=" + escaped,
			"host=h user=me password='" + secret + "'",
		} {
			if shown := Redact(raw); strings.Contains(shown, mark) {
				t.Fatalf("Redact(%q) = %q shows the secret", raw, shown)
			}
			if bare, _ := WithoutSecrets(raw); strings.Contains(bare, mark) {
				t.Fatalf("WithoutSecrets(%q) = %q shows the secret", raw, bare)
			}
		}
		Redact(text)
		bare, removed := WithoutSecrets(text)
		if !removed && Redact(text) != bare {
			t.Fatalf("%q has no secret but is shown as %q and kept as %q", text, Redact(text), bare)
		}
		Scrubber(text)(text)
	})
}

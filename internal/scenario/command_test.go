package scenario

import (
	"strings"
	"testing"
)

func TestRedactScriptHidesPasswords(t *testing.T) {
	for _, c := range []struct{ script, shown string }{
		{"exec 'PGPASSWORD=hunter2 psql postgres://u:hunter3@h/d' 'true' at 3s", "exec 'PGPASSWORD=xxxxx psql postgres://u:xxxxx@h/d' 'true' at 3s"},
		{"exec 'mysql --password=hunter2 --user=me'", "exec 'mysql --password=xxxxx --user=me'"},
		{"exec 'x --api-token  hunter2; y'", "exec 'x --api-token  xxxxx; y'"},
		{"exec 'MyKey=hunter2 x -p hunter2'", "exec 'MyKey=xxxxx x -p xxxxx'"},
		{"exec 'PASS=''hunter 2'' x'", "exec 'PASS=xxxxx x'"},
		{`exec 'DB_PASSWD="hunter\" 2" x'`, "exec 'DB_PASSWD=xxxxx x'"},
		{`exec 'env "SECRET=hunter 2" x'`, `exec 'env "SECRET=xxxxx" x'`},
		{`exec 'sh -c "PGPASSWORD=hunter2 psql"'`, `exec 'sh -c "PGPASSWORD=xxxxx"'`},
		{`exec 'PASS=hun\;ter x'`, "exec 'PASS=xxxxx x'"},
		{"exec 'curl http://h/?token=hunter2&x=1'", "exec 'curl http://h/?token=xxxxx&x=1'"},
		{"exec 'x etcd://a:hunt2@h,http://b:hunt3@h2'", "exec 'x etcd://a:xxxxx@h,http://b:xxxxx@h2'"},
		{"exec 'PIN_KEY=1 x 11'", "exec 'PIN_KEY=xxxxx x 11'"},
		{"exec 'PGPASSWORD=$PW psql \"postgres://u:${PW}@h\"' 'PASS=\"$PW\" x'", ""},
		{"exec 'x --verbose-tokens --other'", ""},
		{"exec 'etcdctl put key value' 'true'", ""},
		{"exec 'curl http://127.0.0.1:2379/health?serializable'", ""},
		{"kill leader every 20s for 5s\npartition n0 from n1", ""},
	} {
		if c.shown == "" {
			c.shown = c.script
		}
		shown, removed := RedactScript(c.script)
		if shown != c.shown || removed != (c.shown != c.script) {
			t.Errorf("%s is shown as %s (removed: %v), want %s", c.script, shown, removed, c.shown)
		}
		if FaultRedacted(c.script) || FaultRedacted(shown) != removed {
			t.Errorf("%s is redacted: %v, and as shown: %v", c.script, FaultRedacted(c.script), FaultRedacted(shown))
		}
		again, _ := RedactScript(shown)
		if again != shown {
			t.Errorf("%s is shown as %s the second time", shown, again)
		}
	}
}

func TestCommandScrubberHidesPasswords(t *testing.T) {
	scrub := CommandScrubber("exec 'PGPASSWORD=''hun\"ter 2'' x postgres://u:p%40ss@h' 'KEY=no x'")
	for text, want := range map[string]string{
		`password "hun\"ter 2" refused`: `password "xxxxx" refused`,
		`it said hun"ter 2`:             `it said xxxxx`,
		"p%40ss or p@ss":                "xxxxx or xxxxx",
		"no KEY=no, nothing":            "no KEY=xxxxx, nothing",
	} {
		if got := scrub(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// TestScenarioKeepsNoCommandSecrets checks that secrets in fault commands are masked in scenario.yaml, and that
// the commands themselves stay unchanged.
func TestScenarioKeepsNoCommandSecrets(t *testing.T) {
	s := all().Default()
	s.Nemesis = "kill leader at 1s\nexec 'TOKEN=hunter2 x' 'true'"
	text := string(s.YAML())
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "TOKEN=xxxxx") || !strings.Contains(text, "# Secrets in commands are not kept") {
		t.Error(text)
	}
	if s.Nemesis != "kill leader at 1s\nexec 'TOKEN=hunter2 x' 'true'" {
		t.Errorf("what is carried out became %s", s.Nemesis)
	}
}

// FuzzRedactScript checks that a password is hidden in every place that a command has for one.
func FuzzRedactScript(f *testing.F) {
	for _, seed := range []string{"", "p", "a@b", "%41", "é", "=", "$x", "://"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		RedactScript(text)
		const mark = "S3cr3tMark"
		if strings.ContainsAny(text, " \t\r\n\f\v'\"\\;|&<>()/") || strings.Contains(text, "://") {
			return // the shell would end the word there, or take it as more than a text
		}
		secret := mark + text + mark
		for _, script := range []string{
			"exec 'PASS=" + secret + " x'", "exec 'x --token " + secret + "'", "exec 'x postgres://u:" + secret + "@h/d -p " + secret + "'",
		} {
			if shown, removed := RedactScript(script); strings.Contains(shown, mark) || !removed {
				t.Fatalf("%s is shown as %s", script, shown)
			}
		}
	})
}

// TestEnvironmentIsScrubbed checks that the output of commands shows no secret of the environment, and that folders and
// other variables stay.
func TestEnvironmentIsScrubbed(t *testing.T) {
	scrub := EnvironmentScrubber([]string{
		"PGPASSWORD=hunter2", "AWS_SECRET_ACCESS_KEY=abc/def+1", "GITHUB_TOKEN=tok'en", "SSH_KEY=k3y1", "PIN_PASS=123", "PWD=/srv/db", "OLDPWD=/home",
		"KEYBOARD=german", "DATABASE_URL=postgres://me:s%40crt@db1/bank", "PATH=/usr/bin",
	})
	const text = "hunter2 abc/def+1 tok'en k3y1 postgres://me:s%40crt@db1/bank s@crt 123 /srv/db /home german /usr/bin"
	const want = "xxxxx xxxxx xxxxx xxxxx postgres://me:xxxxx@db1/bank xxxxx 123 /srv/db /home german /usr/bin"
	if got := scrub(text); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	const probe = `PGPASSWORD='a b' psql --password="c d" 'it''s' e`
	if got, removed := RedactCommand(probe); !removed || strings.Contains(got, "a b") || strings.Contains(got, "c d") || !strings.HasSuffix(got, " psql --password=xxxxx 'it''s' e") {
		t.Errorf("%s is shown as %s", probe, got)
	}
	if got, removed := RedactCommand("test -e 'it''s'"); removed || got != "test -e 'it''s'" {
		t.Errorf("a command without a secret is shown as %s", got)
	}
}

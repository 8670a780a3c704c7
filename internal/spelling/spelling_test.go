package spelling

import (
	"strings"
	"testing"
)

func TestNearSuggestsSimilarNames(t *testing.T) {
	names := []string{"up", "status", "down", "postgres", "fdb", "payroll-share"}
	for word, want := range map[string]string{
		"upp": "up", "stauts": "status", "Status": "status", "dwon": "down", "postgresql": "postgres", "fbd": "", "fdbb": "fdb", "jdbc": "", "pu": "", "dwno": "down", "payroll": "payroll-share", "Post": "postgres", "po": "", "payrolshare": "payroll-share",
		"stop": "", "start": "", "ls": "", "list": "", "foo": "", "http": "", "cassandra": "", "": "", "UP": "up",
		strings.Repeat("up", 100): "",
	} {
		if near, found := Near(word, names); found != (want != "") || found && near != want {
			t.Errorf("%q: %q, %v, want %q", word, near, found, want)
		}
	}
	if _, found := Near("up", nil); found {
		t.Error("a name of none is near")
	}
	meanings := map[string]string{"stop": "down", "upp": "down", "cassandra": "scylla"}
	for word, want := range map[string]string{"stop": "the nearest is down", "Stop": "the nearest is down", "upp": "the nearest is down", "dwn": "the nearest is down", "cassandra": "take another"} {
		if hint := Hint(word, names, meanings, "take another"); hint != want {
			t.Errorf("%s: %s", word, hint)
		}
	}
}

package script

import "testing"

func TestScriptsInAFileHaveFields(t *testing.T) {
	for _, line := range []string{`transfer@8 "BEGIN;\nEND;\n"`, `transfer.sql@1 "SELECT '\"';"`, `a b@0 "x"`} {
		fields := map[string]string{}
		for _, f := range fieldsOf(line) {
			fields[f.Name] = f.Value
		}
		if got, err := fileOf(fields); err != nil || got != line {
			t.Errorf("%s is read as %s (%v) from %q", line, got, err, fields)
		}
	}
	for _, line := range []string{"order.sql@8", `x@y "z"`, `x@1 "open`} {
		if fields := fieldsOf(line); fields != nil {
			t.Errorf("%s has the fields %q", line, fields)
		}
	}
	for _, fields := range []map[string]string{{"name": "a"}, {"sql": "x"}, {"name": "a", "sql": "x", "wieght": "3"}, {"name": "a", "sql": "x", "weight": "often"}} {
		if line, err := fileOf(fields); err == nil {
			t.Errorf("%q is accepted as %s", fields, line)
		}
	}
	if line, err := fileOf(map[string]string{"name": "a", "sql": "x"}); err != nil || line != `a@1 "x"` {
		t.Errorf("%s (%v)", line, err)
	}
}

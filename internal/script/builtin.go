package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	drawKeys = `\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
`
	payAccount = `BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
`
	payOthers = `UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
`
	record = `INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
`
	selectOnly = `\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
`
)

// builtins are pgbench's scripts (pgbench --show-script), for the tables that pgbench -i makes.
var builtins = []File{
	{Name: "tpcb-like", Text: drawKeys + payAccount + payOthers + record, Weight: 1},
	{Name: "simple-update", Text: drawKeys + payAccount + record, Weight: 1},
	{Name: "select-only", Text: selectOnly, Weight: 1},
}

// Builtin returns pgbench's script of a name, or of the beginning of one name only.
func Builtin(name string) (File, error) {
	var found []File
	for _, f := range builtins {
		if f.Name == name {
			return f, nil
		}
		if name != "" && strings.HasPrefix(f.Name, name) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return File{}, fmt.Errorf("no built-in script is called %q: write tpcb-like, simple-update or select-only", name)
	}
	return File{}, fmt.Errorf("%q may be %s or %s: write more letters", name, found[0].Name, found[1].Name)
}

// WeightedFile splits FILE@WEIGHT. The weight is 1 if the argument has none.
func WeightedFile(arg string) (path string, weight int, err error) {
	at := strings.LastIndexByte(arg, '@')
	if at < 0 {
		return arg, 1, nil
	}
	n, err := strconv.ParseUint(arg[at+1:], 10, 31)
	switch {
	case at == 0:
		return "", 0, fmt.Errorf("%q has a weight and no name: write FILE@WEIGHT", arg)
	case err != nil:
		return "", 0, fmt.Errorf("the weight of %q is no number from 0 to %d: write FILE@WEIGHT", arg, math.MaxInt32)
	}
	return arg[:at], int(n), nil
}

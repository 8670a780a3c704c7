package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stroppy/internal/history"
	"stroppy/internal/money"
)

// Digest sums up an end state. Two with the same rows have the same digest, in
// whatever order the rows came.
type Digest struct {
	Accounts    uint64 `json:"accounts"`
	Legs        uint64 `json:"legs"`
	Unexpected  int    `json:"unexpected"`
	AccountHash uint64 `json:"account_hash"`
	LegHash     uint64 `json:"leg_hash"`
}

// DigestOf reads a whole end state.
func DigestOf(end EndState) (Digest, error) {
	d := Digest{Unexpected: len(end.Unexpected())}
	for a, err := range end.Objects() {
		if err != nil {
			return d, err
		}
		d.Accounts++
		d.AccountHash += Mix(Mix(Mix(a.N+1)^uint64(a.Value)) ^ uint64(a.State)<<60 ^ Hash(0, a.Version, int64(a.Writer)))
	}
	for l, err := range end.Rows() {
		if err != nil {
			return d, err
		}
		d.Legs++
		d.LegHash += rowHash(l)
	}
	return d, nil
}

func rowHash(l history.Row) uint64 {
	marks := uint64(l.State)<<2 | uint64(l.Mark)
	return Mix(Mix(Mix(Mix(uint64(l.Transaction)+1)^uint64(l.Number)<<5^marks)^l.Object) ^ Hash(0, l.Version, l.Amount))
}

// Names are how a difference between two end states speaks of them.
type Names struct {
	Object     func(n uint64) string
	One, Other string // who holds the end states
}

// Difference says how the end state of one node differs from another, with the names of
// both; empty where it does not. behind says that the other may yet become as the one is:
// it lacks rows or versions, and has nothing that the one has not. Of objects without
// versions that cannot be seen, and they do not speak against it. The objects and the
// hashes of the rows of the one are in memory.
func Difference(one, other EndState, names Names) (text string, behind bool, err error) {
	d := difference{Names: names}
	if err := d.objects(one, other); err != nil {
		return "", false, err
	}
	if err := d.rows(one, other); err != nil {
		return "", false, err
	}
	return Joined(d.found, d.count), d.count > 0 && !d.ahead, nil
}

// difference is what was found so far.
type difference struct {
	Names
	found []string // the first
	count int
	ahead bool // the other has what the one has not
}

func (d *difference) add(format string, args ...any) {
	if d.count++; d.count <= Shown {
		d.found = append(d.found, fmt.Sprintf(format, args...))
	}
}

func (d *difference) objects(one, other EndState) error {
	held := map[uint64]history.Object{}
	for a, err := range one.Objects() {
		if err != nil {
			return err
		}
		held[a.N] = a
	}
	for a, err := range other.Objects() {
		if err != nil {
			return err
		}
		b, ok := held[a.N]
		switch {
		case !ok:
			d.ahead = true
			d.add("%s is on %s alone", d.Object(a.N), d.Other)
		case a != b:
			d.ahead = d.ahead || a.Version > b.Version || a.Version == b.Version && a.Version > 0
			d.add("%s has %s at version %d on %s and %s at version %d on %s",
				d.Object(a.N), money.Text(a.Value), a.Version, d.Other, money.Text(b.Value), b.Version, d.One)
		}
		delete(held, a.N)
	}
	for _, n := range slices.Sorted(maps.Keys(held)) {
		d.add("%s is missing on %s", d.Object(n), d.Other)
	}
	return nil
}

// rows compares the ledgers.
func (d *difference) rows(one, other EndState) error {
	held := map[uint64]int{}
	for row, err := range one.Rows() {
		if err != nil {
			return err
		}
		held[rowHash(row)]++
	}
	alone, first := 0, history.Row{}
	for row, err := range other.Rows() {
		if err != nil {
			return err
		}
		h := rowHash(row)
		if held[h]--; held[h] < 0 {
			if alone++; alone == 1 {
				first = row
			}
		}
		if held[h] == 0 {
			delete(held, h)
		}
	}
	if alone > 0 {
		d.ahead = true
		d.add("%s of the ledger %s on %s alone, such as of %s", Plural(uint64(alone), "row"), isOrAre(alone), d.Other, first.Transaction)
	}
	missing := 0
	for row, err := range one.Rows() {
		if err != nil {
			return err
		}
		h := rowHash(row)
		if held[h] <= 0 {
			continue
		}
		held[h]--
		if missing++; missing == 1 {
			first = row
		}
	}
	if missing > 0 {
		d.add("%s of the ledger %s missing on %s, such as of %s", Plural(uint64(missing), "row"), isOrAre(missing), d.Other, first.Transaction)
	}
	return nil
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Replica is what one node of a cluster held after the last heal.
type Replica struct {
	Node       string `json:"node"`
	Digest     Digest `json:"digest"`
	Error      string `json:"error,omitempty"`      // why it could not be read
	Difference string `json:"difference,omitempty"` // from what was downloaded from the whole cluster
	// Behind says that it may only be late: it has nothing that the cluster as one has not,
	// and was waited for.
	Behind bool `json:"behind,omitempty"`
}

// Replicas is the check of what each node held.
const Replicas = "replicas"

// WholeName names who holds what was downloaded from the cluster as one: the nodes whose
// own end state is the same.
func WholeName(whole Digest, nodes []Replica) string {
	var names []string
	for _, n := range nodes {
		if n.Error == "" && n.Digest == whole {
			names = append(names, n.Node)
		}
	}
	if len(names) == 0 {
		return "the cluster as one"
	}
	return strings.Join(names, ", ")
}

// SameReplicas compares what every node of a cluster held with the end state that all
// other checks use.
func SameReplicas(whole Digest, nodes []Replica) Result {
	r := Result{Name: Replicas, Required: true, Status: Valid}
	var wrong, unread []string
	for _, n := range nodes {
		switch {
		case n.Error != "":
			unread = append(unread, fmt.Sprintf("%s could not be read: %s.", n.Node, n.Error))
		case n.Digest != whole:
			counts := fmt.Sprintf("%s and %s of another content, where the cluster has %d and %d",
				Plural(n.Digest.Accounts, "object"), Plural(n.Digest.Legs, "row"), whole.Accounts, whole.Legs)
			text := fmt.Sprintf("%s holds another state than %s: %s.", n.Node, WholeName(whole, nodes), cmp.Or(n.Difference, counts))
			if n.Behind {
				unread = append(unread, text+" It may be late, and did not catch up while it was waited for, or it has lost this.")
			} else {
				wrong = append(wrong, text)
			}
		}
	}
	switch {
	case len(nodes) == 0:
		r.Status, r.Detail = Unknown, "Not decided: no node was read."
	case len(wrong) > 0:
		r.Status, r.Detail = Invalid, strings.Join(append(wrong, unread...), "\n")
	case len(unread) > 0:
		r.Status, r.Detail = Unknown, "Not decided: "+strings.Join(unread, "\n")
	default:
		r.Detail = fmt.Sprintf("%s read one by one: the same end state on each.", Plural(len(nodes), "node"))
	}
	return r
}

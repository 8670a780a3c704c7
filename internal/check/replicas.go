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
		marks := uint64(l.State)<<2 | uint64(l.Mark)
		d.LegHash += Mix(Mix(Mix(Mix(uint64(l.Transaction)+1)^uint64(l.Number)<<5^marks)^l.Object) ^ Hash(0, l.Version, l.Amount))
	}
	return d, nil
}

// Difference says how the end state of one node differs from another; empty where it does
// not. It keeps the objects of the first in memory.
func Difference(one, other EndState, name func(n uint64) string) (string, error) {
	var found []string
	held := map[uint64]history.Object{}
	for a, err := range one.Objects() {
		if err != nil {
			return "", err
		}
		held[a.N] = a
	}
	different := 0
	add := func(format string, args ...any) {
		if different++; different <= Shown {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	for a, err := range other.Objects() {
		if err != nil {
			return "", err
		}
		b, ok := held[a.N]
		switch {
		case !ok:
			add("%s is there on this node alone", name(a.N))
		case a != b:
			add("%s has %s at version %d here and %s at version %d there", name(a.N), money.Text(a.Value), a.Version, money.Text(b.Value), b.Version)
		}
		delete(held, a.N)
	}
	for _, n := range slices.Sorted(maps.Keys(held)) {
		add("%s is missing on this node", name(n))
	}
	return Joined(found, different), nil
}

// Replica is what one node of a cluster held after the last heal.
type Replica struct {
	Node       string `json:"node"`
	Digest     Digest `json:"digest"`
	Error      string `json:"error,omitempty"`      // why it could not be read
	Difference string `json:"difference,omitempty"` // from what was downloaded from the whole cluster
}

// Replicas is the check of what each node held.
const Replicas = "replicas"

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
			wrong = append(wrong, fmt.Sprintf("%s holds another state: %s.", n.Node, cmp.Or(n.Difference, counts)))
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

package check

import (
	"maps"
	"slices"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// Digest is a hash of an end state that does not depend on the order of the rows.
type Digest struct {
	Accounts    uint64 `json:"accounts"`
	Legs        uint64 `json:"legs"`
	Unexpected  int    `json:"unexpected"`
	AccountHash uint64 `json:"account_hash"`
	LegHash     uint64 `json:"leg_hash"`
}

// DigestOf returns the digest of an end state.
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

// Differences describes how the end state of one node differs from the end state of the cluster.
type Differences struct {
	First []fact.ReplicaDifference // at most Shown
	Count int
	// Behind reports whether the node may only lag: it lacks rows or versions, and holds nothing that the
	// cluster lacks. Objects without versions have no influence.
	Behind bool
}

// Compare returns the differences between a node and the cluster. The function object returns the name of an
// object. Compare keeps the objects and the row hashes of the cluster in memory.
func Compare(cluster, node EndState, object func(n uint64) string) (Differences, error) {
	d := comparison{object: object}
	if err := d.objects(cluster, node); err != nil {
		return Differences{}, err
	}
	if err := d.rows(cluster, node); err != nil {
		return Differences{}, err
	}
	d.Behind = d.Count > 0 && !d.ahead
	return d.Differences, nil
}

// comparison holds the differences found so far.
type comparison struct {
	Differences
	object func(n uint64) string
	ahead  bool // the node holds data that the cluster lacks
}

func (d *comparison) add(one fact.ReplicaDifference) {
	if d.Count++; d.Count <= Shown {
		d.First = append(d.First, one)
	}
}

func (d *comparison) objects(cluster, node EndState) error {
	held := map[uint64]history.Object{}
	for a, err := range cluster.Objects() {
		if err != nil {
			return err
		}
		held[a.N] = a
	}
	for a, err := range node.Objects() {
		if err != nil {
			return err
		}
		b, ok := held[a.N]
		switch {
		case !ok:
			d.ahead = true
			d.add(fact.ReplicaDifference{Kind: fact.ObjectAlone, Object: fact.Object(d.object(a.N))})
		case a != b:
			d.ahead = d.ahead || a.Version > b.Version || a.Version == b.Version && a.Version > 0
			d.add(fact.ReplicaDifference{
				Kind: fact.ObjectDiffers, Object: fact.Object(d.object(a.N)), Node: replicaObject(&a), Cluster: replicaObject(&b),
			})
		}
		delete(held, a.N)
	}
	for _, n := range slices.Sorted(maps.Keys(held)) {
		d.add(fact.ReplicaDifference{Kind: fact.ObjectMissing, Object: fact.Object(d.object(n))})
	}
	return nil
}

func replicaObject(a *history.Object) *fact.ReplicaObject {
	return &fact.ReplicaObject{Value: a.Value, Version: a.Version, Writer: a.Writer, Broken: a.State == history.Broken}
}

// rows compares the ledgers.
func (d *comparison) rows(cluster, node EndState) error {
	held := map[uint64]int{}
	for row, err := range cluster.Rows() {
		if err != nil {
			return err
		}
		held[rowHash(row)]++
	}
	alone := fact.ReplicaDifference{Kind: fact.RowsAlone}
	for row, err := range node.Rows() {
		if err != nil {
			return err
		}
		h := rowHash(row)
		if held[h]--; held[h] < 0 {
			if alone.Rows++; alone.Rows == 1 {
				alone.First = row.Transaction
			}
		}
		if held[h] == 0 {
			delete(held, h)
		}
	}
	if alone.Rows > 0 {
		d.ahead = true
		d.add(alone)
	}
	missing := fact.ReplicaDifference{Kind: fact.RowsMissing}
	for row, err := range cluster.Rows() {
		if err != nil {
			return err
		}
		h := rowHash(row)
		if held[h] <= 0 {
			continue
		}
		held[h]--
		if missing.Rows++; missing.Rows == 1 {
			missing.First = row.Transaction
		}
	}
	if missing.Rows > 0 {
		d.add(missing)
	}
	return nil
}

// Replica is the content of one node of a cluster after the last heal.
type Replica struct {
	Node        string                   `json:"node"`
	Digest      Digest                   `json:"digest"`
	Error       string                   `json:"error,omitempty"`            // why the node could not be read
	Differences []fact.ReplicaDifference `json:"differences,omitempty"`      // the first differences from the cluster
	More        int                      `json:"more_differences,omitempty"` // the number of further differences
	Difference  string                   `json:"difference,omitempty"`       // a sentence, written by earlier versions
	// Behind reports whether the node may only lag: it holds nothing that the cluster lacks, and the run
	// waited for it.
	Behind bool `json:"behind,omitempty"`
}

// Replicas is the name of the check that compares the nodes.
const Replicas = "replicas"

// SameReplicas compares the content of every node with the end state that all other checks use. It returns
// one finding for each node that differs and does not only lag.
func SameReplicas(whole Digest, nodes []Replica) Result {
	r := Result{Name: Replicas, Required: true}
	if len(nodes) == 0 {
		r.Why = fact.Nothing{Noun: "node", Verb: "read"}
		return r
	}
	var same []string
	for i := range nodes {
		if n := &nodes[i]; n.Error == "" && n.Digest == whole {
			same = append(same, n.Node)
		}
	}
	var findings []Finding
	var open fact.ReplicasOpen
	for i := range nodes {
		n := &nodes[i]
		differs := fact.ReplicaDiffers{
			Node: n.Node, Same: same, Differences: n.Differences, More: n.More, Text: n.Difference, Late: n.Behind,
			Objects: n.Digest.Accounts, Rows: n.Digest.Legs, ClusterObjects: whole.Accounts, ClusterRows: whole.Legs,
		}
		switch {
		case n.Error != "":
			open.Unread = append(open.Unread, fact.ReplicaUnread{Node: n.Node, Problem: n.Error})
		case n.Digest == whole:
		case n.Behind:
			open.Late = append(open.Late, differs)
		default:
			f := Finding{Check: Replicas}
			f.Add(differs, "")
			for _, d := range n.Differences {
				if d.Object != "" {
					f.Objects = append(f.Objects, d.Object)
				}
			}
			findings = append(findings, f)
		}
	}
	var undecided fact.Fact
	if len(open.Unread)+len(open.Late) > 0 {
		undecided = open
	}
	r = r.Judge(findings, undecided, fact.ReplicasSame{Nodes: len(nodes)})
	if r.Why == nil {
		r.Why = undecided // for the other nodes
	}
	return r
}

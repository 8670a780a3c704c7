package text

import (
	"cmp"
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

var replicaClauses = []wording{
	{fact.ReplicaUnread{}, "{Node} could not be read: {Problem}"},
	{fact.ReplicasSame{}, "{Nodes node was} read one by one, with the same end state on each"},
}

// replicas returns the clause of a fact about single nodes that needs more than a wording; empty for others.
func (s Speaker) replicas(f fact.Fact) string {
	switch f := f.(type) {
	case fact.ReplicaDiffers:
		return s.replicaDiffers(&f)
	case fact.ReplicasOpen:
		var parts []string
		for i := range f.Unread {
			parts = append(parts, s.Clause(f.Unread[i]))
		}
		for i := range f.Late {
			parts = append(parts, s.Clause(f.Late[i]))
		}
		return strings.Join(parts, "; ")
	}
	return ""
}

func (s Speaker) replicaDiffers(f *fact.ReplicaDiffers) string {
	same := strings.Join(f.Same, ", ")
	var parts []string
	for i := range f.Differences {
		parts = append(parts, s.difference(&f.Differences[i], f.Node, cmp.Or(same, "the cluster")))
	}
	if f.More > 0 {
		parts = append(parts, check.Group(f.More)+" more differences")
	}
	what := cmp.Or(strings.Join(parts, "; "), f.Text)
	if what == "" {
		what = s.fill("it has {Objects object} and {Rows row}, and the cluster has {ClusterObjects ,} and {ClusterRows ,}", *f)
	}
	text := fmt.Sprintf("%s holds another state than %s: %s", f.Node, cmp.Or(same, "the cluster"), what)
	if f.Late {
		text += " (it may be late: it did not catch up while it was waited for, or it has lost this)"
	}
	return text
}

// difference describes one difference between a node and the nodes that agree with the cluster.
func (s Speaker) difference(d *fact.ReplicaDifference, node, same string) string {
	rows := func(where string) string {
		be := "are"
		if d.Rows == 1 {
			be = "is"
		}
		return fmt.Sprintf("%s of the %s %s %s, such as of %v",
			check.Plural(d.Rows, "row"), cmp.Or(s.Words.Book, "ledger"), be, where, d.First)
	}
	switch d.Kind {
	case fact.ObjectMissing:
		return fmt.Sprintf("%s is missing on %s", s.On(d.Object), node)
	case fact.ObjectAlone:
		return fmt.Sprintf("%s is on %s alone", s.On(d.Object), node)
	case fact.ObjectDiffers:
		return fmt.Sprintf("%s has %s on %s and %s on %s",
			s.On(d.Object), s.replicaObject(d.Node, d.Cluster), node, s.replicaObject(d.Cluster, d.Node), same)
	case fact.RowsMissing:
		return rows("missing on " + node)
	case fact.RowsAlone:
		return rows("on " + node + " alone")
	}
	return d.Kind
}

// replicaObject describes a node's copy of an object, as far as it differs from another copy.
func (s Speaker) replicaObject(o, other *fact.ReplicaObject) string {
	var parts []string
	version := fmt.Sprintf("version %d", o.Version)
	switch versions := o.Version > 0 || other.Version > 0; {
	case o.Value != other.Value && versions:
		parts = append(parts, s.Amount(o.Value)+" at "+version)
	case o.Value != other.Value:
		parts = append(parts, s.Amount(o.Value))
	case versions:
		parts = append(parts, version)
	}
	if o.Writer != other.Writer {
		writer := "the load"
		if o.Writer != 0 {
			writer = o.Writer.String()
		}
		parts = append(parts, "the value of "+writer)
	}
	if o.Broken != other.Broken || len(parts) == 0 {
		state := "a whole value"
		if o.Broken {
			state = "a damaged value"
		}
		parts = append(parts, state)
	}
	return strings.Join(parts, ", ")
}

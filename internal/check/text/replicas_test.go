package text

import (
	"strconv"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

func TestReplicaClauses(t *testing.T) {
	one, other := history.NewID(1, 2, 5), history.NewID(1, 3, 9)
	all := []fact.ReplicaDifference{
		{Kind: fact.ObjectMissing, Object: "A"},
		{Kind: fact.ObjectAlone, Object: "B"},
		{Kind: fact.ObjectDiffers, Object: "C", Node: &fact.ReplicaObject{Value: 93, Version: 3}, Cluster: &fact.ReplicaObject{Value: 100, Version: 3}},
		{Kind: fact.ObjectDiffers, Object: "D", Node: &fact.ReplicaObject{Value: 64, Writer: one}, Cluster: &fact.ReplicaObject{Value: 64}},
		{Kind: fact.ObjectDiffers, Object: "E", Node: &fact.ReplicaObject{Broken: true}, Cluster: &fact.ReplicaObject{}},
		{Kind: fact.RowsMissing, Rows: 1, First: one},
		{Kind: fact.RowsAlone, Rows: 1200, First: other},
	}
	late := fact.ReplicaDiffers{Node: "n1", Objects: 7, Rows: 1, ClusterObjects: 7, ClusterRows: 2, Late: true}
	wantClauses(t, Speaker{check.Words{One: "transfer", Before: "account ", Amount: func(n int64) string { return strconv.FormatInt(n, 10) + " cents" }}}, []clause{
		{fact.ReplicaDiffers{Node: "n1", Same: []string{"n0", "n2"}, Differences: all[:2], More: 5},
			"n1 holds another state than n0, n2: account A is missing on n1; account B is on n1 alone; 5 more differences"},
		{fact.ReplicaDiffers{Node: "n1", Same: []string{"n0"}, Differences: all[2:5]},
			"n1 holds another state than n0: account C has 93 cents at version 3 on n1 and 100 cents at version 3 on n0; account D has the value of 1-2-5 on n1 and the value of the load on n0; account E has a damaged value on n1 and a whole value on n0"},
		{fact.ReplicaDiffers{Node: "n1", Differences: all[5:]},
			"n1 holds another state than the cluster: 1 row of the ledger is missing on n1, such as of 1-2-5; 1,200 rows of the ledger are on n1 alone, such as of 1-3-9"},
		{fact.ReplicaDiffers{Node: "n1", Same: []string{"n0"}, Text: "account three has another balance"},
			"n1 holds another state than n0: account three has another balance"},
		{late,
			"n1 holds another state than the cluster: it has 7 objects and 1 row, and the cluster has 7 and 2 (it may be late: it did not catch up while it was waited for, or it has lost this)"},
		{fact.ReplicaUnread{Node: "n1", Problem: "connection refused"},
			"n1 could not be read: connection refused"},
		{fact.ReplicasOpen{Unread: []fact.ReplicaUnread{{Node: "n2", Problem: "connection refused"}}, Late: []fact.ReplicaDiffers{late}},
			"n2 could not be read: connection refused; n1 holds another state than the cluster: it has 7 objects and 1 row, and the cluster has 7 and 2 (it may be late: it did not catch up while it was waited for, or it has lost this)"},
		{fact.ReplicasSame{Nodes: 3},
			"3 nodes were read one by one, with the same end state on each"},
	})
}

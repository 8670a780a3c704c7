package fact

import "stroppy/internal/history"

// These constants name the differences between a node and the end state of the whole cluster.
const (
	ObjectMissing = "object-missing" // the node lacks an object
	ObjectAlone   = "object-alone"   // only the node has an object
	ObjectDiffers = "object-differs"
	RowsMissing   = "rows-missing" // the node lacks rows
	RowsAlone     = "rows-alone"   // only the node has rows
)

// ReplicaDifference is one difference between a node and the cluster.
type ReplicaDifference struct {
	Kind    string         `json:"kind"`
	Object  Object         `json:"object,omitempty"`
	Node    *ReplicaObject `json:"node,omitempty"` // the object on the node, if it differs
	Cluster *ReplicaObject `json:"cluster,omitempty"`
	Rows    int            `json:"rows,omitempty"`
	First   history.ID     `json:"first,omitempty"` // the transaction of the first of the rows
}

// ReplicaObject describes one copy of an object.
type ReplicaObject struct {
	Value   int64      `json:"value"`
	Version uint64     `json:"version"`
	Writer  history.ID `json:"writer"`
	Broken  bool       `json:"broken,omitempty"` // the value is not one that was written
}

// ReplicaDiffers states that a node's content differs from the end state of the whole cluster.
type ReplicaDiffers struct {
	Node        string              `json:"node"`
	Same        []string            `json:"same,omitempty"` // the nodes with the content of the end state
	Differences []ReplicaDifference `json:"differences,omitempty"`
	More        int                 `json:"more,omitempty"` // number of further differences
	Text        string              `json:"text,omitempty"` // the differences as text, from an earlier version
	Late        bool                `json:"late,omitempty"` // the node may still catch up

	Objects        uint64 `json:"objects"` // number of objects on the node
	Rows           uint64 `json:"rows"`
	ClusterObjects uint64 `json:"cluster_objects"`
	ClusterRows    uint64 `json:"cluster_rows"`
}

// ReplicaUnread states that a node could not be read.
type ReplicaUnread struct {
	Node    string `json:"node"`
	Problem string `json:"problem"`
}

// ReplicasOpen names the nodes that could not be read, and the nodes that may only lag.
type ReplicasOpen struct {
	Unread []ReplicaUnread  `json:"unread,omitempty"`
	Late   []ReplicaDiffers `json:"late,omitempty"`
}

// ReplicasSame counts the nodes. All have the same content.
type ReplicasSame struct {
	Nodes int `json:"nodes"`
}

func (ReplicaDiffers) Fact() string { return "replica-differs" }
func (ReplicaUnread) Fact() string  { return "replica-unread" }
func (ReplicasOpen) Fact() string   { return "replicas-open" }
func (ReplicasSame) Fact() string   { return "replicas-same" }

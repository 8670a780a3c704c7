package fact

import "stroppy/internal/history"

// The kinds of differences between what one node holds and what was downloaded from the whole cluster.
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
	Node    *ReplicaObject `json:"node,omitempty"` // of an object that differs: as the node has it
	Cluster *ReplicaObject `json:"cluster,omitempty"`
	Rows    int            `json:"rows,omitempty"`
	First   history.ID     `json:"first,omitempty"` // the transaction of the first of the rows
}

// ReplicaObject is what there is of an object.
type ReplicaObject struct {
	Value   int64      `json:"value"`
	Version uint64     `json:"version"`
	Writer  history.ID `json:"writer"`
	Broken  bool       `json:"broken,omitempty"` // the value is not as anybody wrote it
}

// ReplicaDiffers states that a node holds another state than was downloaded from the whole cluster.
type ReplicaDiffers struct {
	Node        string              `json:"node"`
	Same        []string            `json:"same,omitempty"` // the nodes that hold what was downloaded
	Differences []ReplicaDifference `json:"differences,omitempty"`
	More        int                 `json:"more,omitempty"` // differences beyond these
	Text        string              `json:"text,omitempty"` // the differences as an earlier version recorded them
	Late        bool                `json:"late,omitempty"` // the node may yet become as the cluster is

	Objects        uint64 `json:"objects"` // of the node
	Rows           uint64 `json:"rows"`
	ClusterObjects uint64 `json:"cluster_objects"`
	ClusterRows    uint64 `json:"cluster_rows"`
}

// ReplicaUnread states that a node could not be read.
type ReplicaUnread struct {
	Node    string `json:"node"`
	Problem string `json:"problem"`
}

// ReplicasOpen states which nodes could not be read, and which ones may only be late.
type ReplicasOpen struct {
	Unread []ReplicaUnread  `json:"unread,omitempty"`
	Late   []ReplicaDiffers `json:"late,omitempty"`
}

// ReplicasSame counts the nodes, all of which hold the same.
type ReplicasSame struct {
	Nodes int `json:"nodes"`
}

func (ReplicaDiffers) Fact() string { return "replica-differs" }
func (ReplicaUnread) Fact() string  { return "replica-unread" }
func (ReplicasOpen) Fact() string   { return "replicas-open" }
func (ReplicasSame) Fact() string   { return "replicas-same" }

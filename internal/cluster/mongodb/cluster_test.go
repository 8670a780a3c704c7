package mongodb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/wait"
)

// teller inserts documents through the present primary.
type teller struct{ *mongo.Client }

const paid = "paid"

func (t teller) Pay(ctx context.Context, id string) error {
	_, err := t.Database(paid).Collection(paid).InsertOne(ctx, bson.D{{Key: "_id", Value: id}})
	return err
}

func (t teller) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = t.Disconnect(ctx) // the node may be paused
}

func kind() clustertest.Kind {
	return clustertest.Kind{
		Engine:     "mongodb",
		Launch:     Start,
		LeaderOnly: true,
		Teller: func(_ context.Context, c cluster.Local, _, _ int) (clustertest.Teller, error) {
			o := options.Client().ApplyURI(c.URL() + "&w=majority&retryWrites=false&heartbeatFrequencyMS=500&connectTimeoutMS=500")
			client, err := mongo.Connect(o.SetServerSelectionTimeout(2 * time.Second))
			return teller{client}, err
		},
		Holds: func(ctx context.Context, c cluster.Local, number int) (map[string]string, error) {
			n, err := c.(*ReplicaSet).Node(number)
			if err != nil {
				return nil, err
			}
			return n.payments(ctx)
		},
	}
}

// TestClusterKeepsPaymentsUnderAllFaults checks that a cluster keeps all acknowledged payments through each kind
// of fault. On a busy machine an election time-out of one second causes elections without a failure.
func TestClusterKeepsPaymentsUnderAllFaults(t *testing.T) {
	k := kind()
	k.Params = url.Values{"election_timeout": {"2s"}}
	c := k.Start(t, cluster.Options{Nodes: 3}).(*ReplicaSet)
	nodes := c.List()
	if !strings.HasSuffix(c.URL(), ","+nodes[2].address.String()+"/?replicaSet=stroppy") || strings.Contains(c.NodeURL(2), ",") {
		t.Errorf("the URLs are %s and %s", c.URL(), c.NodeURL(2))
	}
	kind().Hurt(t, c)
	t.Run("majority", func(t *testing.T) { testMajority(t, c) })
	t.Run("resize", func(t *testing.T) { k.Resize(t, c) })
}

// testMajority checks that data which may be the only copy are not removed. It also checks that a node whose
// replacement failed after the loss of its data gets its vote later.
func testMajority(t *testing.T, c *ReplicaSet) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	_, others := clustertest.Leader(t, c)
	n, other := others[0].(*node), others[1].(*node)
	p := kind().Pay(t, c)
	clustertest.Must(t, other.Kill(ctx))
	short, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := n.Replace(short); err == nil || !n.Running() {
		t.Errorf("a node of two that run was replaced: %v", err)
	}
	clustertest.Must(t, other.Restart(ctx))

	clustertest.Must(t, n.vote(ctx, 0))
	primary, err := c.sets[0].primary(ctx)
	clustertest.Must(t, err)
	if err := allVote(ctx, c.sets[0].asked(), primary.server()); err == nil || !strings.Contains(err.Error(), n.Name()+" has no vote") {
		t.Errorf("with a node without a vote: %v", err)
	}
	clustertest.Must(t, n.Kill(ctx))
	clustertest.Must(t, n.Restart(ctx))
	p.EndWell("refuse to replace, give a vote back")
}

func TestSingleNodeUsesSettingsAndRestarts(t *testing.T) {
	k := kind()
	k.Params = url.Values{"election_timeout": {"500ms"}, "set.transactionLifetimeLimitSeconds": {"30"}}
	k.One(t, func(t *testing.T, c cluster.Local) {
		n := c.Nodes()[0].(*node)
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", n.PIDs()[0])); err != nil || !strings.Contains(string(line), "transactionLifetimeLimitSeconds=30") {
			t.Errorf("the server runs as %q, %v", line, err)
		}
		if config, err := n.server().config(t.Context()); err != nil || fmt.Sprint(config.Settings["electionTimeoutMillis"]) != "500" {
			t.Errorf("the set has the settings %v, %v", config.Settings, err)
		}
	})
}

func TestParamsRejectInvalidValues(t *testing.T) {
	three := func(values url.Values) (params, error) { return parseParams(values, 3) }
	clustertest.Params(t, three, map[string]string{
		"":                       "",
		"election_timeout=10s":   "",
		"election_timeout=1":     "from 200ms",
		"election_timeout=100ms": "from 200ms",
		"cache=0.5&w=1&readConcernLevel=local&readPreference=secondary&timeout=2s": "",
		"shards=0":                      "from 1 to 4",
		"shards=2":                      "",
		"cache=0.1":                     "from 0.25",
		"w=majority":                    "",
		"w=4":                           "from 1 to 3",
		"w=0":                           "from 1 to 3",
		"readConcernLevel=linearizable": "one of snapshot",
		"readPreference=nearest":        "one of primary",
		"timeout=no":                    "must be a time",
		"set.enableTestCommands=1":      "",
		"set.Bad Name=1":                "not the name of a parameter",
		"electiontimeout=1s":            "the nearest is election_timeout",
		"election_timeout=1s&election_timeout=2s": "give it once",
	})
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	kind().Refuses(t, []string{""},
		clustertest.Refusal{Query: "sync=off", Says: "parameter sync: "},
		clustertest.Refusal{Query: "set.noSuchParameter=1", Says: "noSuchParameter"})
}

// TestAmbiguousPrimaryIsUnknown checks that a node that regards two nodes as primary, or none, names none.
func TestAmbiguousPrimaryIsUnknown(t *testing.T) {
	for states, want := range map[string]string{"12": "0", "22": "", "11": "", "218": "1"} {
		var s status
		for i, state := range states {
			s.Members = append(s.Members, member{Name: fmt.Sprint(i), State: int(state - '0')})
		}
		if got := s.primary(); got != want {
			t.Errorf("of members in the states %s %q is primary, want %q", states, got, want)
		}
	}
	if (opTime{Term: 2}).before(opTime{Term: 1}) || !(opTime{Time: bson.Timestamp{T: 1}}).before(opTime{Time: bson.Timestamp{T: 1, I: 1}}) {
		t.Error("places in the log are in the wrong order")
	}
}

// TestStopEndsWaitForPrimary checks that a cluster can be stopped while a caller waits for a primary that never
// comes.
func TestStopEndsWaitForPrimary(t *testing.T) {
	c := kind().Start(t, cluster.Options{Nodes: 3, Loopback: true}).(*ReplicaSet)
	nodes, dir := c.List(), c.Dir
	for _, n := range nodes {
		clustertest.Must(t, n.Kill(t.Context()))
	}
	nodes[0].mute.Store(true) // its start waits for a primary
	waiting := make(chan error)
	go func() { waiting <- nodes[0].Restart(t.Context()) }()
	clustertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error {
		if !nodes[0].Running() {
			return errors.New("the node was not started")
		}
		return nil
	}))
	clustertest.Must(t, c.Stop())
	if err := <-waiting; !errors.Is(err, cluster.ErrStopped) {
		t.Errorf("a node that was waited for when the cluster was stopped: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is there", dir)
	}
}

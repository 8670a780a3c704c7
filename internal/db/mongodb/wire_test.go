package mongodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	server "stroppy/internal/cluster/mongodb"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// sent holds the commands that a database has sent, in short form, and their servers.
type sent struct {
	mu       sync.Mutex
	commands []string
	servers  []string
}

// take returns the commands since the last call.
func (s *sent) take() (commands, servers []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	commands, servers = s.commands, s.servers
	s.commands, s.servers = nil, nil
	return commands, servers
}

// listen opens a database whose commands are recorded.
func listen(t *testing.T, url string) (*Database, *sent) {
	t.Helper()
	c, err := parseURL(url)
	drivertest.Must(t, err)
	o, err := c.options(true)
	drivertest.Must(t, err)
	s := new(sent)
	o.SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		host, _, _ := strings.Cut(e.ConnectionID, "[")
		s.commands, s.servers = append(s.commands, brief(e.CommandName, e.Command)), append(s.servers, host)
	}})
	d, err := connect(t.Context(), c, o)
	drivertest.Must(t, err)
	drivertest.Close(t, d)
	s.take()
	return d, s
}

// brief returns the parts of a command about transactions, concerns and servers.
func brief(name string, command bson.Raw) string {
	if start, _ := command.Lookup("startTransaction").BooleanOK(); start {
		name += " start"
	} else if auto, known := command.Lookup("autocommit").BooleanOK(); known && !auto {
		name += " within"
	}
	if level := textAt(command, "readConcern", "level"); level != "" {
		name += " at " + level
	}
	if _, after := lookUp(command, "readConcern", "afterClusterTime"); after {
		name += " after"
	}
	if w, there := lookUp(command, "writeConcern", "w"); there {
		name += " w=" + strings.Trim(w.String(), `"`)
	}
	if mode := textAt(command, "$readPreference", "mode"); mode != "" && !strings.HasPrefix(mode, "primary") {
		name += " from " + mode
	}
	return name
}

// TestRequestsCarryConcernsOfTheURL checks that requests have the read and write concerns of the URL and the
// isolation. A session must ask for data at least as new as it has seen.
func TestRequestsCarryConcernsOfTheURL(t *testing.T) {
	for _, tc := range []struct{ params, isolation, begin, commit string }{
		{"", "", "find start at snapshot after", "commitTransaction within w=majority"},
		{"w=majority", snapshot, "find start at snapshot after", "commitTransaction within w=majority"},
		{"w=1", "", "find start at snapshot after", `commitTransaction within w={"$numberInt":"1"}`},
		{"readConcernLevel=local", "", "find start at local after", "commitTransaction within w=majority"},
		{"readConcernLevel=LOCAL", snapshot, "find start at snapshot after", "commitTransaction within w=majority"},
		{"readConcernLevel=majority&w=1", "", "find start at majority after", `commitTransaction within w={"$numberInt":"1"}`},
		{"", majority, "find start at majority after", "commitTransaction within w=majority"},
		{"", local, "find start at local after", "commitTransaction within w=majority"},
	} {
		url := freshURL(t, tc.params)
		open(t, url)
		d, s := listen(t, url)
		session := session1(t, d, tc.isolation)
		find(t, session, "a") // it has no server time yet
		s.take()
		find(t, session, "a")
		got, _ := s.take()
		want(t, tc.params+" "+tc.isolation, strings.Join(got, ", "), tc.begin+", "+tc.commit)
	}
}

// TestReadOnlyTransactionsUseASecondary checks that readPreference=secondary sends read-only transactions to a
// secondary. The secondary may lag behind other writers, but not behind the session's own observations.
func TestReadOnlyTransactionsUseASecondary(t *testing.T) {
	o := cluster.Options{Nodes: 3, Loopback: true, InMemory: true, Params: map[string][]string{"set.enableTestCommands": {"1"}}}
	c, err := server.Start(clustertest.Within(t, clustertest.WaitLimit), o)
	clustertest.Need(t, "mongodb", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	open(t, at(t, c.URL(), "secondary"))
	d, s := listen(t, at(t, c.URL(), "secondary", "timeout=2s", "w=1", "readPreference=secondary"))
	ctx, writer, other := t.Context(), session1(t, d, ""), session1(t, d, "")
	leader, others := clustertest.Leader(t, c)
	for _, n := range others { // both have the earlier writes
		only := session1(t, drivertest.Open(t, Open, at(t, urlOf(n), "secondary", "readPreference=secondary")), "")
		drivertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error {
			if there := find(t, only, "a"); there != "a 1000 0 null" {
				return errors.New(there)
			}
			return nil
		}))
	}

	applying := func(mode string) {
		t.Helper()
		for _, n := range others {
			failPoint(t, n, "rsSyncApplyStop", mode)
		}
	}
	applying("alwaysOn") // stops it
	pay := func() error {
		_, err := writer.Update(ctx, move, ids("a"), []db.Value{num(1), num(1)})
		return err
	}
	drivertest.Must(t, transact(ctx, writer, pay))
	s.take()
	want(t, "another session, of a secondary that is behind", find(t, other, "a"), "a 1000 0 null")
	got, from := s.take()
	want(t, "of another session", strings.Join(got, ", "), "find at local from secondary")
	primary := hostOf(leader)
	if len(from) != 1 || from[0] == primary {
		t.Errorf("the secondaries' answers are of %v, and the primary is %s", from, primary)
	}
	scan := func() (got string) {
		drivertest.Must(t, other.Scan(ctx, accounts, db.Value{Null: true}, 1, func(values []db.Value) error {
			got = show(db.Record{Found: true, Values: values})
			return nil
		}))
		return got
	}
	drivertest.Must(t, other.Begin(ctx, true))
	want(t, "a scan in a transaction that only reads", scan(), "a 1000 0 null")
	drivertest.Must(t, other.Commit(ctx))
	want(t, "a scan without a transaction, of the primary", scan(), "a 1001 1 null")
	s.take()
	var out [1]db.Record
	drivertest.Must(t, writer.Begin(ctx, true))
	err = writer.Find(ctx, accounts, ids("a"), out[:])
	if class := db.ClassOf(err); err == nil || class != db.Aborted && class != db.Unavailable {
		t.Errorf("the writer's own session: %s, %v (%v), want that it waits in vain for the secondary", show(out[0]), err, class)
	}
	got, _ = s.take()
	want(t, "of the writer's own session", strings.Join(got, ", "), "find at local after from secondary")
	applying("off")
	drivertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error { return writer.Reset(ctx) }))
	want(t, "the writer's own session, once the secondary goes on", find(t, writer, "a"), "a 1001 1 null")
	if info, err := d.Info(ctx); err != nil || !strings.Contains(fmt.Sprint(info.Settings), "{write concern 1}") || !strings.Contains(fmt.Sprint(info.Settings), "{read preference secondary") {
		t.Errorf("the report says %+v, %v", info.Settings, err)
	}
}

func urlOf(n cluster.LocalNode) string { return n.(interface{ URL() string }).URL() }

func hostOf(n cluster.LocalNode) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(urlOf(n), "mongodb://"), "/")
	return host
}

// failPoint sets a fail point of one node.
func failPoint(t *testing.T, n cluster.LocalNode, name, mode string) {
	t.Helper()
	client, err := mongo.Connect(options.Client().SetHosts([]string{hostOf(n)}).SetDirect(true).SetReadPreference(readpref.Nearest()))
	drivertest.Must(t, err)
	defer func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) }()
	drivertest.Must(t, client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: mode}},
		options.RunCmd().SetReadPreference(readpref.Nearest())).Err())
}

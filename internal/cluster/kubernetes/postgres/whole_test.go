package postgres

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/postgres/patroni"
	"stroppy/internal/cluster/wait"
)

// TestDatabaseOwnerSeesLeaderAndFollowers checks that a user who only owns a database sees which server leads,
// whether all others follow, and what is wrong. It uses real servers on this machine.
func TestDatabaseOwnerSeesLeaderAndFollowers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := patroni.Start(ctx, cluster.Options{Nodes: 2, InMemory: true, Params: url.Values{}})
	clustertest.Need(t, "postgres", err)
	t.Cleanup(func() { clustertest.Must(t, c.Stop()) })
	d := &database{user: user, password: "x", name: user, secure: "sslmode=disable"}
	for i := range c.Nodes() {
		u, err := url.Parse(c.NodeURL(i))
		clustertest.Must(t, err)
		d.servers = append(d.servers, u.Host)
	}
	leader, err := c.Leader(ctx)
	clustertest.Must(t, err)
	conn, err := pgx.Connect(ctx, c.NodeURL(leader))
	clustertest.Must(t, err)
	for _, statement := range []string{"CREATE ROLE " + user + " LOGIN", "CREATE DATABASE " + user + " OWNER " + user} {
		_, err := conn.Exec(ctx, statement)
		clustertest.Must(t, err)
	}
	clustertest.Must(t, conn.Close(ctx))

	clustertest.Must(t, wait.Retry(ctx, func() error { return d.Whole(ctx) }))
	if found, err := d.Leader(ctx); err != nil || found != leader {
		t.Errorf("n%d leads, and n%d is found, %v", leader, found, err)
	}
	other := cluster.LocalNodes(c)[1-leader]
	clustertest.Must(t, other.Pause(ctx))
	if err := d.Whole(ctx); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("while a standby is paused: %v", err)
	}
	clustertest.Must(t, other.Resume(ctx))
	clustertest.Must(t, wait.Retry(ctx, func() error { return d.Whole(ctx) }))

	// A standby that answers but has not replayed the log up to a position. No log is that long.
	if err := d.follows(ctx, 1-leader, 1<<60); err == nil || !strings.Contains(err.Error(), "bytes of the log to replay") {
		t.Errorf("a standby that does not follow: %v", err)
	}
}

package postgres

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/postgres/patroni"
)

// TestWhole holds on real servers, of this machine, that one who owns a database and may do
// nothing else sees whether all follow, who leads, and what is wrong.
func TestWhole(t *testing.T) {
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

	clustertest.Must(t, cluster.Retry(ctx, func() error { return d.Whole(ctx) }))
	if found, err := d.Leader(ctx); err != nil || found != leader {
		t.Errorf("n%d leads, and n%d is found, %v", leader, found, err)
	}
	other := cluster.LocalNodes(c)[1-leader]
	clustertest.Must(t, other.Pause(ctx))
	if err := d.Whole(ctx); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("while a standby is paused: %v", err)
	}
	clustertest.Must(t, other.Resume(ctx))
	clustertest.Must(t, cluster.Retry(ctx, func() error { return d.Whole(ctx) }))

	// A standby that answers and does not follow.
	conn, err = pgx.Connect(ctx, c.NodeURL(1-leader))
	clustertest.Must(t, err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "SELECT pg_wal_replay_pause()")
	clustertest.Must(t, err)
	primary, err := pgx.Connect(ctx, c.NodeURL(leader))
	clustertest.Must(t, err)
	defer primary.Close(ctx)
	_, err = primary.Exec(ctx, "CREATE TABLE written ()")
	clustertest.Must(t, err)
	clustertest.Must(t, cluster.Retry(ctx, func() error {
		if err := d.Whole(ctx); err == nil || !strings.Contains(err.Error(), "bytes of the log to replay") {
			return fmt.Errorf("while a standby does not replay: %v", err)
		}
		return nil
	}))
	_, err = conn.Exec(ctx, "SELECT pg_wal_replay_resume()")
	clustertest.Must(t, err)
	clustertest.Must(t, cluster.Retry(ctx, func() error { return d.Whole(ctx) }))
}

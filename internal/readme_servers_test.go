package internal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	postgres "stroppy/internal/cluster/postgres/server"
)

// servers are the real ones that the commands run on, each started when it is
// first named.
type servers struct {
	t        *testing.T
	postgres *sharedPostgres
	database string // of PostgreSQL
	etcd     *etcd.Cluster
	started  map[string]error // by name, what starting it came to
	remote   string           // the URL of a PostgreSQL that runs already, with parameters; empty: one is started
}

// sharedPostgres is a server in which each document has a database of its own. It ends with the
// test t.
type sharedPostgres struct {
	t         *testing.T
	mu        sync.Mutex // of what follows
	tried     bool
	server    *postgres.Server
	err       error // why there is none
	databases int
}

// address returns the address of a real server in place of the one that a
// document names; missing says why there is none.
func (s *servers) address(t *testing.T, document string) (address, missing string) {
	t.Helper()
	scheme, rest, _ := strings.Cut(document, "://")
	place, query, asked := strings.Cut(rest, "?")
	if s.remote != "" && strings.HasPrefix(scheme, "postgres") {
		if asked {
			query = "&" + query
		}
		return s.remote + query, ""
	}
	kind, start := "postgres", s.startPostgres
	if scheme == "etcd" {
		kind, start = scheme, s.startEtcd
	}
	err, known := s.started[kind]
	if !known {
		err = start(s.t.Context())
		s.started[kind] = err
	}
	if lacks := (host.MissingError{}); errors.As(err, &lacks) {
		return "", fmt.Sprintf("skipped engine: %s: install the Debian package %s", kind, lacks.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
	mark := "?"
	if kind == "etcd" {
		address = s.etcd.URL()
	} else {
		user := place[:strings.LastIndexByte(place, '@')+1]
		address = fmt.Sprintf("%s://%s127.0.0.1:%d/%s?sslmode=disable", scheme, user, s.postgres.server.Port(), s.database)
		mark = "&"
	}
	if asked {
		address += mark + query
	}
	return address, ""
}

// startPostgres makes a database of the user bank. The server starts with the first one.
func (s *servers) startPostgres(ctx context.Context) (err error) {
	s.database, err = s.postgres.database(ctx)
	return err
}

func (p *sharedPostgres) database(ctx context.Context) (name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.tried {
		p.tried = true
		p.err = p.start(p.t.Context())
	}
	if p.err != nil {
		return "", p.err
	}
	p.databases++
	name = fmt.Sprintf("bank%d", p.databases)
	return name, p.execute(ctx, "CREATE DATABASE "+name+" OWNER bank")
}

// start starts a server that has a user bank. By the default all clients of a brief run may wait
// for most of it, in a ring, until the server looks for one.
func (p *sharedPostgres) start(ctx context.Context) (err error) {
	p.server, err = postgres.Start(ctx, cluster.Alone(map[string]string{"fsync": "off", "deadlock_timeout": "20ms", "max_connections": "500"}))
	if err != nil {
		return err
	}
	p.t.Cleanup(func() {
		if err := p.server.Stop(); err != nil {
			p.t.Error(err)
		}
	})
	return p.execute(ctx, "CREATE ROLE bank LOGIN")
}

func (p *sharedPostgres) execute(ctx context.Context, statement string) error {
	conn, err := pgconn.Connect(ctx, p.server.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // only the statement matters
	_, err = conn.Exec(ctx, statement).ReadAll()
	return err
}

func (s *servers) startEtcd(ctx context.Context) (err error) {
	s.etcd, err = etcd.Start(ctx, cluster.Options{Nodes: 3, InMemory: true, Loopback: true})
	if err != nil {
		return err
	}
	s.t.Cleanup(func() {
		if err := s.etcd.Stop(); err != nil {
			s.t.Error(err)
		}
	})
	return nil
}

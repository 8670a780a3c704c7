package internal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/postgres"
)

// servers are the real ones that the commands run on, each started when it is
// first named.
type servers struct {
	t        *testing.T
	postgres *postgres.Server
	etcd     *etcd.Cluster
	started  map[string]error // by name, what starting it came to
}

// address returns the address of a real server in place of the one that a
// document names; missing says why there is none.
func (s *servers) address(t *testing.T, document string) (address, missing string) {
	t.Helper()
	scheme, rest, _ := strings.Cut(document, "://")
	place, query, asked := strings.Cut(rest, "?")
	kind, start := "postgres", s.startPostgres
	if scheme == "etcd" {
		kind, start = scheme, s.startEtcd
	}
	err, known := s.started[kind]
	if !known {
		err = start(s.t.Context())
		s.started[kind] = err
	}
	if lacks := (cluster.MissingError{}); errors.As(err, &lacks) {
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
		address = fmt.Sprintf("%s://%s127.0.0.1:%d/bank?sslmode=disable", scheme, user, s.postgres.Port())
		mark = "&"
	}
	if asked {
		address += mark + query
	}
	return address, ""
}

// startPostgres starts a server that has a user bank and its database bank. By the default all
// clients of a brief run may wait for most of it, in a ring, until the server looks for one.
func (s *servers) startPostgres(ctx context.Context) (err error) {
	s.postgres, err = postgres.Start(ctx, cluster.Alone(map[string]string{"fsync": "off", "deadlock_timeout": "20ms"}))
	if err != nil {
		return err
	}
	s.t.Cleanup(func() {
		if err := s.postgres.Stop(); err != nil {
			s.t.Error(err)
		}
	})
	conn, err := pgconn.Connect(ctx, s.postgres.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // only the statements matter
	for _, statement := range []string{"CREATE ROLE bank LOGIN", "CREATE DATABASE bank OWNER bank"} {
		if _, err := conn.Exec(ctx, statement).ReadAll(); err != nil {
			return err
		}
	}
	return nil
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

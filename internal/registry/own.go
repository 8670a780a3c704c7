//go:build !embedded

package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/own"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/exit"
	"stroppy/internal/scenario"
)

// ownKinds are the clusters whose servers the user started.
func ownKinds() []ClusterKind {
	return []ClusterKind{{
		strings.TrimSuffix(scenario.OwnServers, ":"), scenario.OwnServers + "FILE  servers that you started: an inventory in YAML has their URLs and the commands for the faults", 0, 0,
		func(ctx context.Context, o cluster.Options) (cluster.Cluster, error) {
			file := o.Params.Get(paramInventory)
			c, err := own.Start(ctx, file, o, access())
			switch {
			case errors.As(err, new(*own.InputError)):
				return nil, exit.With(exit.Usage, err)
			case err != nil:
				return nil, fmt.Errorf("reach the servers of %s: %w", file, err)
			}
			return c, nil
		},
	}}
}

// Serving returns the servers of a URL as a cluster that this program did not start. With dryRun it connects to nothing.
func Serving(url string, dryRun bool) (cluster.Cluster, error) {
	return own.Serving(url, dryRun, access()), nil
}

// access is how package own reaches databases.
func access() own.Access {
	return own.Access{
		Check: CheckURL, Addresses: Addresses,
		Secret: func(command string) bool {
			_, found := scenario.RedactCommand(command)
			return found
		},
		Alone:   func(address string) string { return withQuery(address, Database.ReadsAlone) },
		Open:    newOwnServer,
		Writers: writers,
	}
}

// writers returns each server of a URL, which answers only if it takes writes.
func writers(address string) (list []own.Server) {
	for _, one := range ServersOf(address, Database.PrimaryAlone) {
		list = append(list, newOwnServer(one[1]))
	}
	if len(list) == 0 {
		return []own.Server{newOwnServer(withQuery(address, Database.PrimaryAlone))}
	}
	return list
}

// withQuery returns an address with the query that how makes; the same address if it makes none.
func withQuery(address string, how func(Database, url.Values) bool) string {
	rest, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	kind, unknown := Find(address)
	if err != nil || unknown != nil || !how(kind, values) || len(values) == 0 {
		return address
	}
	return rest + "?" + values.Encode()
}

// ownServer is a server that somebody else started.
type ownServer struct {
	url        string
	lock       wait.Lock // of what follows
	database   db.Database
	session    db.SQLSession // nil: there is none now
	statements map[string]*db.Statement
}

func newOwnServer(url string) own.Server {
	return &ownServer{url: url, lock: wait.NewLock(), statements: map[string]*db.Statement{}}
}

// errNoQueries is the error of a query on a database without SQL.
var errNoQueries = errors.New("this database has no SQL: give a command in place of the query")

// Ask implements own.Server.
func (s *ownServer) Ask(ctx context.Context, query string) (answer string, err error) {
	if err := s.lock.Acquire(ctx); err != nil {
		return "", err
	}
	defer s.lock.Release()
	if s.session == nil {
		if err := s.connect(ctx); err != nil {
			return "", errors.Join(err, s.drop())
		}
	}
	statement := s.statements[query]
	if statement == nil {
		statement = &db.Statement{SQL: query, Free: true}
		s.statements[query] = statement
	}
	rows := 0
	err = s.session.Query(ctx, statement, nil, func(row []db.Value) error {
		if rows++; rows == 1 && len(row) > 0 {
			answer = string(row[0].Text)
		}
		return nil
	})
	if err != nil {
		return "", errors.Join(err, s.drop())
	}
	return answer, nil
}

func (s *ownServer) connect(ctx context.Context) (err error) {
	if s.database, err = Open(ctx, s.url); err != nil {
		return err
	}
	sql, ok := s.database.(db.SQL)
	if !ok {
		return errNoQueries
	}
	s.session, err = sql.Session(ctx, db.SessionOptions{Mode: db.Interactive})
	return err
}

// drop closes the session, which a later question opens again.
func (s *ownServer) drop() (err error) {
	if s.session != nil {
		_ = s.session.Close() // it may be broken
	}
	if s.database != nil {
		err = s.database.Close()
	}
	s.session, s.database = nil, nil
	return err
}

// Answers implements own.Server.
func (s *ownServer) Answers(ctx context.Context) (server string, err error) {
	database, err := Open(ctx, s.url)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	sql, ok := database.(db.SQL)
	if !ok {
		_, err = database.Info(ctx)
		return "", err
	}
	session, err := sql.Session(db.WithConnected(ctx, func(address string) { server = address }), db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		return "", err
	}
	return server, session.Close()
}

// Close implements own.Server.
func (s *ownServer) Close() error {
	if err := s.lock.Acquire(context.Background()); err != nil {
		return err
	}
	defer s.lock.Release()
	return s.drop()
}

// Package infinisql starts a real InfiniSQL server on this machine.
//
// It needs infinisqld and its manager, infinisqlmgr.py, on PATH, and python3. It was tested with version 0.1.2-alpha.
package infinisql

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

// Cluster is a running InfiniSQL server. It keeps everything in memory: after a Restart it has its user and an empty
// schema.
type Cluster struct {
	*cluster.NodeSet[*node]
	programs   programs
	procedures string // folder of the libraries
	prepare    Prepare
}

// Prepare makes the user's domain on the server at a URL, if it does not exist.
type Prepare func(ctx context.Context, url string) error

// Starter returns a function that starts servers and calls prepare for each.
func Starter(prepare Prepare) func(context.Context, cluster.Options) (*Cluster, error) {
	return func(ctx context.Context, o cluster.Options) (*Cluster, error) { return launch(ctx, o, prepare) }
}

var _ cluster.Local = (*Cluster)(nil)

// programs are the paths of the programs that the server needs.
type programs struct{ server, manager, python string }

func findPrograms(o cluster.Options) (p programs, err error) {
	const hint = "build InfiniSQL 0.1.2-alpha and put infinisqld and infinisqlmgr.py on PATH; no Debian package has them"
	for program, path := range map[string]*string{"infinisqld": &p.server, "infinisqlmgr.py": &p.manager} {
		*path, err = o.Find(program, "")
		if errors.As(err, new(host.MissingError)) {
			err = host.MissingError{Program: program, Hint: hint}
		}
		if err != nil {
			return p, err
		}
	}
	p.python, err = host.Find("python3", "python3")
	return p, err
}

// launch starts a server and returns when it answers. An error leaves nothing behind. It is a host.MissingError if
// a program is missing, and a *cluster.ParamError for a wrong parameter. The only parameter is:
//
//	procedures=DIR   folder of the libraries with procedures; default: procs beside
//	                 the folder of infinisqld
func launch(ctx context.Context, o cluster.Options, prepare Prepare) (*Cluster, error) {
	c := &Cluster{}
	err := cluster.Params{
		Known: map[string]func(string) error{"procedures": func(value string) (err error) {
			c.procedures, err = filepath.Abs(value)
			return err
		}},
		Set:  func(string, string) error { return errors.New("a server of InfiniSQL has no settings") },
		Kind: "a cluster of InfiniSQL",
	}.Read(o.Params)
	switch {
	case err != nil:
		return nil, err
	case o.Nodes > 1:
		return nil, &cluster.ParamError{Param: "N", Reason: "a node of InfiniSQL that has ended cannot join the others again, so its faults could not be healed: use infinisql:1"}
	}
	c.programs, err = findPrograms(o)
	if c.procedures == "" {
		c.procedures = filepath.Join(filepath.Dir(filepath.Dir(c.programs.server)), "procs")
	}
	return cluster.Launch(ctx, cluster.Kind{
		Name: "infinisql", PortTaken: "Address already in use", Lacks: err,
		NoFaultFS: "disk faults are not possible with InfiniSQL, which keeps its data in memory",
	}, o, func() *Cluster {
		own := &Cluster{programs: c.programs, procedures: c.procedures, prepare: prepare}
		own.NodeSet = cluster.NewNodeSet("the InfiniSQL server", own.newNode, func() func(context.Context) error { return own.checkHealthy })
		return own
	}, (*Cluster).start)
}

func (c *Cluster) start(ctx context.Context) error { return c.List()[0].Restart(ctx) }

// checkHealthy returns nil if the server accepts the user.
func (c *Cluster) checkHealthy(ctx context.Context) error { return c.List()[0].ask(ctx) }

// URL returns the address of the server.
func (c *Cluster) URL() string { return c.List()[0].URL() }

// The user belongs to the domain for which InfiniSQL's libraries are made. The global administrator has the same
// password.
const (
	user, domain = "benchmark", "benchmark"
	password     = "stroppy"
)

// URL returns the address of the node alone.
func (n *node) URL() string {
	query := url.Values{"admin_port": {strconv.Itoa(int(n.admin.Port()))}, "procedures": {n.cluster.procedures}, "connect_timeout": {"1s"}}
	u := url.URL{Scheme: "infinisql", User: url.UserPassword(user, password), Host: n.sql.String(), Path: "/" + domain, RawQuery: query.Encode()}
	return u.String()
}

// ask verifies that the server answers, and makes the domain if it does not exist.
func (n *node) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return n.cluster.prepare(ctx, n.URL())
}

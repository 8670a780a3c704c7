// Package infinisql starts a real InfiniSQL server on this machine.
//
// It needs infinisqld and its manager, infinisqlmgr.py, on PATH, and python3; 0.1.2-alpha is
// the version that it was seen with.
package infinisql

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"

	"stroppy/internal/cluster"
)

// Cluster is one running InfiniSQL server. It keeps everything in memory: a Restart brings it
// back with its user and an empty schema.
type Cluster struct {
	*cluster.NodeSet[*node]
	programs   programs
	procedures string // the folder of the libraries
	prepare    Prepare
}

// Prepare asks the server at a URL for the user's domain, and makes it if it is not there.
type Prepare func(ctx context.Context, url string) error

// Starter returns the function that starts servers, which prepare is asked about.
func Starter(prepare Prepare) func(context.Context, cluster.Options) (*Cluster, error) {
	return func(ctx context.Context, o cluster.Options) (*Cluster, error) { return launch(ctx, o, prepare) }
}

var _ cluster.Local = (*Cluster)(nil)

// programs are the paths of what the server needs.
type programs struct{ server, manager, python string }

func findPrograms(o cluster.Options) (p programs, err error) {
	const hint = "build InfiniSQL 0.1.2-alpha and put infinisqld and infinisqlmgr.py on PATH, for no Debian package has them"
	for program, path := range map[string]*string{"infinisqld": &p.server, "infinisqlmgr.py": &p.manager} {
		*path, err = o.Find(program, "")
		if errors.As(err, new(cluster.MissingError)) {
			err = cluster.MissingError{Program: program, Hint: hint}
		}
		if err != nil {
			return p, err
		}
	}
	p.python, err = cluster.Find("python3", "python3")
	return p, err
}

// launch starts a server and returns when it answers. An error leaves nothing behind; it is a
// cluster.MissingError where a program is missing, and a *cluster.ParamError for a parameter.
// The one parameter is
//
//	procedures=DIR   the folder of the libraries with procedures; procs beside the folder
//	                 of infinisqld if it is not given
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
		return nil, &cluster.ParamError{Param: "N", Reason: "a node of InfiniSQL that has ended does not join the others again, so that no fault of one could heal: take infinisql:1"}
	case o.FaultFS:
		return nil, &cluster.ParamError{Param: "layer", Reason: "the disk faults are not for InfiniSQL, which keeps its data in memory"}
	}
	c.programs, err = findPrograms(o)
	if c.procedures == "" {
		c.procedures = filepath.Join(filepath.Dir(filepath.Dir(c.programs.server)), "procs")
	}
	return cluster.Launch(ctx, cluster.Kind{Name: "infinisql", PortTaken: "Address already in use", Lacks: err}, o,
		func() *Cluster {
			own := &Cluster{programs: c.programs, procedures: c.procedures, prepare: prepare}
			own.NodeSet = cluster.NewNodeSet("the InfiniSQL server", own.newNode, func() func(context.Context) error { return own.checkHealthy })
			return own
		},
		func(c *Cluster) error { return c.List()[0].Restart(ctx) })
}

// checkHealthy is nil when the server lets the user in.
func (c *Cluster) checkHealthy(ctx context.Context) error { return c.List()[0].ask(ctx) }

// URL is the address of the server.
func (c *Cluster) URL() string { return c.List()[0].URL() }

// The user, who is that of the domain for which the libraries of InfiniSQL are made, and the
// password, which the global administrator has too.
const (
	user, domain = "benchmark", "benchmark"
	password     = "stroppy"
)

// URL is the address of the node alone.
func (n *node) URL() string {
	query := url.Values{"admin_port": {strconv.Itoa(int(n.admin.Port()))}, "procedures": {n.cluster.procedures}, "connect_timeout": {"1s"}}
	u := url.URL{Scheme: "infinisql", User: url.UserPassword(user, password), Host: n.sql.String(), Path: "/" + domain, RawQuery: query.Encode()}
	return u.String()
}

// ask sees that the server answers, and has the domain made, if it is not there.
func (n *node) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return n.cluster.prepare(ctx, n.URL())
}

// Leader is always cluster.ErrNoLeader.
func (c *Cluster) Leader(context.Context) (int, error) { return 0, cluster.ErrNoLeader }

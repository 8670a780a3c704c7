package clustertest

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

// Refusal is a start that must fail.
type Refusal struct {
	Query   string // parameters
	Options cluster.Options
	Says    string // a part of the error
	Launch  func(ctx context.Context, o cluster.Options) (cluster.Local, error)
}

// Refuses checks that starts fail and leave nothing behind, including starts that every kind must refuse. packages
// are the Debian packages of which one is missing if PATH is empty; none: the programs are not looked up on PATH.
func (k Kind) Refuses(t *testing.T, packages []string, refusals ...Refusal) {
	used := OpenDir(t)
	Must(t, os.Mkdir(filepath.Join(used, "n0"), 0o700))
	refusals = append(refusals,
		Refusal{Options: cluster.Options{Nodes: -1}, Says: "nodes requested"},
		Refusal{Query: "bin=" + OpenDir(t), Says: "the cluster's parameter bin: "},
		Refusal{Options: cluster.Options{Nodes: 1, Dir: used, Loopback: true}, Says: "name another folder"})
	for _, r := range refusals {
		params, err := url.ParseQuery(r.Query)
		Must(t, err)
		r.Options.Params = params
		if r.Options.Nodes == 0 {
			r.Options.Nodes = 1
		}
		dir := r.Options.Dir
		if dir == "" {
			dir = OpenDir(t)
			r.Options.Dir, r.Options.Loopback = dir, true
		}
		if r.Launch == nil {
			r.Launch = k.Launch
		}
		c, err := r.Launch(Within(t, WaitLimit), r.Options)
		if err == nil {
			Must(t, c.Stop())
			t.Errorf("%s %+v was started, want %q", r.Query, r.Options, r.Says)
			continue
		}
		var missing host.MissingError
		if errors.As(err, &missing) {
			continue
		}
		// The layer is an option here, and a parameter on the command line.
		var param *cluster.ParamError
		if !strings.Contains(err.Error(), r.Says) || errors.As(err, &param) && !params.Has(param.Param) && param.Param != "layer" {
			t.Errorf("%s %+v gives %v, want %q", r.Query, r.Options, err, r.Says)
		}
		if left, err := os.ReadDir(dir); err != nil || dir != used && len(left) > 0 {
			t.Errorf("%s: a failed start left %v, %v", r.Query, left, err)
		}
	}
	if _, err := os.Stat(filepath.Join(used, "n0")); err != nil {
		t.Errorf("the folder of somebody else was removed: %v", err)
	}
	if len(packages) == 0 {
		return
	}
	t.Setenv("PATH", t.TempDir())
	_, err := k.Launch(t.Context(), cluster.Options{Nodes: 1})
	var missing host.MissingError
	if !errors.As(err, &missing) || !strings.Contains(" "+strings.Join(packages, " ")+" ", " "+missing.Package+" ") {
		t.Errorf("with nothing on the path: %v", err)
	}
}

// Params checks the parameters of a kind: each query is accepted, or its problem is in a cluster.ParamError.
func Params[P any](t *testing.T, read func(values url.Values) (P, error), problems map[string]string) {
	for query, problem := range problems {
		values, err := url.ParseQuery(query)
		Must(t, err)
		_, err = read(values)
		var param *cluster.ParamError
		switch {
		case problem == "" && err != nil:
			t.Errorf("%s: %v", query, err)
		case problem != "" && (!errors.As(err, &param) || !values.Has(param.Param) || !strings.Contains(err.Error(), problem)):
			t.Errorf("%s: %v, want %q", query, err, problem)
		}
	}
}

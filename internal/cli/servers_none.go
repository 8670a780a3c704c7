//go:build embedded

package cli

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
	"stroppy/internal/run"
)

// What concerns databases with servers is empty in a build with the tag embedded.
func servers() []database { return nil }

func clusterServants() []*cobra.Command { return nil }

var clusterFolders map[[2]string]string

func releasers() []cluster.Releaser { return nil }

func objectsRemover() remover { return nil }

func objectsClearer() cluster.Clearer { return nil }

func connectFromThose(ctx context.Context, _ []netip.Addr) (context.Context, error) { return ctx, nil }

// runWorkers are never there in a build with the tag embedded, which leaves out workers.
type runWorkers struct{ run.Workers }

func (*runWorkers) Close() error { return nil }

var errNoWorkers = usagef("this build has no workers, which its tag embedded leaves out: build it without that tag")

func (c *config) oneProcess() error {
	if c.Workers > 0 {
		return errNoWorkers
	}
	return nil
}

func (a *app) startWorkers(_ *session, c *config, _ *clusterSession, _, _ string) (*runWorkers, error) {
	return nil, c.oneProcess()
}

func (a *app) workerCommands() []*cobra.Command {
	return []*cobra.Command{{Use: "worker", Hidden: true, DisableFlagParsing: true, RunE: func(*cobra.Command, []string) error { return errNoWorkers }}}
}

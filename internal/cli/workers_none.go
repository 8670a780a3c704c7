//go:build embedded

package cli

import (
	"github.com/spf13/cobra"

	"stroppy/internal/session"
)

func (a *app) workerCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use: "worker", Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return session.ErrNoWorkers },
	}}
}

//go:build dqlite

package dqlite

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/canonical/go-dqlite/app"
	"github.com/canonical/go-dqlite/client"
)

// adjustEvery is the interval at which the leader checks whether another node must vote; dqlite's default is 30 s.
const adjustEvery = time.Second

// Serve runs a node until SIGTERM, and then hands over its leadership and its vote. The arguments are its folder, its
// address, the number of voters, and the addresses of the nodes that it joins, separated by commas. The first node
// joins none.
func Serve(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%s takes a folder, an address, a number of voters and the other nodes", NodeCommand)
	}
	voters, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("%s: %q is not a number of voters", NodeCommand, args[2])
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	options := []app.Option{
		app.WithAddress(args[1]), app.WithVoters(voters), app.WithStandBys(0), app.WithRolesAdjustmentFrequency(adjustEvery),
		app.WithLogFunc(func(l client.LogLevel, format string, a ...any) {
			if l >= client.LogError {
				fmt.Fprintf(os.Stderr, time.Now().Format(time.RFC3339Nano)+" "+l.String()+" "+format+"\n", a...)
			}
		}),
	}
	if args[3] != "" {
		options = append(options, app.WithCluster(strings.Split(args[3], ",")))
	}
	node, err := app.New(args[0], options...)
	if err != nil {
		return fmt.Errorf("start a dqlite node: %w", err)
	}
	<-ctx.Done()
	limited, cancel := context.WithTimeout(context.Background(), handOverLimit)
	defer cancel()
	if err := node.Handover(limited); err != nil {
		fmt.Fprintln(os.Stderr, "hand over before the end:", err) // the others elect a leader without it
	}
	return node.Close()
}

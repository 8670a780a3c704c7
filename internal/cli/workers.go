//go:build !embedded

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/cluster/system"
	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/workers"
)

// indexVariable names the variable with the number of a pod in an Indexed Job of Kubernetes.
const indexVariable = "JOB_COMPLETION_INDEX"

// workerCommands returns the command of a worker. A worker that a run has started on this machine gets the address and a
// folder as arguments.
func (a *app) workerCommands() []*cobra.Command {
	w := workers.Worker{Version: registry.Version(), Clock: run.SharedClock, Open: session.OpenPart}
	var address, tokenFile string
	c := &cobra.Command{
		Use: session.WorkerCommand + " --join HOST:PORT", Short: "Drive a part of the clients of a run on another machine",
		Long: "Drive a part of the clients of a run on another machine, which waits for its workers with\n" +
			"--workers and --workers-listen. Both need the same token, which proves each to the other:\n" +
			"from a file, or from the variable " + scenario.TokenVariable + ". The worker ends with the run.",
	}
	c.Flags().StringVar(&address, "join", "", "`HOST:PORT` at which the run waits for workers")
	c.Flags().StringVar(&tokenFile, "token-file", "", "`FILE` with the run's token; "+scenario.TokenVariable+" if not given")
	c.Flags().IntVar(&w.Index, "index", -1, "number among the workers, from 0; if not given, "+indexVariable+" or the next free one")
	c.Flags().DurationVar(&w.Wait, "wait", time.Minute, "how long to wait until the run is there")
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 && (address != "" || len(args) != 2) {
			return exit.Usagef("`stroppy %s` takes no argument, and was given %q", session.WorkerCommand, args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if len(args) == 2 {
			w.Index, w.Wait, w.Folder = -1, 0, args[1]
			return w.Join(ctx, args[0], a.Getenv(scenario.TokenVariable))
		}
		token, err := a.workerToken(c, &w, address, tokenFile)
		if err != nil {
			return err
		}
		return a.work(ctx, &w, address, token)
	}
	return []*cobra.Command{c}
}

// workerToken checks the flags and variables of a worker, and returns the token.
func (a *app) workerToken(c *cobra.Command, w *workers.Worker, address, tokenFile string) (token string, err error) {
	token = a.Getenv(scenario.TokenVariable)
	host, port, err := net.SplitHostPort(address)
	number, wrong := strconv.ParseUint(port, 10, 16)
	switch {
	case address == "":
		return "", exit.Usagef("--join is missing: give the HOST:PORT that the run printed")
	case err != nil || wrong != nil || host == "" || number == 0:
		return "", exit.Usagef("--join is %q: it must be HOST:PORT, such as 10.0.0.1:7070", address)
	case token != "" && tokenFile != "":
		return "", exit.Usagef("both %s and --token-file give the token: leave one of them out", scenario.TokenVariable)
	case token == "" && tokenFile == "":
		return "", exit.Usagef("the run's token is missing: give its file with --token-file, or set %s", scenario.TokenVariable)
	case w.Wait < 0:
		return "", exit.Usagef("--wait is %v: it must be 0 or more", w.Wait)
	case c.Flags().Changed("index") && w.Index < 0:
		return "", exit.Usagef("--index is %d: it must be 0 or more", w.Index)
	}
	if given := a.Getenv(indexVariable); given != "" && w.Index < 0 {
		index, err := strconv.ParseUint(given, 10, 16)
		if err != nil {
			return "", exit.Usagef("%s is %q: it must be a number from 0", indexVariable, given)
		}
		w.Index = int(index)
	}
	if tokenFile != "" {
		if token, err = session.ReadToken(tokenFile); err != nil {
			return "", exit.With(exit.Usage, err)
		}
	} else if err := workers.CheckToken(token); err != nil {
		return "", exit.Usagef("%s is no token: %w", scenario.TokenVariable, err)
	}
	a.Hide(scenario.Scrubber("", token))
	return token, nil
}

// workerFolders is the prefix of the folders in which workers record.
const workerFolders = "stroppy-worker-"

// work runs a worker in a new folder, and removes the folder.
func (a *app) work(ctx context.Context, w *workers.Worker, address, token string) error {
	folder, unlock, err := workerFolder()
	if err != nil {
		return err
	}
	defer unlock()
	w.Folder = folder
	w.Host, _ = os.Hostname()
	w.Joined = func(number int) {
		if !a.Quiet {
			fmt.Fprintf(a.Stderr, "joined the run at %s as worker %d\n", address, number+1)
		}
	}
	err = w.Join(ctx, address, token)
	return errors.Join(err, os.RemoveAll(folder))
}

// workerFolder makes a folder that is locked while this process lives, and removes the folders of killed workers.
func workerFolder() (folder string, unlock func(), err error) {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), workerFolders+"*"))
	for _, left := range old {
		if lock, err := os.Open(filepath.Join(left, "lock")); err == nil {
			if system.TryLock(lock) == nil {
				_ = os.RemoveAll(left) // removing another user's folder fails
			}
			_ = lock.Close()
		}
	}
	folder, err = os.MkdirTemp("", workerFolders)
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the recording: %w", err)
	}
	lock, err := os.Create(filepath.Join(folder, "lock"))
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("make a folder for the recording: %w", err), os.RemoveAll(folder))
	}
	_ = system.TryLock(lock) // where there are no locks nothing is removed
	return folder, func() { _ = lock.Close() }, nil
}

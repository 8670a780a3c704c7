package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/check"
	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/scenario"
	"stroppy/internal/spelling"
)

// heldPrefix begins the kind in the record of a cluster that outlives its command.
const heldPrefix = "up "

// downLimit bounds the time for stopping a cluster.
const downLimit = time.Minute

// clusterMeanings maps words of other tools to the commands of a cluster.
var clusterMeanings = map[string]string{
	"start": "up", "create": "up", "run": "up", "stop": "down", "delete": "down", "rm": "down", "remove": "down", "kill": "down", "destroy": "down",
	"ls": "status", "list": "status", "ps": "status", "show": "status", "info": "status",
}

func (a *app) clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "cluster up|status|down [KIND[:N]]", Short: "Start, show and stop a real database cluster on this machine",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("`%s` takes one of up, status or down", c.CommandPath())
			}
			return exit.Usagef("%q is no command of a cluster; %s", args[0], spelling.Hint(args[0], []string{"up", "status", "down"}, clusterMeanings, "take up, status or down"))
		},
	}
	one := takes(1, 1, "takes one cluster, KIND or KIND:N; `stroppy list clusters` shows all")
	c.AddCommand(
		&cobra.Command{Use: "up KIND[:N]", Short: "Start a cluster and leave it running", Args: one,
			RunE: func(_ *cobra.Command, args []string) error { return a.clusterUp(args[0]) }},
		&cobra.Command{Use: "status", Short: "Show the clusters that `cluster up` has left running", Args: noArguments,
			RunE: func(*cobra.Command, []string) error { return a.clusterStatus() }},
		&cobra.Command{Use: "down KIND[:N]", Short: "Stop a cluster and remove all that it made",
			Long: "Stop a cluster that `cluster up` has left running, and remove all that it made. One in Kubernetes that\n" +
				"`run --keep` has left is removed by its name: stroppy cluster down 'k8s/KIND?name=NAME&namespace=NAMESPACE'", Args: one,
			RunE: func(_ *cobra.Command, args []string) error { return a.clusterDown(args[0]) }},
		&cobra.Command{Use: "hold KIND[:N]", Short: "Start a cluster and stop it at the end of standard input or at a signal", Hidden: true, Args: one,
			RunE: func(_ *cobra.Command, args []string) error { return a.clusterHold(args[0]) }},
	)
	return c
}

// held returns the clusters that `cluster up` has left running.
func held() ([]host.RecordInfo, error) {
	all, err := host.Records()
	list := slices.DeleteFunc(all, func(r host.RecordInfo) bool { return !r.Alive || !strings.HasPrefix(r.Kind, heldPrefix) })
	for i := range list {
		list[i].Kind = strings.TrimPrefix(list[i].Kind, heldPrefix)
	}
	return list, err
}

// clusterUp starts another process of this program, which runs the cluster until it is stopped. It returns when the
// cluster answers.
func (a *app) clusterUp(text string) error {
	kind, _, err := registry.ParseCluster(text)
	switch {
	case err != nil:
		return err
	case kind.OfOwner():
		return exit.Usagef("%s names servers that you started: use them with `stroppy run --cluster %s`", text, text)
	}
	list, err := held()
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Kind == text {
			return exit.Usagef("%s is up already, at %s: take it down first with `stroppy cluster down %s`", text, r.URL, text)
		}
	}
	line, err := startHolder(text)
	var coded *exit.Error
	switch {
	case err == nil:
		_, err = fmt.Fprint(a.Stdout, line)
		return err
	case errors.As(err, &coded):
		return err
	}
	return fmt.Errorf("start %s: %w", text, err)
}

// startHolder starts the process that runs a cluster, and returns the line with the URL.
func startHolder(text string) (line string, err error) {
	program, err := exec.LookPath(os.Args[0])
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(program, "cluster", "hold", text)
	cmd.SysProcAttr = detached()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := cmd.Start(); err != nil {
		return "", err
	}
	// The holder is in a session of its own, and gets no signal from the terminal.
	release := context.AfterFunc(ctx, func() {
		stop()                                  // one more signal ends this process
		_ = cmd.Process.Signal(syscall.SIGTERM) // one that has ended is no error
	})
	line, err = bufio.NewReader(out).ReadString('\n')
	interrupted := !release()
	if !interrupted && err == nil {
		return line, nil
	}
	ended := cmd.Wait()
	lines := strings.Split(strings.TrimSpace(complaints.String()), "\n")
	said := strings.TrimSpace(strings.TrimPrefix(lines[len(lines)-1], "stroppy: "))
	var code *exec.ExitError
	switch {
	case interrupted && said != "":
		return "", fmt.Errorf("interrupted; the process that holds the cluster ended with: %s", said)
	case interrupted:
		return "", errors.New("interrupted, and stopped again")
	case errors.As(ended, &code) && said != "":
		return "", exit.With(code.ExitCode(), errors.New(said))
	}
	return "", errors.New("the process that holds the cluster ended without a message")
}

// clusterHold starts a cluster, prints its URL, and stops the cluster at a signal, or at once if the URL cannot be
// printed. It ignores SIGPIPE, which would leave the cluster behind.
func (a *app) clusterHold(text string) (err error) {
	kind, options, err := registry.ParseCluster(text)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	if err := a.ClearLeftovers(ctx); err != nil {
		return err
	}
	record, err := host.NewRecord(heldPrefix + text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Close()) }()
	c, err := registry.StartCluster(ctx, kind, options, a.Environ)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }() // before the record is closed
	if err := record.SetURL(scenario.Redact(c.URL())); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Stdout, c.URL()); err != nil {
		return fmt.Errorf("report the URL of %s to `stroppy cluster up`: %w; the cluster was stopped again", text, err)
	}
	<-ctx.Done()
	return nil
}

func (a *app) clusterStatus() error {
	list, err := held()
	if err != nil {
		return err
	}
	records, err := host.Records()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(a.Stdout, "No cluster is up.")
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range list {
		fmt.Fprintf(table, "%s\tup %s\tprocess %d\t%s\n", r.Kind, time.Since(r.Began).Round(time.Second), r.PID, cmp.Or(r.URL, "starting"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range records {
		if !r.Alive && len(r.Made) > 0 {
			fmt.Fprintf(a.Stdout, "%s of process %d, which was killed, left %s behind: the next run of stroppy clears them\n",
				r.Kind, r.PID, check.Plural(len(r.Made), "thing"))
		}
	}
	return nil
}

// clusterDown stops the cluster of this name, or removes a cluster in Kubernetes that a run has kept. If there is no
// such cluster, it clears leftovers of crashes.
func (a *app) clusterDown(text string) error {
	if kind, options, err := registry.ParseCluster(text); err == nil && kind.Elsewhere() && options.Params.Has("name") {
		return a.keptDown(options)
	}
	list, err := held()
	if err != nil {
		return err
	}
	var names []string
	for _, r := range list {
		if r.Kind == text || strings.HasPrefix(r.Kind, text+":") {
			if err := r.Signal(syscall.SIGTERM); err != nil {
				return err
			}
			return a.waitDown(r)
		}
		names = append(names, r.Kind)
	}
	if err := a.ClearLeftovers(context.Background()); err != nil {
		return err
	}
	if len(names) == 0 {
		return exit.Usagef("no cluster is up")
	}
	return exit.Usagef("%s is not up; these clusters are: %s", text, strings.Join(names, ", "))
}

func (a *app) waitDown(r host.RecordInfo) error {
	for deadline := time.Now().Add(downLimit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		list, err := held()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(other host.RecordInfo) bool { return other.PID == r.PID }) {
			_, err := fmt.Fprintf(a.Stdout, "%s is down\n", r.Kind)
			return err
		}
	}
	return fmt.Errorf("stop %s: process %d, which holds it, has not ended within %v", r.Kind, r.PID, downLimit)
}

// keptDown removes a cluster in Kubernetes that a run has kept.
func (a *app) keptDown(o cluster.Options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	line, err := registry.ObjectsRemover()(ctx, o)
	if errors.As(err, new(*cluster.ParamError)) {
		return exit.With(exit.Usage, err)
	}
	if err != nil {
		return fmt.Errorf("remove the cluster: %w", err)
	}
	_, err = fmt.Fprintf(a.Stdout, "removed: %s\n", line)
	return err
}

package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	"stroppy/internal/scenario"
	"stroppy/internal/spelling"
)

// heldPrefix begins the kind of a record whose cluster outlives its command.
const heldPrefix = "up "

// downLimit bounds how long a cluster may take to go.
const downLimit = time.Minute

// clusterMeanings are the words that other tools have for the commands of a cluster.
var clusterMeanings = map[string]string{
	"start": "up", "create": "up", "run": "up", "stop": "down", "delete": "down", "rm": "down", "remove": "down", "kill": "down", "destroy": "down",
	"ls": "status", "list": "status", "ps": "status", "show": "status", "info": "status",
}

func (a *app) clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "cluster up|status|down [KIND[:N]]", Short: "Start, show and stop a real database cluster on this machine",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("`%s` takes one of up, status or down", c.CommandPath())
			}
			return usagef("%q is no command of a cluster; %s", args[0], spelling.Hint(args[0], []string{"up", "status", "down"}, clusterMeanings, "take up, status or down"))
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

// held returns the clusters that were left running.
func held() ([]cluster.RecordInfo, error) {
	all, err := cluster.Records()
	list := slices.DeleteFunc(all, func(r cluster.RecordInfo) bool { return !r.Alive || !strings.HasPrefix(r.Kind, heldPrefix) })
	for i := range list {
		list[i].Kind = strings.TrimPrefix(list[i].Kind, heldPrefix)
	}
	return list, err
}

// clusterUp starts this program once more, which holds the cluster until it is
// stopped, and returns when the cluster answers.
func (a *app) clusterUp(text string) error {
	if _, _, err := parseCluster(text); err != nil {
		return err
	}
	list, err := held()
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Kind == text {
			return usagef("%s is up already, at %s: take it down first with `stroppy cluster down %s`", text, r.URL, text)
		}
	}
	line, err := startHolder(text)
	var exit *exitError
	switch {
	case err == nil:
		_, err = fmt.Fprint(a.stdout, line)
		return err
	case errors.As(err, &exit):
		return err
	}
	return fmt.Errorf("start %s: %w", text, err)
}

// startHolder starts the process that holds a cluster, and returns its line with the URL.
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
	exit := cmd.Wait()
	lines := strings.Split(strings.TrimSpace(complaints.String()), "\n")
	said := strings.TrimSpace(strings.TrimPrefix(lines[len(lines)-1], "stroppy: "))
	var code *exec.ExitError
	switch {
	case interrupted && said != "":
		return "", fmt.Errorf("interrupted; the program that was to hold it ended with: %s", said)
	case interrupted:
		return "", errors.New("interrupted, and stopped again")
	case errors.As(exit, &code) && said != "":
		return "", &exitError{code.ExitCode(), errors.New(said)}
	}
	return "", errors.New("the program that was to hold it ended without a word")
}

// clusterHold starts a cluster, prints its URL, and stops it at a signal, or at
// once where nobody reads the URL. A closed pipe is no reason to leave the
// cluster behind, so that SIGPIPE ends nothing.
func (a *app) clusterHold(text string) (err error) {
	kind, options, err := parseCluster(text)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	if err := a.clearLeftovers(ctx); err != nil {
		return err
	}
	record, err := cluster.NewRecord(heldPrefix + text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Close()) }()
	c, err := startCluster(ctx, kind, options, a.environ)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }() // before the record is closed
	if err := record.SetURL(scenario.Redact(c.URL())); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.stdout, c.URL()); err != nil {
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
	records, err := cluster.Records()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(a.stdout, "No cluster is up.")
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range list {
		fmt.Fprintf(table, "%s\tup %s\tprocess %d\t%s\n", r.Kind, time.Since(r.Began).Round(time.Second), r.PID, cmp.Or(r.URL, "starting"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range records {
		if !r.Alive && len(r.Made) > 0 {
			fmt.Fprintf(a.stdout, "%s of process %d, which was killed, left %s behind: the next run of stroppy clears them\n",
				r.Kind, r.PID, check.Plural(len(r.Made), "thing"))
		}
	}
	return nil
}

// clusterDown stops the cluster of this name, and clears away what a crash left. One that a run
// has kept is in Kubernetes.
func (a *app) clusterDown(text string) error {
	if kind, options, err := parseCluster(text); err == nil && kind.elsewhere() && options.Params.Has("name") {
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
	if err := a.clearLeftovers(context.Background()); err != nil {
		return err
	}
	if len(names) == 0 {
		return usagef("no cluster is up")
	}
	return usagef("%s is not up; what is up: %s", text, strings.Join(names, ", "))
}

func (a *app) waitDown(r cluster.RecordInfo) error {
	for deadline := time.Now().Add(downLimit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		list, err := held()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(other cluster.RecordInfo) bool { return other.PID == r.PID }) {
			_, err := fmt.Fprintf(a.stdout, "%s is down\n", r.Kind)
			return err
		}
	}
	return fmt.Errorf("stop %s: process %d, which holds it, has not ended within %v", r.Kind, r.PID, downLimit)
}

// clearLeftovers takes away what an earlier stroppy that was killed has left. That a Kubernetes
// cluster cannot be reached now keeps nobody from using something else.
func (a *app) clearLeftovers(ctx context.Context) error {
	cleared, err := cluster.Clear(ctx, releasers()...)
	if remove := objectsClearer(); remove != nil {
		limited, cancel := context.WithTimeout(ctx, objectsLimit)
		defer cancel()
		lines, errObjects := cluster.ClearObjects(limited, remove)
		cleared = append(cleared, lines...)
		if errObjects != nil {
			fmt.Fprintln(a.stderr, "not cleared:", errObjects)
		}
	}
	for _, line := range cleared {
		fmt.Fprintln(a.stderr, "cleared:", line)
	}
	return err
}

// objectsLimit bounds how long what an earlier run has left in Kubernetes may take to go.
const objectsLimit = time.Minute

// keeper is a cluster that can stay when its run has ended, and says then what it is called and
// by which labels it is found.
type keeper interface {
	Keep() (name, namespace, selector string, err error)
}

// remover removes a cluster that was kept, and returns a line that says so.
type remover func(ctx context.Context, o cluster.Options) (line string, err error)

// keepable says why the cluster of --cluster cannot be left, nil if it can.
func keepable(text string) error {
	kind, options, err := parseCluster(text)
	switch {
	case err != nil:
		return err
	case !kind.elsewhere():
		return usagef("--keep leaves a cluster in Kubernetes, and %s is on this machine: start one that stays with `stroppy cluster up %s`, and give its URL to --db", text, scenario.Quote(text))
	case options.Params.Has("selector"):
		return usagef("--keep leaves what the run has made, and the database that selector= chooses stays anyway: leave --keep out")
	}
	return nil
}

// keep has a cluster stay, and returns the lines that say how it is used again and removed.
func keep(c cluster.Cluster, text string) ([]string, error) {
	k, ok := c.(keeper)
	if !ok {
		return nil, errors.New("this cluster cannot be left after the run: leave --keep out")
	}
	name, namespace, selector, err := k.Keep()
	if err != nil {
		return nil, err
	}
	kind, options, err := parseCluster(text)
	if err != nil {
		return nil, err
	}
	with := func(params map[string]string, also ...string) string {
		for _, p := range append(also, "kubeconfig", "context") {
			if options.Params.Has(p) {
				params[p] = options.Params.Get(p)
			}
		}
		return scenario.Quote(kind.name + "?" + queryOf(params))
	}
	return []string{
		fmt.Sprintf("%s stays in the namespace %s, as %s", text, namespace, name),
		toPaste("use it again", "stroppy run --cluster "+with(map[string]string{"namespace": namespace, "selector": selector}, "reach", "tool-image", "pull")),
		toPaste("remove it", "stroppy cluster down "+with(map[string]string{"namespace": namespace, "name": name})),
	}, nil
}

// queryOf writes parameters as --cluster takes them, with what a person can read left as it is.
func queryOf(params map[string]string) string {
	escape := strings.NewReplacer("%", "%25", "&", "%26", "+", "%2B", ";", "%3B", "#", "%23")
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		pairs = append(pairs, name+"="+escape.Replace(params[name]))
	}
	return strings.Join(pairs, "&")
}

// keptDown removes a cluster in Kubernetes that a run has kept.
func (a *app) keptDown(o cluster.Options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	line, err := objectsRemover()(ctx, o)
	if errors.As(err, new(*cluster.ParamError)) {
		return &exitError{exitUsage, err}
	}
	if err != nil {
		return fmt.Errorf("remove the cluster: %w", err)
	}
	_, err = fmt.Fprintf(a.stdout, "removed: %s\n", line)
	return err
}

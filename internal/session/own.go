package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"

	"stroppy/internal/cluster"
	"stroppy/internal/exit"
	"stroppy/internal/nemesis"
	"stroppy/internal/registry"
	"stroppy/internal/scenario"
)

// foreign is a cluster of servers that the user started.
type foreign interface {
	nemesis.Foreign
	NameOf(server string) string
	LogTo(*slog.Logger)
	Texts() (urls, commands []string)
}

// foreign returns the cluster if the user started its servers, and otherwise nil.
func (r *Cluster) foreign() foreign {
	if r == nil {
		return nil
	}
	f, _ := r.cluster.(foreign)
	return f
}

// logTo gives the log of the run to a cluster whose commands are logged.
func (r *Cluster) logTo(l *slog.Logger) {
	if f := r.foreign(); f != nil {
		f.LogTo(l)
	}
}

// hurts reports whether the run injects faults into servers that the user started.
func (c *Config) hurts() bool {
	return len(c.Script) > 0 && (c.Cluster == "" || strings.HasPrefix(c.Cluster, scenario.OwnServers))
}

// planOwned returns the servers of the user without a connection to them.
func (c *Config) planOwned(environ []string) (*cluster.PlannedError, error) {
	if c.Cluster == "" {
		planned, err := registry.Serving(c.DB, true)
		return &cluster.PlannedError{Cluster: planned}, err
	}
	kind, o, err := c.clusterOptions()
	if err != nil {
		return nil, err
	}
	o.DryRun = true
	_, err = registry.StartCluster(context.Background(), kind, o, environ)
	planned := new(cluster.PlannedError)
	if errors.As(err, &planned) {
		return planned, nil
	}
	return nil, err
}

// possible returns an error if servers of the user cannot suffer the faults of the run.
func (c *Config) possible(planned *cluster.PlannedError) error {
	if err := nemesis.Possible(planned, linksOf(planned.Cluster), c.Script); err != nil {
		return exit.With(exit.Usage, err)
	}
	return nil
}

// mayHurt returns an error if the servers of the user cannot suffer the faults of the run, or if the user does not agree.
// It shows what the run hurts.
func (a *App) mayHurt(s *Session, config *Config) error {
	if !config.hurts() {
		return nil
	}
	planned, err := config.planOwned(a.Environ)
	if err != nil {
		return err
	}
	a.hideOwned(planned.Cluster)
	if err := config.possible(planned); err != nil {
		return err
	}
	return a.agree(s, config, a.Scrub(config.touched(planned.Cluster)), "these servers may be hurt")
}

// agree shows what a run does, and returns an error unless the user agrees by --yes or by an answer on the terminal. It
// asks once in a call of the program.
func (a *App) agree(s *Session, config *Config, text, allowed string) error {
	switch {
	case a.done[text]:
		return nil
	case config.Yes:
		s.Note("%s", text)
	case !a.asks():
		return exit.Usagef("%s: add --yes if %s", text, allowed)
	default:
		if err := a.ask(s.Context, text+"\nGo on? [y/N] "); err != nil {
			return err
		}
	}
	a.remember(text)
	return nil
}

// remember notes that something of a text is not asked or done again in this call.
func (a *App) remember(text string) {
	if a.done == nil {
		a.done = map[string]bool{}
	}
	a.done[text] = true
}

// touched describes the servers that a run hurts, and its faults.
func (c *Config) touched(servers cluster.Cluster) string {
	var list []string
	for _, n := range servers.Nodes() {
		list = append(list, n.Name()+" at "+scenario.Redact(servers.NodeURL(n.Number())))
	}
	if len(list) == 0 {
		list = []string{scenario.Redact(servers.URL())}
	}
	return fmt.Sprintf("the run hurts servers that stroppy did not start, %s, by %s", strings.Join(list, ", "),
		strings.ReplaceAll(c.ShownScript(), "\n", "; "))
}

// asks reports whether a person can answer a question.
func (a *App) asks() bool {
	file, ok := a.Stdin.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && a.Terminal(a.Stderr)
}

// ask asks a question and returns an error unless the answer is yes.
func (a *App) ask(ctx context.Context, question string) error {
	fmt.Fprint(a.Stderr, question)
	answers := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(a.Stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return exit.Usagef("the run was not confirmed: nothing was touched")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hideOwned hides the secrets of an inventory and of the environment, which the output of commands may show.
func (a *App) hideOwned(c cluster.Cluster) {
	f, ok := c.(foreign)
	if !ok || a.done["hidden "+c.URL()] {
		return
	}
	a.remember("hidden " + c.URL())
	a.Hide(scenario.EnvironmentScrubber(a.Environ))
	urls, commands := f.Texts()
	for _, url := range urls {
		a.keepSecret(url)
	}
	for _, text := range commands {
		a.Hide(scenario.CommandScrubber(strings.ReplaceAll(text, "'", "''")))
	}
}

// serving returns the servers of the URL with the faults of the run, or nil if there are none.
func (a *App) serving(config *Config) (*Cluster, error) {
	if !config.hurts() {
		return nil, nil
	}
	c, err := registry.Serving(config.DB, false)
	if err != nil {
		return nil, err
	}
	faults, err := nemesis.New(c, linksOf(c), config.Script, config.Seed)
	if err != nil {
		return nil, exit.With(exit.Usage, errors.Join(err, c.Stop()))
	}
	faults.Probe(config.Probe)
	return &Cluster{cluster: c, nemesis: faults}, nil
}

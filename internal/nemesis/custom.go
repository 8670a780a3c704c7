package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/fault"
)

// customKinds lists the faults that the user writes.
func customKinds() []kind {
	return []kind{{
		word: "exec", usage: "exec 'COMMAND' ['HEAL']", also: []string{"command"},
		about: "run a shell command of your own, and another to heal; exit code 0 means success",
		able:  func(effect, *state, []cluster.Node) error { return nil },
		read:  readCommand, plan: planCommand,
	}, {
		word: "chaos", usage: "chaos 'FILE'",
		about: "apply the Chaos Mesh objects of a YAML file in the namespace of a cluster in Kubernetes; healed by their deletion",
		able:  takesChaos, read: readChaos, plan: planChaos,
	}}
}

// command is the argument of exec: shell commands of the user. An empty heal means that there
// is nothing to undo.
type command struct{ inject, heal string }

func (c command) String() string {
	if c.heal == "" {
		return quote(c.inject)
	}
	return quote(c.inject) + " " + quote(c.heal)
}

func (c command) heals() healing {
	if c.heal == "" {
		return healNever
	}
	return healAlways
}

func readCommand(e *effect, r *reader) error {
	var c command
	for _, text := range []*string{&c.inject, &c.heal} {
		if !quoted(r.peek()) {
			break
		}
		if *text = unquote(r.take()); strings.TrimSpace(*text) == "" {
			return errors.New("a command of exec is empty")
		}
	}
	if e.arg = c; c.inject == "" {
		return errors.New("exec takes a command in single quotes and, if needed, one that heals, as in exec 'tc qdisc add …' 'tc qdisc del …'")
	}
	return nil
}

func planCommand(e effect, _ *state, _ situation) (*injection, error) {
	c := e.arg.(command)
	return &injection{target: "a command", inject: func(ctx context.Context) (done fault.Effect, err error) {
		if c.heal != "" {
			done.Heal = func(ctx context.Context) (string, error) { return runCommand(ctx, c.heal) }
		}
		done.Seen, err = runCommand(ctx, c.inject)
		return done, err
	}}, nil
}

func runCommand(ctx context.Context, text string) (seen string, err error) {
	if err := host.Shell(ctx, text); err != nil {
		return "", fmt.Errorf("run the command %s: %w", quote(text), err)
	}
	return "exit code 0", nil
}

// chaosFile is the argument of chaos: a file with objects of Chaos Mesh.
type chaosFile string

func (f chaosFile) String() string { return quote(string(f)) }

func takesChaos(e effect, s *state, _ []cluster.Node) error {
	c, ok := s.cluster.(ChaosTaker)
	if !ok {
		return errors.New("only a cluster in Kubernetes, k8s/KIND:N, takes objects of Chaos Mesh")
	}
	return c.ChaosFile(string(e.arg.(chaosFile)))
}

func readChaos(e *effect, r *reader) error {
	var file string
	if quoted(r.peek()) {
		file = unquote(r.take())
	}
	if strings.TrimSpace(file) == "" {
		return errors.New("chaos takes a file in single quotes, as in chaos 'io.yaml'")
	}
	e.arg = chaosFile(file)
	return nil
}

func planChaos(e effect, s *state, _ situation) (*injection, error) {
	file := string(e.arg.(chaosFile))
	return &injection{target: file, inject: func(ctx context.Context) (fault.Effect, error) {
		return s.cluster.(ChaosTaker).Chaos(ctx, file)
	}}, nil
}

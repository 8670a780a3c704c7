package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
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

func planCommand(e effect, s *state, _ situation) (*injection, error) {
	c := e.arg.(command)
	return &injection{target: "a command", inject: func(ctx context.Context) (fault.Effect, error) { return s.command(ctx, c) }}, nil
}

// command injects a fault by a command. Its effect is seen by the probe, if there is one, and otherwise by the exit code.
func (s *state) command(ctx context.Context, c command) (done fault.Effect, err error) {
	before := s.observe(ctx)
	if s.probe != "" && s.probeOnce(ctx) == nil {
		return done, fmt.Errorf("the probe %s succeeds before the fault: it must succeed only while the fault is in effect", quote(s.probe))
	}
	if c.heal != "" {
		kept := func() error { return nil }
		if f, ok := s.cluster.(Foreign); ok {
			if kept, err = f.Promise(c.heal); err != nil {
				return done, err
			}
		}
		done.Heal = func(ctx context.Context) (seen string, err error) {
			if seen, err = s.shell(ctx, c.heal); err == nil {
				err = s.probeEnds(ctx)
			}
			if err == nil {
				err = kept()
			}
			return s.withServer(ctx, seen, ""), err
		}
	}
	if done.Seen, err = s.shell(ctx, c.inject); err != nil {
		return done, err
	}
	if s.probe != "" {
		if err := s.probes(ctx, func() error { return s.probeOnce(ctx) }); err != nil {
			return done, fmt.Errorf("the command %s succeeded, and the probe did not see its effect: %w", quote(c.inject), err)
		}
		done.Seen += ", and the probe saw it"
	}
	done.Seen = s.withServer(ctx, done.Seen, before)
	return done, nil
}

// probeWithin bounds the wait until the probe sees an effect or its end. probeLimit bounds one call, and probeEvery is the
// pause between two.
const probeWithin, probeLimit, probeEvery = 30 * time.Second, 10 * time.Second, 100 * time.Millisecond

// probes repeats try until it returns nil.
func (s *state) probes(ctx context.Context, try func() error) error {
	limited, cancel := context.WithTimeoutCause(ctx, probeWithin, fmt.Errorf("it had %v", probeWithin))
	defer cancel()
	return wait.RetryEvery(limited, probeEvery, try)
}

func (s *state) probeOnce(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, probeLimit, fmt.Errorf("it had %v", probeLimit))
	defer cancel()
	_, err := s.shell(limited, s.probe)
	return err
}

// probeEnds waits until the probe no longer sees the effect.
func (s *state) probeEnds(ctx context.Context) error {
	if s.probe == "" {
		return nil
	}
	return s.probes(ctx, func() error {
		if s.probeOnce(ctx) == nil {
			return errors.New("the probe still sees the effect after the heal")
		}
		return nil
	})
}

// shell runs a command of the user.
func (s *state) shell(ctx context.Context, text string) (seen string, err error) {
	if f, ok := s.cluster.(Foreign); ok {
		err = f.Shell(ctx, text)
	} else {
		_, err = host.Shell(ctx, text)
	}
	if err != nil {
		return "", fmt.Errorf("run the command %s: %w", quote(text), err)
	}
	return "exit code 0", nil
}

// observe returns which server of a foreign cluster takes writes now.
func (s *state) observe(ctx context.Context) string {
	if f, ok := s.cluster.(Foreign); ok {
		return f.Observe(ctx)
	}
	return ""
}

// withServer adds to a text which server takes writes now, and which one did before; empty: it is not known.
func (s *state) withServer(ctx context.Context, seen, before string) string {
	now := s.observe(ctx)
	switch {
	case now == "":
		return seen
	case before == now:
		now += ", as before"
	case before != "":
		now = "before: " + before + ", after: " + now
	}
	return seen + "; " + now
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

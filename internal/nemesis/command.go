package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"stroppy/internal/cluster"
)

const execute = "exec"

// command is a fault of the user's own.
type command struct{ inject, heal string }

func parseCommand(r *reader) (effect, error) {
	var c command
	for _, text := range []*string{&c.inject, &c.heal} {
		t, ok := r.peek()
		if !ok || !t.quoted {
			break
		}
		r.next++
		if strings.TrimSpace(t.text) == "" {
			return nil, errors.New("a command of exec is empty")
		}
		*text = t.text
	}
	if c.inject == "" {
		return nil, errors.New("exec takes a command in single quotes, and another that heals if there is one, as in exec 'tc qdisc add …' 'tc qdisc del …'")
	}
	return c, nil
}

func (c command) String() string {
	text := execute + " " + quote(c.inject)
	if c.heal != "" {
		text += " " + quote(c.heal)
	}
	return text
}

func (c command) heals() healing {
	if c.heal == "" {
		return healNever
	}
	return healAlways
}

func (command) needsLeader() bool { return false }

func (command) possible(*state) error { return nil }

func (c command) plan(*state, situation) (*injection, error) {
	run := func(ctx context.Context, text string) (string, error) {
		if err := cluster.Shell(ctx, text); err != nil {
			return "", fmt.Errorf("run the command %s: %w", quote(text), err)
		}
		return "exit code 0", nil
	}
	inject := func(ctx context.Context) (e cluster.Effect, err error) {
		if c.heal != "" {
			e.Heal = func(ctx context.Context) (string, error) { return run(ctx, c.heal) }
		}
		e.Seen, err = run(ctx, c.inject)
		return e, err
	}
	return &injection{target: "a command", inject: inject}, nil
}

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

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

func (command) possible(*ground) error { return nil }

func (c command) plan(*ground, moment) (*wound, error) {
	w := &wound{target: "a command"}
	w.inject = func(ctx context.Context) error { return shell(ctx, c.inject) }
	w.verify = func(context.Context) (string, error) { return "exit code 0", nil }
	if c.heal != "" {
		w.heal = func(ctx context.Context) error { return shell(ctx, c.heal) }
		w.healed = func(context.Context) (string, error) { return "exit code 0", nil }
	}
	return w, nil
}

// outputGrace is how long the output of a command is read on that ended and left
// a process behind.
const outputGrace = 200 * time.Millisecond

// shell runs a command with sh on this machine; a process that it leaves in the
// background goes on.
func shell(ctx context.Context, text string) error {
	cmd := exec.Command("sh", "-c", text)
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = outputGrace
	p, err := cluster.StartProcess(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("run the command %s: %w", quote(text), err)
	}
	select {
	case <-p.Done():
		err = p.Err()
	case <-ctx.Done():
		err = errors.Join(errors.New("it did not end in time and was killed"), p.Kill())
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if said := strings.TrimSpace(string(out)); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return fmt.Errorf("run the command %s: %w", quote(text), err)
}

// tail keeps the end of what a command says.
type tail []byte

func (t *tail) Write(text []byte) (int, error) {
	const most = 500
	*t = append(*t, text...)
	*t = (*t)[max(0, len(*t)-most):]
	return len(text), nil
}

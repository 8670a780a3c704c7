package redis_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

const (
	// stopLimit limits an orderly shutdown, which writes a snapshot.
	stopLimit = 20 * time.Second
	// askLimit limits one command of the test.
	askLimit = 5 * time.Second
)

// node is one of the servers.
type node struct {
	program  string
	dir      string
	port     int
	password string

	mu      sync.Mutex
	process *host.Process // nil while it is down
	paused  bool
}

func (n *node) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)) }

func (n *node) log() string { return filepath.Join(n.dir, "server.log") }

// prepare creates the folder with redis.conf. The caller's settings are last, and Redis uses the last value of each
// setting.
func (n *node) prepare(o serverOptions) error {
	if err := os.MkdirAll(filepath.Dir(n.dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of a node, which must be new: %w", err)
	}
	settings := map[string]string{
		"bind":     "127.0.0.1",
		"port":     strconv.Itoa(n.port),
		"dir":      n.dir,
		"loglevel": "notice",
		"logfile":  "server.log",
		// A snapshot that goes to a replica without a file waits for other replicas to ask for it too. The stream of
		// changes after it waits up to a second for the replica's first message. A shutdown waits for replicas that
		// lag.
		"repl-diskless-sync": "no",
		"shutdown-timeout":   "0",
	}
	if o.Password != "" {
		settings["requirepass"], settings["masterauth"] = o.Password, o.Password
	}
	maps.Copy(settings, o.Settings)
	text := cluster.SettingLines(settings, func(name, value string) string {
		if value == "" {
			value = `""`
		}
		return name + " " + value
	})
	for _, line := range o.Users {
		text += line + "\n"
	}
	return os.WriteFile(filepath.Join(n.dir, "redis.conf"), []byte(text), 0o600)
}

// start starts the server as a replica of the given port, or as a primary. It returns when the server has loaded its
// own data.
func (n *node) start(ctx context.Context, follows int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	args := []string{filepath.Join(n.dir, "redis.conf")}
	if follows != 0 {
		args = append(args, "--replicaof", "127.0.0.1", strconv.Itoa(follows))
	}
	// The messages that Redis writes before it reads its configuration go to the same file as the others.
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(n.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.dir, log, log
	process, err := host.StartProcess(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	if err := n.awaitAnswer(ctx, process); err != nil {
		text, _ := os.ReadFile(n.log())
		return errors.Join(fmt.Errorf("start the Redis server in %s: it did not become ready: %w: %s", n.dir, err, host.LastLines(text)), process.Kill())
	}
	n.process, n.paused = process, false
	return nil
}

// awaitAnswer returns when the server has loaded its data, or when its process has ended.
func (n *node) awaitAnswer(ctx context.Context, process *host.Process) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-process.Done():
			cancel(errors.New("it ended at once"))
		case <-ctx.Done():
		}
	}()
	return wait.Retry(ctx, func() error {
		if !n.answers(ctx) {
			return errors.New("it does not answer")
		}
		return nil
	})
}

// answers reports whether the server has loaded its data.
func (n *node) answers(ctx context.Context) bool {
	answer, err := n.ask(ctx, "PING")
	return err == nil && answer == "PONG"
}

// role returns the role that the node reports: master, slave, or "".
func (n *node) role(ctx context.Context) string {
	answer, err := n.do(ctx, "ROLE")
	if err != nil {
		return ""
	}
	role, _, _ := strings.Cut(answer, "\n")
	return role
}

// do runs a command unless the node is down or paused.
func (n *node) do(ctx context.Context, words ...string) (string, error) {
	if !n.running() {
		return "", fmt.Errorf("ask the Redis server %s: it is down or paused", n.address())
	}
	return n.ask(ctx, words...)
}

func (n *node) ask(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	client := goredis.NewClient(&goredis.Options{
		Addr: n.address(), Password: n.password, Protocol: 2, MaxRetries: -1, DisableIdentity: true, ContextTimeoutEnabled: true,
		ReadTimeout: askLimit, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer client.Close()
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word
	}
	reply, err := client.Do(ctx, args...).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return "", fmt.Errorf("%s on %s: %w", strings.Join(words, " "), n.address(), err)
	}
	return replyText(reply), nil
}

func (n *node) running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil && !n.paused
}

func (n *node) kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return nil
	}
	p := n.process
	n.process, n.paused = nil, false
	return p.Kill()
}

// shutdown ends the process in an orderly way, or leaves it to kill.
func (n *node) shutdown() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return nil
	}
	if err := errors.Join(n.process.Resume(), n.process.Signal(syscall.SIGTERM)); err != nil {
		return err
	}
	select {
	case <-n.process.Done():
	case <-time.After(stopLimit):
	}
	return nil
}

func (n *node) setPaused(paused bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	act, what := (*host.Process).Resume, "resume"
	if paused {
		act, what = (*host.Process).Pause, "pause"
	}
	if n.process == nil {
		return fmt.Errorf("%s the Redis server %s: it is down", what, n.address())
	}
	if err := act(n.process); err != nil {
		return fmt.Errorf("%s the Redis server %s: %w", what, n.address(), err)
	}
	n.paused = paused
	return nil
}

// replyText returns a reply as text. Each element of an array has its own line, and a nil is "".
func replyText(reply any) string {
	switch r := reply.(type) {
	case nil:
		return ""
	case []any:
		lines := make([]string, len(r))
		for i, element := range r {
			lines[i] = replyText(element)
		}
		return strings.Join(lines, "\n")
	}
	return fmt.Sprint(reply)
}

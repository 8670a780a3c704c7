package own

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"

	"stroppy/internal/cluster/host"
)

// command is a command of the inventory. Nobody changes it once the inventory was read.
type command struct {
	key  string
	text string // with placeholders
	on   string // of a question: where it runs; a command of a node runs at the place of the node
	file string
	line int
}

func (c *command) place() string { return fmt.Sprintf("%s:%d: %s", c.file, c.line, c.key) }

// placeholder matches {name} and the like. A shell variable such as ${name} is none.
var placeholder = regexp.MustCompile(`(^|[^$])\{(name|host|port|by|leader)\}`)

// shell returns the text for sh on this machine.
func (c *command) shell(n *node, values map[string]string) (string, error) {
	missing := ""
	text := placeholder.ReplaceAllStringFunc(c.text, func(found string) string {
		at := strings.IndexByte(found, '{')
		name := found[at+1 : len(found)-1]
		value, ok := values[name]
		if !ok {
			missing = name
		}
		return found[:at] + value
	})
	if missing != "" {
		return "", fmt.Errorf("%s: {%s} has no value here: leave it out", c.place(), missing)
	}
	on := c.on
	if n != nil {
		on = n.on
	}
	prefix, err := remote(on)
	if err != nil || prefix == "" {
		return text, err
	}
	return prefix + " " + quote(text), nil
}

// remote returns the command that runs another one at a place; empty: the place is this machine.
func remote(on string) (string, error) {
	if on == "" || on == "local" {
		return "", nil
	}
	u, err := url.Parse(on)
	if err != nil || u.Scheme != "ssh" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" {
		return "", fmt.Errorf("%q is no place for commands: write ssh://USER@HOST or ssh://USER@HOST:PORT, or local", on)
	}
	if _, secret := u.User.Password(); secret || strings.HasPrefix(u.Hostname(), "-") {
		return "", errors.New("an ssh place takes no password: use a key, or an agent")
	}
	words := []string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}
	if port := u.Port(); port != "" {
		words = append(words, "-p", port)
	}
	host := u.Hostname()
	if user := u.User.Username(); user != "" {
		host = user + "@" + host
	}
	return strings.Join(append(words, "--", quote(host)), " "), nil
}

// quote writes a word as a POSIX shell reads it back.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// run runs a command of the inventory within its time-out. A repeated command is logged only if its output changes.
func (c *Cluster) run(ctx context.Context, cmd *command, n *node, repeated bool) (host.Output, error) {
	return c.runWith(ctx, cmd, n, n.values(), repeated)
}

func (c *Cluster) runWith(ctx context.Context, cmd *command, n *node, values map[string]string, repeated bool) (host.Output, error) {
	text, err := cmd.shell(n, values)
	if err != nil {
		return host.Output{}, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("it had %v", c.timeout))
	defer cancel()
	out, err := host.Shell(limited, text)
	c.note(cmd.place()+n.of(), out, err, repeated)
	if err != nil {
		return out, fmt.Errorf("%s%s: %w", cmd.place(), n.of(), err)
	}
	return out, nil
}

// Shell runs a command of a fault exec on this machine.
func (c *Cluster) Shell(ctx context.Context, text string) error {
	out, err := host.Shell(ctx, text)
	c.note(text, out, err, false)
	return err
}

// logLine is a line of the run's log.
type logLine struct{ command, output, err string }

// note writes the output of a command into the run's log.
func (c *Cluster) note(what string, out host.Output, err error, repeated bool) {
	line := logLine{command: what, output: out.All}
	if err != nil {
		line.err = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if said := line.output + "\x00" + line.err; repeated && c.last[what] == said {
		return
	} else if repeated {
		c.last[what] = said
	}
	if c.logger == nil {
		c.early = append(c.early, line)
		return
	}
	c.logger.Info("command", "command", line.command, "output", line.output, "error", line.err)
}

// LogTo sets the log of the run, which also gets what was noted before.
func (c *Cluster) LogTo(l *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logger = l
	for _, line := range c.early {
		l.Info("command", "command", line.command, "output", line.output, "error", line.err)
	}
	c.early = nil
}

// Texts returns all texts of the inventory that may hold a secret.
func (c *Cluster) Texts() (urls, commands []string) {
	urls = []string{c.url}
	for _, n := range c.nodes {
		urls = append(urls, n.url)
		for _, one := range n.commands {
			commands = append(commands, one.text)
		}
	}
	for _, q := range []question{c.leader, c.healthy} {
		if q.command != nil {
			commands = append(commands, q.command.text)
		}
	}
	return urls, commands
}

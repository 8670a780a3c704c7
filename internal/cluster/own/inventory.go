package own

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"stroppy/internal/spelling"
)

// The commands of a node, by their keys.
const (
	kill     = "kill"
	stop     = "stop"
	start    = "start"
	pause    = "pause"
	resume   = "resume"
	replace  = "replace"
	isolate  = "isolate"
	join     = "join"
	isolated = "isolated" // succeeds while the node is cut off
	running  = "running"  // succeeds while the server exists
	setClock = "set-clock"
	clock    = "clock" // prints the seconds since 1970
	promote  = "promote"
)

func actions() []string {
	return []string{kill, stop, start, pause, resume, replace, isolate, join, isolated, running, setClock, clock, promote}
}

const (
	commandLimit = 30 * time.Second // of a command, unless the inventory has another
	mostFile     = 64 << 10
)

// InputError reports an inventory that cannot be used. It names the file and the line.
type InputError struct{ text string }

func (e *InputError) Error() string { return e.text }

// inventory is the content of its file.
type inventory struct {
	file    string // empty: there is none
	url     string
	timeout time.Duration
	equal   bool // no node leads
	leader  question
	healthy question
	nodes   []*node
}

// question is a command or a query.
type question struct {
	key     string
	file    string
	line    int
	command *command
	query   string
}

func (q *question) place() string { return fmt.Sprintf("%s:%d: %s", q.file, q.line, q.key) }

// limit returns how long an answer may take; 0: it is a query.
func (q *question) limit(c *Cluster) time.Duration {
	if q.command == nil {
		return 0
	}
	return c.timeout
}

// check returns an error unless the command succeeds or the query answers true.
func (q *question) check(ctx context.Context, c *Cluster) error {
	if q.command != nil {
		_, err := c.run(ctx, q.command, nil, true)
		return err
	}
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var answer string
	server, _, err := c.writing(limited)
	if err == nil {
		answer, err = server.Ask(limited, q.query)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", q.place(), err)
	case !isTrue(answer):
		return fmt.Errorf("%s: the query answered %q, and true is healthy: repair the cluster first", q.place(), answer)
	}
	return nil
}

func isTrue(answer string) bool {
	return slices.Contains([]string{"t", "true", "1", "on", "yes"}, strings.ToLower(answer))
}

func isFalse(answer string) bool {
	return slices.Contains([]string{"", "f", "false", "0", "off", "no"}, strings.ToLower(answer))
}

// reader reads an inventory.
type reader struct {
	inventory
	access Access
	on     string              // the default place of commands
	common map[string]*command // the commands of all nodes
}

// wrong returns an error at a line of the file.
func (r *reader) wrong(at *yaml.Node, format string, args ...any) error {
	return &InputError{fmt.Sprintf("%s:%d: ", r.file, at.Line) + fmt.Sprintf(format, args...)}
}

// read reads an inventory.
func read(file string, a Access) (inventory, error) {
	r := &reader{inventory: inventory{file: file, timeout: commandLimit}, access: a, common: map[string]*command{}}
	document, err := r.open()
	if err == nil {
		err = r.whole(document)
	}
	return r.inventory, err
}

func (r *reader) open() (*yaml.Node, error) {
	f, err := os.Open(r.file)
	var data []byte
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, mostFile+1))
	}
	switch {
	case err != nil:
		return nil, &InputError{fmt.Sprintf("read the inventory: %v: name a YAML file, as in --cluster own:staging.yaml", err)}
	case len(data) > mostFile:
		return nil, &InputError{fmt.Sprintf("read the inventory: %s is larger than %d bytes", r.file, mostFile)}
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, &InputError{fmt.Sprintf("%s is not YAML: %s", r.file, strings.TrimPrefix(first, "yaml: "))}
	}
	if !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) {
		return nil, &InputError{fmt.Sprintf("%s holds more than one YAML document: an inventory is one", r.file)}
	}
	return document.Content[0], nil
}

// whole reads the document. The common settings come before the nodes, wherever they stand.
func (r *reader) whole(root *yaml.Node) error {
	var nodes *yaml.Node
	err := r.mapping(root, "an inventory", map[string]func(*yaml.Node) error{
		"url":     r.address(&r.url),
		"timeout": r.limit,
		"on":      r.where(&r.on),
		"leader": func(n *yaml.Node) error {
			if r.equal = n.Kind == yaml.ScalarNode && n.Value == "none"; r.equal {
				return nil
			}
			return r.question(n, &r.leader, "leader", "none, or ")
		},
		"healthy":  func(n *yaml.Node) error { return r.question(n, &r.healthy, "healthy", "") },
		"commands": func(n *yaml.Node) error { return r.mapping(n, "commands", r.commands(r.common)) },
		"nodes":    func(n *yaml.Node) error { nodes = n; return nil },
	})
	switch {
	case err != nil:
		return err
	case r.url == "":
		return r.wrong(root, "the inventory has no url: give the URL of the whole database, as for --db")
	case nodes == nil || nodes.Kind != yaml.SequenceNode || len(nodes.Content) == 0:
		return r.wrong(root, "the inventory has no nodes: list them, each with its url")
	case r.leader.key == "" && !r.equal:
		return r.wrong(root, "the inventory does not name the leader: add leader with a command or a query, or leader: none")
	case r.healthy.key == "":
		return r.wrong(root, "the inventory does not describe a healthy cluster: add healthy with a command or a query")
	}
	for _, n := range nodes.Content {
		if err := r.node(n); err != nil {
			return err
		}
	}
	for _, q := range []*question{&r.leader, &r.healthy} {
		if q.command != nil {
			q.command.on = r.on
		}
	}
	return nil
}

// mapping reads a mapping by the functions of its keys.
func (r *reader) mapping(n *yaml.Node, what string, known map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return r.wrong(n, "%s must have lines of the form key: value", what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		take := known[key.Value]
		if take == nil {
			names := slices.Sorted(maps.Keys(known))
			return r.wrong(key, "%s has no key %q; %s", what, key.Value, spelling.Hint(key.Value, names, nil, "it has "+strings.Join(names, ", ")))
		}
		if seen[key.Value] {
			return r.wrong(key, "%s stands twice", key.Value)
		}
		seen[key.Value] = true
		if err := take(value); err != nil {
			return err
		}
	}
	return nil
}

// text reads one plain value.
func (r *reader) text(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if *to = strings.TrimSpace(n.Value); n.Kind != yaml.ScalarNode || *to == "" {
			return r.wrong(n, "one plain value must stand after the colon")
		}
		return nil
	}
}

// address reads the URL of a database.
func (r *reader) address(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if err := r.text(to)(n); err != nil {
			return err
		}
		if err := r.access.Check(*to); err != nil {
			return r.wrong(n, "%v", err)
		}
		return nil
	}
}

// where reads the place of commands.
func (r *reader) where(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if err := r.text(to)(n); err != nil {
			return err
		}
		if _, err := remote(*to); err != nil {
			return r.wrong(n, "%v", err)
		}
		return nil
	}
}

func (r *reader) limit(n *yaml.Node) (err error) {
	if r.timeout, err = time.ParseDuration(n.Value); err != nil || r.timeout < time.Second || r.timeout > time.Hour {
		return r.wrong(n, "timeout is %q: it must be a time from 1s to 1h, such as 30s", n.Value)
	}
	return nil
}

// commands returns the keys of the commands of a node.
func (r *reader) commands(to map[string]*command) map[string]func(*yaml.Node) error {
	known := map[string]func(*yaml.Node) error{}
	for _, action := range actions() {
		known[action] = func(n *yaml.Node) (err error) {
			to[action], err = r.command(n, action)
			return err
		}
	}
	return known
}

func (r *reader) command(n *yaml.Node, key string) (*command, error) {
	c := &command{key: key, file: r.file, line: n.Line}
	return c, r.text(&c.text)(n)
}

// question reads a command or a query.
func (r *reader) question(n *yaml.Node, to *question, key, or string) error {
	*to = question{key: key, file: r.file, line: n.Line}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return r.wrong(n, "%s must be %seither command: or query:", key, or)
	}
	return r.mapping(n, key, map[string]func(*yaml.Node) error{
		"command": func(n *yaml.Node) (err error) { to.command, err = r.command(n, key); return err },
		"query":   r.text(&to.query),
	})
}

// node reads a node. Its own commands replace the common ones.
func (r *reader) node(at *yaml.Node) error {
	n := &node{number: len(r.nodes), commands: map[string]*command{}}
	known := r.commands(n.commands)
	known["name"], known["url"], known["on"] = r.text(&n.name), r.address(&n.url), r.where(&n.on)
	if err := r.mapping(at, "a node", known); err != nil {
		return err
	}
	if n.url == "" {
		return r.wrong(at, "node n%d has no url: give the URL of this node alone", n.number)
	}
	for key, c := range r.common {
		if n.commands[key] == nil {
			n.commands[key] = c
		}
	}
	if n.url = r.access.Alone(n.url); n.on == "" {
		n.on = r.on
	}
	if addresses := r.access.Addresses(n.url); len(addresses) == 1 {
		n.address = addresses[0]
	} else if n.commands[running] == nil {
		return r.wrong(at, "node n%d needs a url with one HOST:PORT, or a command %s", n.number, running)
	}
	r.nodes = append(r.nodes, n)
	for action, needs := range map[string][]string{pause: {resume}, isolate: {join, isolated}, replace: {kill}, setClock: {clock}} {
		for _, other := range needs {
			if n.commands[action] != nil && n.commands[other] == nil {
				return r.wrong(at, "node n%d has %s and no %s: add the command that belongs to it", n.number, action, other)
			}
		}
	}
	return nil
}

package mysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster/host"
)

// position is the progress of a node's data: the number of the last transaction in a history. The zero value means no
// data.
type position struct {
	history string // the state's UUID
	seqno   int64
}

func (p position) none() bool { return p.history == "" }

// ahead reports whether the data are newer than others.
func (p position) ahead(of position) bool {
	return !p.none() && (of.none() || p.seqno > of.seqno)
}

// galeraFlags returns the flags that make a server a member of the group.
func (n *node) galeraFlags() []string {
	members := n.cluster.Addresses(func(m *node) string { return m.group.String() })
	options := append([]string{
		"gmcast.listen_addr=tcp://" + n.group.String(), "ist.recv_addr=" + n.ist.String(),
		// The founder of a new group is chosen here, from the data of all nodes. The nodes must not also restore an
		// earlier group by themselves.
		"pc.recovery=FALSE",
	}, groupOptions(n.cluster.params.suspect)...)
	return []string{
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
		"--wsrep-on=ON", "--wsrep-provider=" + n.cluster.programs.provider,
		"--wsrep-cluster-name=" + filepath.Base(n.cluster.Dir),
		"--wsrep-cluster-address=gcomm://" + members,
		"--wsrep-node-name=" + n.Name(), "--wsrep-node-address=" + n.group.String(),
		"--wsrep-sst-method=rsync", "--wsrep-sst-receive-address=" + n.sst.String(),
		"--wsrep-provider-options=" + strings.Join(options, ";"),
	}
}

// role decides whether the node joins a group or forms one, and returns the flags for it. While a node with newer
// data is down, role waits until ctx ends.
func (n *node) role(ctx context.Context) (flags []string, err error) {
	c := n.cluster
	var own *position // it does not change while the node is down
	err = retry(ctx, func() error {
		if err := c.forming.Acquire(ctx); err != nil {
			return err
		}
		defer c.forming.Release()
		if own == nil {
			p, err := n.recover(ctx)
			if err != nil {
				return err
			}
			own = &p
		}
		flags, err = n.decide(ctx, *own)
		return err
	})
	return flags, err
}

// decide is one attempt of role, for a node with this position; forming is held.
func (n *node) decide(ctx context.Context, own position) ([]string, error) {
	c := n.cluster
	c.Mu.Lock()
	n.known = &own
	if c.founder == n { // after an attempt that failed
		c.founder = nil
	}
	formed, founder := c.formed, c.founder
	c.Mu.Unlock()
	var flags []string
	if !own.none() {
		flags = append(flags, fmt.Sprintf("--wsrep-start-position=%s:%d", own.history, own.seqno))
	}
	if founder != nil {
		return flags, nil
	}
	if formed {
		forms, err := c.forms(ctx, n, own)
		if err != nil || !forms {
			return flags, err
		}
		if err := allowBootstrap(n.Dir()); err != nil {
			return nil, err
		}
		c.Note("no primary component was left: %s, whose data are the newest, forms a new group", n.Name())
	} else if n.Number() > 0 {
		return flags, nil
	}
	c.Mu.Lock()
	c.founder = n
	c.Mu.Unlock()
	return append(flags, "--wsrep-new-cluster"), nil
}

// forms reports whether node n must form a group: none is left, and no other node has newer data. It joins an
// existing group. It also joins connected nodes with data at least as new, which reform makes a group again.
func (c *Cluster) forms(ctx context.Context, n *node, own position) (bool, error) {
	others, err := c.survey(ctx, n)
	var newer error
	for m, s := range others {
		switch {
		case s.primary(), s.connected && !own.ahead(s.position):
			return false, nil
		case s.position.ahead(own):
			if s.left() {
				c.renew(m)
			}
			newer = errors.Join(newer, fmt.Errorf("%s has committed %d, but %s only %d: start %s as well", m.Name(), s.position.seqno, n.Name(), own.seqno, m.Name()))
		}
	}
	if err = errors.Join(err, newer); err != nil {
		return false, fmt.Errorf("no node is in a primary component, and %s cannot form one: %w", n.Name(), err)
	}
	if own.none() {
		return false, fmt.Errorf("no node is in a primary component, and none has data to form one")
	}
	return true, nil
}

// left reports whether the node runs and has left its group, to which Galera does not bring it back.
func (s status) left() bool { return s.answers && !s.connected }

// survey returns the status of all nodes except one, even if they are down. The error names nodes whose status is
// unknown; forming is held.
func (c *Cluster) survey(ctx context.Context, except *node) (map[*node]status, error) {
	sights := map[*node]status{}
	var unseen error
	for _, m := range c.Others(except) {
		var s status
		var err error
		if m.Awake() {
			s, err = m.status(ctx)
		}
		if !s.answers {
			s.position, err = m.stopped(ctx)
		}
		if err != nil {
			unseen = errors.Join(unseen, err)
			continue
		}
		sights[m] = s
	}
	return sights, unseen
}

// stopped returns the position of a node that is down, or that is starting and does not answer yet. forming is held,
// so that nobody starts the node meanwhile.
func (n *node) stopped(ctx context.Context) (position, error) {
	c := n.cluster
	c.Mu.Lock()
	known, starting := n.known, n.starting > 0
	c.Mu.Unlock()
	if known != nil && (starting || !n.Running()) {
		return *known, nil
	}
	if n.Running() {
		return position{}, fmt.Errorf("%s runs, but does not report its data", n.Name())
	}
	p, err := n.recover(ctx)
	if err != nil {
		return p, err
	}
	c.Mu.Lock()
	n.known = &p
	c.Mu.Unlock()
	return p, nil
}

// reformEvery is the number of checks of a node that is not ready after which a deadlock of all nodes is looked for.
// It loses little time, but lets a changing group settle.
const reformEvery = int(time.Second / pollEvery)

// reform restores a group as an operator does after the loss of a majority. If no primary component is left and no
// other node has newer data, the newest connected node's component becomes primary. A node with newer data that has
// left its group is restarted to form one. If there is a primary component, nodes that have left are restarted to
// join it.
func (c *Cluster) reform(ctx context.Context) error {
	if !c.forming.Try() {
		return nil // another caller does it
	}
	defer c.forming.Release()
	return c.regroup(ctx)
}

// bringBack is reform after a node was started; it waits for its turn. An error is not returned, because the attempt
// is repeated while somebody waits for a node, and WaitHealthy reports it in the end.
func (c *Cluster) bringBack(ctx context.Context) {
	if c.forming.Acquire(ctx) == nil {
		_ = c.regroup(ctx)
		c.forming.Release()
	}
}

// regroup is reform with forming held.
func (c *Cluster) regroup(ctx context.Context) error {
	c.Mu.Lock()
	founding := c.founder != nil || !c.formed
	c.Mu.Unlock()
	if founding {
		return nil
	}
	sights, err := c.survey(ctx, nil)
	primary := false
	for _, s := range sights {
		primary = primary || s.primary()
	}
	if primary {
		for m, s := range sights {
			if s.left() {
				c.renew(m)
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	best := newest(sights, func(s status) bool { return s.connected })
	last := newest(sights, func(status) bool { return true })
	switch {
	case last == nil:
		return nil
	case best != nil && !sights[last].position.ahead(sights[best].position):
		if err := best.bootstrap(ctx); err != nil {
			return err
		}
		c.Note("no primary component was left: the component of %s, which has the newest data, was made one", best.Name())
		return nil
	case sights[last].left():
		c.renew(last)
		return fmt.Errorf("no node is in a primary component, and %s, which has the newest data, has left its group and is restarted", last.Name())
	}
	return fmt.Errorf("no node is in a primary component, and %s, which has the newest data, does not run", last.Name())
}

// newest returns the node with the newest data among those that count, or nil.
func newest(sights map[*node]status, counts func(status) bool) (found *node) {
	for m, s := range sights {
		if counts(s) && !s.position.none() && (found == nil || s.position.ahead(sights[found].position)) {
			found = m
		}
	}
	return found
}

// renew restarts a node that has left its group, in the background, unless somebody starts it already.
func (c *Cluster) renew(n *node) {
	c.Mu.Lock()
	starting := n.starting > 0
	if !starting {
		n.starting++
	}
	c.Mu.Unlock()
	if starting {
		return
	}
	c.Tasks.Go(func() {
		ctx, cancel := context.WithTimeout(n.Life(), renewLimit)
		defer cancel()
		_ = n.Renew(ctx, func() bool { return n.hasLeft(ctx) }) // see bringBack
		n.started()
		c.bringBack(ctx)
	})
}

// renewLimit bounds the restart of a node that has left its group, which may have to get all data from another one.
const renewLimit = 5 * time.Minute

// hasLeft reports whether the node reports that it has left its group.
func (n *node) hasLeft(ctx context.Context) bool {
	if !n.cluster.galera() || !n.Awake() {
		return false
	}
	s, err := n.status(ctx)
	return err == nil && !s.connected
}

// stateFile is the file in which Galera keeps the position of a server after a clean shutdown. While a server runs,
// or after a kill, the position in it is -1.
const stateFile = "grastate.dat"

var (
	stateAt   = regexp.MustCompile(`(?m)^uuid:\s*([0-9a-f-]{36})\s*^seqno:\s*(-?\d+)\s*$`)
	stateSafe = regexp.MustCompile(`(?m)^safe_to_bootstrap:.*$`)
	recovered = regexp.MustCompile(`WSREP: Recovered position: ([0-9a-f-]{36}):(-?\d+)`)
)

// noHistory is the history of a node without data, or with an incomplete copy because of a kill.
const noHistory = "00000000-0000-0000-0000-000000000000"

// recover returns the position of a server that is down: from its state file, or from InnoDB, whose log the server
// then recovers (https://galeracluster.com/library/documentation/restarting-cluster.html).
func (n *node) recover(ctx context.Context) (position, error) {
	fail := func(err error) (position, error) {
		return position{}, fmt.Errorf("find the position of the data of %s: %w", n.Name(), err)
	}
	if n.Life().Err() != nil { // the folder may be gone
		return fail(context.Cause(n.Life()))
	}
	text, err := os.ReadFile(filepath.Join(n.Dir(), stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return position{}, nil
	}
	if err != nil {
		return fail(err)
	}
	found := stateAt.FindSubmatch(text)
	if found == nil {
		return fail(fmt.Errorf("%s cannot be read: replace the node", stateFile))
	}
	if string(found[1]) != noHistory && string(found[2]) == "-1" {
		out, err := n.Host().Run(ctx, n.server("--wsrep-recover"))
		if found = recovered.FindSubmatch([]byte(out)); err == nil && found == nil {
			err = errors.New(host.LastLines([]byte(out)))
		}
		if err != nil {
			return fail(err)
		}
	}
	if string(found[1]) == noHistory {
		return position{}, nil
	}
	p := position{history: string(found[1])}
	if p.seqno, err = strconv.ParseInt(string(found[2]), 10, 64); err != nil {
		return fail(err)
	}
	return p, nil
}

// allowBootstrap lets a server form a group with its data, although by its state file after a crash it did not leave
// last.
func allowBootstrap(dir string) error {
	path := filepath.Join(dir, stateFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("let the server form a group: %w", err)
	}
	if err := os.WriteFile(path, stateSafe.ReplaceAll(text, []byte("safe_to_bootstrap: 1")), 0o600); err != nil {
		return fmt.Errorf("let the server form a group: %w", err)
	}
	return nil
}

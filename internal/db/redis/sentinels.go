package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

const (
	opAsk = "ask a Sentinel"
	// followEvery is the time between two questions to a Sentinel.
	followEvery = 100 * time.Millisecond
)

// sentinels follow the Sentinels of the URL to find the primary. Each Sentinel is asked all the time over its own
// connection. When one names another primary with a higher configuration epoch, the connections to the old primary end.
// The old primary may still accept writes, which are lost.
//
// An epoch belongs to one fail-over, and a majority of the Sentinels assigns it. So a Sentinel with a lower epoch has
// missed the fail-over: https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/.
type sentinels struct {
	database *Database
	end      context.CancelFunc
	tasks    sync.WaitGroup

	// Guarded by the database's mu.
	epoch   uint64             // of the database's current primary
	serving map[*link]net.Conn // the open connections to servers
}

// watcher is a connection to one Sentinel.
type watcher struct {
	config  *config
	node    string
	account bool  // the Sentinel requires the password of the URL
	link    *link // nil: there is none
}

// named is the answer of a Sentinel about the primary.
type named struct {
	address  string
	epoch    uint64
	replicas int               // replicas that it knows
	fields   map[string]string // of SENTINEL MASTER
}

// openSentinels asks all Sentinels for the primary and connects to it. It follows them from then on until Close.
func (d *Database) openSentinels(ctx context.Context) (*link, error) {
	watchers := make([]*watcher, len(d.config.nodes))
	answers, errs := make([]named, len(watchers)), make([]error, len(watchers))
	var group sync.WaitGroup
	for i, node := range d.config.nodes {
		watchers[i] = &watcher{config: &d.config, node: node}
		group.Go(func() { answers[i], errs[i] = watchers[i].ask(ctx) })
	}
	group.Wait()
	s := &sentinels{database: d, serving: map[*link]net.Conn{}}
	d.sentinels = s
	l, err := d.firstNamed(ctx, answers, errs)
	if err != nil {
		for _, w := range watchers {
			w.close()
		}
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	for _, w := range watchers {
		s.tasks.Go(func() { s.follow(life, w) })
	}
	return l, nil
}

// firstNamed connects to the primary in the newest of the answers.
func (d *Database) firstNamed(ctx context.Context, answers []named, errs []error) (*link, error) {
	best := -1
	var texts []string
	for i, err := range errs {
		switch {
		case db.ClassOf(err) == db.Fatal:
			return nil, err
		case err != nil:
			texts = append(texts, err.Error())
		case best < 0 || answers[i].epoch > answers[best].epoch:
			best = i
		}
	}
	if best < 0 {
		return nil, unavailable(opConnect, "none of the %d Sentinels answers: %w", len(errs),
			db.MessageError{Text: strings.Join(texts, "; "), Cause: errors.Join(errs...)})
	}
	if known := answers[best].replicas; known < d.config.wait {
		return nil, db.Fatalf(opConnect, "the Sentinel %s knows %d replicas of %s, and wait=%d asks for more: see whether the replicas follow the primary, or lower wait",
			d.config.nodes[best], known, d.config.sentinel, d.config.wait)
	}
	d.sentinels.epoch, d.current = answers[best].epoch, answers[best].address
	return d.dialNamed(ctx, d.current)
}

// dialNamed connects to the server that the Sentinels name. The server must report itself that it is the primary.
func (d *Database) dialNamed(ctx context.Context, node string) (*link, error) {
	l, err := dial(ctx, &d.config, node)
	if err != nil {
		return nil, err
	}
	s := d.sentinels
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != node {
		defer l.close()
		return nil, unavailable(opConnect, "the Redis server %s is not the primary any more: the Sentinels name %s", node, d.current)
	}
	s.serving[l] = l.wire.Conn
	l.closed = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(s.serving, l)
	}
	return l, nil
}

// follow asks one Sentinel until ctx ends. If the Sentinel does not answer, follow asks again.
func (s *sentinels) follow(ctx context.Context, w *watcher) {
	defer w.close()
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if answer, err := w.ask(ctx); err == nil {
				s.take(answer)
			}
		}
	}
}

// take accepts an answer unless it is older than the known one.
func (s *sentinels) take(answer named) {
	d := s.database
	d.mu.Lock()
	if answer.epoch < s.epoch || answer.epoch == s.epoch && answer.address == d.current {
		d.mu.Unlock()
		return
	}
	moved := answer.address != d.current
	s.epoch, d.current = answer.epoch, answer.address
	var old []net.Conn
	if moved {
		for l, conn := range s.serving {
			if l.node != answer.address {
				old = append(old, conn)
			}
		}
	}
	d.mu.Unlock()
	for _, conn := range old {
		_ = conn.Close() // its session sees the end
	}
}

// stop ends the goroutines that follow the Sentinels, and waits for their end.
func (s *sentinels) stop() {
	s.end()
	s.tasks.Wait()
}

// ask asks for the primary. It asks for the address first. A Sentinel names the new primary there as soon as it has
// promoted it, with the epoch of the fail-over.
func (w *watcher) ask(ctx context.Context) (named, error) {
	ctx, cancel := context.WithTimeout(ctx, min(probeTimeout, w.config.timeout))
	defer cancel()
	if w.link == nil {
		if err := w.dial(ctx); err != nil {
			return named{}, err
		}
	}
	address := goredis.NewStringSliceCmd(ctx, "sentinel", "get-master-addr-by-name", w.config.sentinel)
	about := goredis.NewMapStringStringCmd(ctx, "sentinel", "master", w.config.sentinel)
	err := w.link.run(ctx, address, about)
	if said := cmp.Or(err, address.Err()); said != nil && strings.HasPrefix(said.Error(), "NOAUTH") && !w.account && w.config.password != "" {
		w.close()
		w.account = true
		return w.ask(ctx)
	}
	if err != nil {
		w.close()
		return named{}, unreachable(w.node, err)
	}
	if err := cmp.Or(address.Err(), about.Err()); err != nil {
		return named{}, w.refused(ctx, err)
	}
	n := named{fields: about.Val()}
	if parts := address.Val(); len(parts) == 2 {
		n.address = net.JoinHostPort(parts[0], parts[1])
	}
	var wrong error
	n.epoch, wrong = strconv.ParseUint(n.fields["config-epoch"], 10, 64)
	if n.replicas, err = strconv.Atoi(n.fields["num-slaves"]); n.address == "" || wrong != nil || err != nil {
		return named{}, unavailable(opAsk, "the Sentinel %s answers neither with an address nor with an epoch and replicas: %v, %v", w.node, address.Val(), n.fields)
	}
	return n, nil
}

func (w *watcher) dial(ctx context.Context) (err error) {
	o := goredis.Options{Addr: w.node, ReadTimeout: min(probeTimeout, w.config.timeout)}
	if w.account {
		o.Username, o.Password = w.config.user, w.config.password
	}
	w.link, err = attach(ctx, w.config, o)
	return err
}

// refused returns the error for a Sentinel's answer.
func (w *watcher) refused(ctx context.Context, err error) error {
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "ERR unknown command"):
		return db.Fatalf(opConnect, "the Redis server %s is no Sentinel: name Sentinels, or take sentinel=%s out of the URL", w.node, w.config.sentinel)
	case errors.Is(err, goredis.Nil), strings.HasPrefix(text, "ERR No such master"):
		return db.Fatalf(opConnect, "the Sentinel %s watches no primary called %s: it watches %s", w.node, w.config.sentinel, w.watched(ctx))
	}
	return failure(opAsk, w.node, err, optimistic.Reading)
}

// watched returns the names of the primaries that a Sentinel watches.
func (w *watcher) watched(ctx context.Context) string {
	all := goredis.NewMapStringStringSliceCmd(ctx, "sentinel", "masters")
	if err := cmp.Or(w.link.run(ctx, all), all.Err()); err != nil {
		return "others"
	}
	var names []string
	for _, one := range all.Val() {
		names = append(names, one["name"])
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// describe returns the answer of the first Sentinel that answers: who fails over, and with which settings.
func (d *Database) describe(ctx context.Context) string {
	for _, node := range d.config.nodes {
		w := &watcher{config: &d.config, node: node}
		answer, err := w.ask(ctx)
		if err != nil {
			w.close()
			continue
		}
		about := goredis.NewStringCmd(ctx, "info", "server")
		text := "by Sentinel of an unknown version"
		if cmp.Or(w.link.run(ctx, about), about.Err()) == nil {
			server := fields(about.Val())
			if text = "by Redis Sentinel " + server["redis_version"]; server["valkey_version"] != "" {
				text = "by Valkey Sentinel " + server["valkey_version"]
			}
		}
		w.close()
		for _, name := range []string{"quorum", "down-after-milliseconds", "failover-timeout", "parallel-syncs"} {
			text += fmt.Sprintf(", %s %s", name, answer.fields[name])
		}
		return text
	}
	return "not known: no Sentinel answers"
}

// CheckSuccessors implements db.FailsOver. One of the Sentinels that answer must know a replica that it would promote.
// They may take replicaGrace to find one.
func (d *Database) CheckSuccessors(ctx context.Context) error {
	if d.sentinels == nil {
		return nil
	}
	grace, cancel := context.WithTimeout(ctx, replicaGrace)
	defer cancel()
	for {
		err := d.lacksSuccessor(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-grace.Done():
			return err
		case <-time.After(replicaPoll):
		}
	}
}

// lacksSuccessor asks all Sentinels once. It returns the error of the Sentinel that knows the most replicas.
func (d *Database) lacksSuccessor(ctx context.Context) error {
	has, others := make([]bool, len(d.config.nodes)), make([][]string, len(d.config.nodes))
	errs := make([]error, len(d.config.nodes))
	var group sync.WaitGroup
	for i, node := range d.config.nodes {
		group.Go(func() {
			w := &watcher{config: &d.config, node: node}
			defer w.close()
			has[i], others[i], errs[i] = w.successors(ctx)
		})
	}
	group.Wait()
	best := -1
	for i, err := range errs {
		switch {
		case err != nil:
		case has[i]:
			return nil
		case best < 0 || len(others[i]) > len(others[best]):
			best = i
		}
	}
	if best < 0 {
		return errs[0]
	}
	d.mu.Lock()
	primary := d.current
	d.mu.Unlock()
	sentinel, name := d.config.nodes[best], d.config.sentinel
	if list := others[best]; len(list) > 0 {
		return db.Fatalf(opConnect, "the Sentinel %s knows no replica of %s that it would promote (%s), so that none can take over from the Redis server %s: start one, raise its replica-priority from 0, or name that server itself without sentinel=%s",
			sentinel, name, strings.Join(list, ", "), primary, name)
	}
	return db.Fatalf(opConnect, "the Sentinel %s knows no replica of %s, so that none can take over from the Redis server %s: %s, which it finds within 10 s unless they have replica-announced no, or name that server itself without sentinel=%s",
		sentinel, name, primary, attachReplicas, name)
}

// successors reports whether the Sentinel knows a replica that it would promote, and lists why it
// would not promote the others.
func (w *watcher) successors(ctx context.Context) (has bool, others []string, err error) {
	if _, err := w.ask(ctx); err != nil {
		return false, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(probeTimeout, w.config.timeout))
	defer cancel()
	list := goredis.NewMapStringStringSliceCmd(ctx, "sentinel", "replicas", w.config.sentinel)
	if err := w.link.run(ctx, list); err != nil {
		return false, nil, unreachable(w.node, err)
	}
	if err := list.Err(); err != nil {
		return false, nil, w.refused(ctx, err)
	}
	for _, replica := range list.Val() {
		if why := unfit(replica); why != "" {
			others = append(others, replica["name"]+" "+why)
		} else {
			has = true
		}
	}
	return has, others, nil
}

// unfit returns why a Sentinel would not promote a replica now, by the Sentinel's description of the replica. It
// returns "" if the Sentinel would promote it: sentinelSelectSlave of sentinel.c.
func unfit(replica map[string]string) string {
	for flag := range strings.SplitSeq(replica["flags"], ",") {
		if flag == "s_down" || flag == "o_down" || flag == "disconnected" {
			return "is down"
		}
	}
	if replica["slave-priority"] == "0" {
		return "has the priority 0"
	}
	return ""
}

func (w *watcher) close() {
	if w.link != nil {
		w.link.close()
		w.link = nil
	}
}

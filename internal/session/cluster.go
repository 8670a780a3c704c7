package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/netem"
	"stroppy/internal/exit"
	"stroppy/internal/history"
	"stroppy/internal/nemesis"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/resource"
	"stroppy/internal/run"
	"stroppy/internal/workload"
)

// Cluster is a cluster that was started for a run, with its nemesis.
type Cluster struct {
	cluster cluster.Cluster
	nemesis *nemesis.Nemesis
	leaders *leaderWatch // nil: the cluster reports its events itself, or all nodes are equal
	kept    []string     // notes on the use of a cluster that stays
}

// OpenCluster starts the configured cluster and makes it the database of the configuration. It returns nil if no
// cluster is configured.
func (a *App) OpenCluster(s *Session, config *Config) (*Cluster, error) {
	if err := a.mayHurt(s, config); err != nil {
		return nil, err
	}
	if config.Cluster == "" {
		if err := a.ClearLeftovers(s.Context); err != nil {
			s.Note("%v", err) // this run needs nothing of it
		}
		return a.serving(config)
	}
	kind, options, err := config.clusterOptions()
	if err != nil {
		return nil, err
	}
	if config.Extended {
		s.Note("the run takes %v, so that its faults have time to come", config.Duration)
	}
	if err := a.ClearLeftovers(s.Context); err != nil {
		return nil, err
	}
	s.Begin("cluster")
	began := time.Now()
	c, err := registry.StartCluster(s.Context, kind, options, a.Environ)
	if err != nil {
		return nil, err
	}
	if kind.OfOwner() {
		a.hideOwned(c)
		s.Note("the servers of %s are healthy", config.Cluster)
	} else {
		s.Note("cluster %s is up after %.1f s", config.Cluster, time.Since(began).Seconds())
	}
	if local, ok := c.(cluster.Local); ok {
		if why := local.Network().Loopback(); why != "" {
			s.Note("its nodes have no network of their own: %s", why)
		}
	}
	faults, err := nemesis.New(c, linksOf(c), config.Script, config.Seed)
	if err != nil {
		return nil, exit.With(exit.Usage, errors.Join(err, c.Stop()))
	}
	faults.Probe(config.Probe)
	config.Live = c.URL()
	a.keepSecret(config.Live)
	r := &Cluster{cluster: c, nemesis: faults}
	if config.Stays {
		if r.kept, err = keep(c, config.Cluster); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	if why := r.unmetered(); why != "" {
		s.Note("what its servers use of their machines is not known: %s", why)
	}
	if _, reports := c.(eventful); !reports && len(c.Nodes()) > 1 {
		r.leaders = watchLeaders(c)
	}
	return r, nil
}

// clusterOptions returns the kind of the configured cluster and the options of its start.
func (c *Config) clusterOptions() (registry.ClusterKind, cluster.Options, error) {
	kind, o, err := registry.ParseCluster(c.Cluster)
	o.FaultFS = o.FaultFS || c.Script.NeedsLayer()
	o.Connections = c.connections(nil)
	o.Clock = c.Script.NeedsClock()
	return kind, o, err
}

// linksOf returns the network between the nodes of a cluster; nil: it is not known.
func linksOf(c cluster.Cluster) nemesis.Network {
	if local, ok := c.(cluster.Local); ok {
		return local.Network()
	}
	own, _ := c.(nemesis.Network)
	return own
}

// eventful is a cluster that records the actions of its supervisor, such as a change of the leader.
type eventful interface{ Events() []cluster.Event }

// leaderWatch polls a cluster for its leader.
type leaderWatch struct {
	stop   func() // and wait until it has ended
	mu     sync.Mutex
	events []cluster.Event
}

const (
	askLeader = 100 * time.Millisecond // between two questions
	// The time-out is three times the duration of the last answer, within these bounds. A question to a majority may
	// wait for dead nodes.
	leaderSoon, leaderLimit = 300 * time.Millisecond, 5 * time.Second
)

// watchLeaders starts to watch, or returns nil if all nodes are equal. An event has the time at which the new leader
// was observed.
func watchLeaders(c cluster.Cluster) *leaderWatch {
	ctx, cancel := context.WithCancel(context.Background())
	limit := leaderLimit
	ask := func() (int, error) {
		began := time.Now()
		limited, done := context.WithTimeout(ctx, limit)
		defer done()
		number, err := c.Leader(limited)
		if err == nil {
			limit = min(max(leaderSoon, 3*time.Since(began)), leaderLimit)
		}
		return number, err
	}
	known, err := ask()
	if errors.Is(err, cluster.ErrNoLeader) {
		cancel()
		return nil
	}
	if err != nil {
		known = -1
	}
	w := new(leaderWatch)
	end := run.Every(askLeader, func() {
		if now, err := ask(); err == nil && now != known {
			known = now
			w.add(fmt.Sprintf("n%d", now))
		}
	})
	w.stop = func() {
		cancel()
		end()
	}
	return w
}

func (w *leaderWatch) add(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, cluster.Event{Time: time.Now(), Text: node + " leads", Leader: node})
}

// Events returns the events so far, the oldest first.
func (w *leaderWatch) Events() []cluster.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// Stop stops the cluster, or notes how a cluster that stays is used. It does nothing for nil.
func (r *Cluster) Stop(note func(format string, args ...any)) error {
	if r == nil {
		return nil
	}
	if r.leaders != nil {
		r.leaders.stop()
	}
	if err := r.cluster.Stop(); err != nil {
		return fmt.Errorf("stop the cluster: %w", err)
	}
	for _, line := range r.kept {
		note("%s", line)
	}
	return nil
}

// complete sets the options of a run that depend on the cluster or, for nil, on the servers of the URL.
func (r *Cluster) complete(o *run.Options, config *Config, w workload.Workload) {
	r.logTo(o.Dir.Logger(o.Scrub))
	if r == nil || config.Cluster == "" {
		o.Servers = listeners(config.DB)
		o.Where.Servers = WhereServers(o.Embedded, config.DB)
		if servers := registry.ServersOf(config.DB, registry.Database.ReadsAlone); len(servers) > 1 {
			o.OnePrimary = onePrimaryNamed(config.DB)
			o.MayLag, o.Nodes = true, func() []run.Node { return nodesAlone(w, servers) }
		}
		if r != nil {
			o.Nemesis, o.Events = r.nemesis, eventsOf(r.cluster.(eventful))
		}
		return
	}
	if o.Servers = r.servers(); r.foreign() != nil {
		o.Servers, o.Where.Servers, o.MayLag = listeners(config.Live), WhereServers(false, config.Live), true
	}
	if local, ok := r.cluster.(cluster.Local); ok {
		o.Where.Servers = report.OnThisMachine
		for _, n := range cluster.LocalNodes(local) {
			o.Where.Data = append(o.Where.Data, n.Dir())
		}
	}
	if described, ok := r.cluster.(interface{ Description() string }); ok && described.Description() != "" {
		o.Settings = append(o.Settings, report.Setting{Name: report.FailoverSetting, Value: described.Description()})
	}
	if deployed, ok := r.cluster.(interface{ Deployment() string }); ok {
		o.Settings = append(o.Settings, report.Setting{Name: "deployment", Value: deployed.Deployment()})
	}
	if own, ok := r.cluster.(eventful); ok {
		o.Events = eventsOf(own)
	} else if r.leaders != nil {
		o.Events = eventsOf(r.leaders)
	}
	if o.Nemesis = r.nemesis; len(config.Script) == 0 && r.foreign() != nil {
		o.Nemesis = nil // a nemesis would wait until the cluster of the user is whole
	}
	o.Names, o.OnePrimary = r.names(), r.onePrimary()
	if nodes := r.cluster.Nodes(); len(nodes) > 1 && r.cluster.NodeURL(nodes[0].Number()) != "" {
		o.Nodes = func() []run.Node { return r.nodes(w) }
	}
}

// names returns a function that finds the name of a node by the HOST:PORT of its server.
func (r *Cluster) names() func(server string) string {
	if f := r.foreign(); f != nil {
		return f.NameOf
	}
	return func(server string) string {
		for _, n := range r.cluster.Nodes() {
			if slices.Contains(registry.Addresses(r.cluster.NodeURL(n.Number())), server) {
				return n.Name()
			}
		}
		return ""
	}
}

// onePrimary reports whether only one node may take writes.
func (r *Cluster) onePrimary() bool {
	ctx, cancel := context.WithTimeout(context.Background(), leaderLimit)
	defer cancel()
	_, err := r.cluster.Leader(ctx)
	return len(r.cluster.Nodes()) > 1 && !errors.Is(err, cluster.ErrNoLeader)
}

// eventsOf returns a function that converts the events since a time.
func eventsOf(e eventful) func(since time.Time) []report.Event {
	return func(since time.Time) (list []report.Event) {
		for _, one := range e.Events() {
			if at := one.Time.Sub(since); at >= 0 {
				list = append(list, report.Event{AtSeconds: at.Seconds(), Text: one.Text, Leader: one.Leader, Named: one.Named, Repair: one.Repair})
			}
		}
		return list
	}
}

// Followers returns the addresses of the nodes that do not lead. Such an address reaches one node,
// which answers from its own data. There are none if the nodes are equal.
func (r *Cluster) Followers(ctx context.Context) (urls []string, err error) {
	leader, err := r.cluster.Leader(ctx)
	if errors.Is(err, cluster.ErrNoLeader) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the nodes that do not lead: %w", err)
	}
	for _, n := range r.cluster.Nodes() {
		address := r.cluster.NodeURL(n.Number())
		if n.Number() == leader || address == "" {
			continue
		}
		kind, err := registry.Find(address)
		if err != nil {
			return nil, err
		}
		if kind.OwnState != "" && !strings.Contains(address, "?") {
			address += "?" + kind.OwnState
		}
		urls = append(urls, address)
	}
	return urls, nil
}

// nodes returns the current nodes of the cluster, for reading each alone.
func (r *Cluster) nodes(w workload.Workload) []run.Node {
	var list [][2]string
	for _, n := range r.cluster.Nodes() {
		list = append(list, [2]string{n.Name(), r.cluster.NodeURL(n.Number())})
	}
	return nodesAlone(w, list)
}

// nodesAlone returns nodes for reading each alone, given their names and URLs.
func nodesAlone(w workload.Workload, nodes [][2]string) []run.Node {
	var list []run.Node
	for _, n := range nodes {
		name, url := n[0], n[1]
		list = append(list, run.Node{Name: name, EndState: func(ctx context.Context, end *history.EndWriter) (err error) {
			database, err := registry.Open(ctx, url)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, database.Close()) }()
			node, err := w.ForNode(database)
			if err != nil {
				return err
			}
			return node.EndState(ctx, end, nil)
		}})
	}
	return list
}

// primaryLimit bounds the time for asking the servers of a URL whether they accept writes.
const primaryLimit = 5 * time.Second

// onePrimaryNamed reports whether exactly one server of a URL takes writes now. If several do,
// they may be proxies of the same server. Then two servers that acknowledge writes prove nothing.
func onePrimaryNamed(address string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), primaryLimit)
	defer cancel()
	var primaries atomic.Int32
	var asked sync.WaitGroup
	for _, server := range registry.ServersOf(address, registry.Database.PrimaryAlone) {
		asked.Go(func() {
			if one, err := registry.Open(ctx, server[1]); err == nil {
				_, err = one.Info(ctx)
				if err == nil {
					primaries.Add(1)
				}
				_ = one.Close() // nothing was done over it
			}
		})
	}
	asked.Wait()
	return primaries.Load() == 1
}

// listeners returns the servers at a database's address that this process can measure.
func listeners(database string) []resource.Group {
	return resource.Listeners(registry.Addresses(database)...)
}

// WhereServers returns the place of the servers at a database's address, judged by the address; empty: not known.
func WhereServers(embedded bool, database string) string {
	if embedded {
		return report.InThisProcess
	}
	u, err := url.Parse(database)
	if err == nil && (strings.HasPrefix(u.Query().Get("host"), "/") || strings.HasPrefix(u.Host, "/")) { // a socket
		return report.OnThisMachine
	}
	here, elsewhere := 0, 0
	for _, address := range registry.Addresses(database) {
		host, _, err := net.SplitHostPort(address)
		local, known := resource.Local(host)
		if ip, unread := netip.ParseAddr(host); unread == nil && !local {
			if local, unread = netem.OnThisMachine(ip); unread != nil {
				return ""
			}
		}
		switch {
		case err != nil || !known:
			return ""
		case local:
			here++
		default:
			elsewhere++
		}
	}
	switch {
	case here > 0 && elsewhere > 0:
		return report.OnBoth
	case here > 0:
		return report.OnThisMachine
	case elsewhere > 0:
		return report.OnOtherMachines
	}
	return ""
}

// unmetered returns why a remote cluster cannot report the resource usage of its servers; empty: it can.
func (r *Cluster) unmetered() string {
	if far, ok := r.cluster.(interface{ Unmetered() string }); ok {
		return far.Unmetered()
	}
	return ""
}

// servers returns the nodes that are local processes, and the nodes whose machines report their usage.
func (r *Cluster) servers() []resource.Group {
	var groups []resource.Group
	for _, n := range r.cluster.Nodes() {
		if local, ok := n.(interface{ PIDs() []int }); ok {
			groups = append(groups, resource.Group{Name: n.Name(), PIDs: local.PIDs})
		}
		if far, ok := n.(interface {
			Used() (resource.Reading, bool)
		}); ok && r.unmetered() == "" {
			groups = append(groups, resource.Group{Name: n.Name(), Read: far.Used})
		}
	}
	if front, ok := r.cluster.(interface{ PoolerPIDs() []int }); ok {
		groups = append(groups, resource.Group{Name: "pooler", PIDs: front.PoolerPIDs})
	}
	return groups
}

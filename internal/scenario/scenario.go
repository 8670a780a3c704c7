// Package scenario holds one run as data. A scenario comes from three layers that name the same settings: a flag
// beats a STROPPY_* variable, which beats a YAML file. The result is a checked value that can be written to a file
// and repeated.
package scenario

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"stroppy/internal/isolation"
	"stroppy/internal/pace"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
)

// Places of workers.
const (
	Machines = "machines"
	Pods     = "pods"
)

// The bounds of a scenario. A transaction's id has room for one client more, the auditor.
const (
	MaxClients = 1<<17 - 2
	MaxWorkers = 1024
	maxBacklog = 1_000_000_000
	MaxCount   = math.MaxInt64
)

// OwnServers begins the text of a cluster whose servers the user started. The file of its inventory follows.
const OwnServers = "own:"

// Scenario is the whole configuration of a run. With returns a changed copy.
type Scenario struct {
	Workload string
	Config   workload.Config // the workload's own settings, which nobody changes

	DB      string // the database's URL, its password included; empty is the embedded one in the run's directory
	NoLoad  bool
	NoCheck bool

	LiveCheck       bool            // the recording is checked while the clients run
	StopOnViolation bool            // and a violation ends the load phase
	Expect          isolation.Level // unknown: the claim of the database

	Cluster        string        // KIND[:N][?PARAMS]: started on this machine or, behind InKubernetes, there, instead of DB
	Kubernetes     bool          // have it started in Kubernetes; Merge writes that into Cluster
	Resources      string        // of each of its nodes there, such as cpu=1,memory=8G; Merge writes them into Cluster
	Keep           bool          // leave the cluster, which is in Kubernetes, after the run
	Nemesis        string        // a fault a line
	Probe          string        // a command that succeeds while a fault of exec is in effect; empty: the exit code of exec counts
	Yes            bool          // servers that the user started may be hurt without a question
	MaxOutage      time.Duration // that a fault may cause; 0 allows any
	MaxDegradation float64       // share of the throughput that may be lost; 0 allows any
	Thresholds     string        // limits on measurements, one per line, as report.ParseThresholds reads them

	LocalAddress string // addresses of this machine, with commas, that connections are made from; empty: the system's choice

	Scale Scale // the divisor of the sizes

	Clients int
	Workers int // processes that the clients are spread over; 0: this one has them all

	WorkersOn        string        // their place: Pods of Kubernetes; empty: machines
	WorkersListen    string        // where workers join by themselves; empty: this program starts them
	WorkersTokenFile string        // the file of their token; empty: one in the run's directory
	WorkersWait      time.Duration // for all of them
	WorkersLost      int           // that may be lost during the load phase

	Duration time.Duration // of the run; 0 if Count ends it
	Count    uint64        // transactions; 0 if Duration ends the run
	Warmup   time.Duration // run before and not counted in the measurements
	Rate     pace.Plan     // transactions per second over the run, all clients together; the zero Plan is a closed loop
	Retries  int           // new tries of one transaction after the first
	GiveUp   time.Duration // how long no client may reach the database before the run ends

	Arrival    string        // uniform or poisson, of arrivals and of pauses; empty is uniform
	Think      time.Duration // a client's pause between two transactions of a closed loop
	MaxBacklog uint64        // transactions of an open loop that may be due and not sent

	LatencyLimit time.Duration // above which a transaction is late; 0: none is
	Connect      bool          // each transaction has a connection of its own

	Seed      uint64 // 0: drawn at random, then printed and recorded
	Isolation string // as the database names it; empty is its own default
	Mode      string // empty: the default of the database

	Out     string // the run's directory; empty is one named after the time
	Serve   string // where to show the run live; empty is nowhere
	Metrics string // where to give metrics; empty is nowhere
	JSON    bool
}

// Workloads holds all workloads that a scenario may name, the default first.
type Workloads []workload.Spec

// Names returns the names of all workloads.
func (w Workloads) Names() []string {
	return setting.Names(w, func(spec workload.Spec) string { return spec.Name })
}

// Find returns the workload of that name. A recording may be of a newer program's.
func (w Workloads) Find(name string) (workload.Spec, error) {
	if i := slices.Index(w.Names(), name); i >= 0 {
		return w[i], nil
	}
	return workload.Spec{}, fmt.Errorf("this program has no workload %q: `stroppy list workloads` shows those that it has", name)
}

// Default returns the scenario that `stroppy run` alone runs.
func (w Workloads) Default() Scenario { return w.of(w[0]) }

func (w Workloads) of(spec workload.Spec) Scenario {
	return Scenario{
		Workload: spec.Name, Config: spec.Config(),
		Clients: 16, Duration: 10 * time.Second, Retries: 10, GiveUp: time.Minute, MaxBacklog: 1_000_000, WorkersWait: time.Minute,
	}
}

// With returns the scenario with these settings of the workload, by their names.
func (s Scenario) With(values map[string]string) (Scenario, error) {
	s.Config = workload.Clone(s.Config)
	for _, one := range s.Config.Settings() {
		if value, ok := values[one.Name]; ok {
			if err := one.Set(value); err != nil {
				return s, fmt.Errorf("%s is %q: %w", one.Name, value, err)
			}
		}
	}
	return s, nil
}

// Validate returns an error of one sentence if the scenario is not valid.
func (s *Scenario) Validate() error {
	return cmp.Or(setting.Check(s.Settings()), s.localAddresses(), s.oneDatabase(), s.howLong(), s.howFast(), s.Config.Validate())
}

func (s *Scenario) howLong() error {
	switch {
	case s.Workers > s.Clients:
		return fmt.Errorf("workers is %d and there are %d clients: each worker needs a client, so give at most %d", s.Workers, s.Clients, s.Clients)
	case s.WorkersLost > 0 && s.WorkersLost >= s.Workers:
		return fmt.Errorf("workers-lost is %d and workers is %d: at least one must remain, so give at most %d", s.WorkersLost, s.Workers, max(0, s.Workers-1))
	case s.Workers > 0 && (s.LiveCheck || s.StopOnViolation):
		return fmt.Errorf("workers is %d and live-check is on: the recordings of the workers are merged at the end, so leave out one of them", s.Workers)

	case s.Count > 0 && s.Duration > 0:
		return fmt.Errorf("count is %d and duration is %v: both end the run, so give one of them", s.Count, s.Duration)
	case s.Count == 0 && s.Duration == 0:
		return fmt.Errorf("the run has no end: give count or duration, such as --duration 10s")
	case s.Duration > 0 && s.Warmup >= s.Duration:
		return fmt.Errorf("warmup is %v and duration is %v: nothing would be left to measure", s.Warmup, s.Duration)
	case s.Count > MaxCount:
		return fmt.Errorf("count is %d: it may be at most %d", s.Count, int64(MaxCount))
	case s.GiveUp == 0:
		return fmt.Errorf("unreachable-timeout is 0: it must be longer than 0, such as 60s")
	}
	return nil
}

// howFast returns an error if the pace is not valid.
func (s *Scenario) howFast() error {
	length, bounded := s.Rate.Length()
	switch {
	case s.Think > 0 && !s.Rate.Closed():
		return fmt.Errorf("rate is %s and think-time is %v: clients with a rate do not wait for answers, so give one of them", clip(s.Rate.String()), s.Think)
	case s.Connect && s.Get("in-flight") != "" && s.Get("in-flight") != "1":
		return fmt.Errorf("connect is on and in-flight is %s: transactions in flight share a connection, so give one of them", s.Get("in-flight"))
	case s.Arrival != "" && s.Rate.Closed() && s.Think == 0:
		return fmt.Errorf("arrival is %s and rate is 0, which sends as fast as answers come: give a rate, such as --rate 1000, or leave arrival out", s.Arrival)
	case !s.Rate.Closed() && s.MaxBacklog < uint64(s.Clients):
		return fmt.Errorf("max-backlog is %d and there are %d clients: each client has its own queue, so give at least %d", s.MaxBacklog, s.Clients, s.Clients)
	case bounded && s.Count > 0:
		return fmt.Errorf("rate is %s, which ends after %v, and count is %d: leave out the time of the last stage, so that the run reaches the count", clip(s.Rate.String()), length, s.Count)
	case bounded && s.Duration > length:
		return fmt.Errorf("rate is %s, which ends after %v, and duration is %v: nothing would be sent after that, so leave out duration or the time of the last stage", clip(s.Rate.String()), length, s.Duration)
	}
	return nil
}

// LocalAddresses returns the local addresses of connections; none: the system chooses.
func (s *Scenario) LocalAddresses() (list []netip.Addr, err error) {
	if s.LocalAddress == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(s.LocalAddress, ",") {
		address, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("local-address has %q, which is no IP address: give addresses of this machine with commas, such as 127.0.0.2,127.0.0.3", clip(text))
		}
		list = append(list, address)
	}
	return list, nil
}

func (s *Scenario) localAddresses() error {
	_, err := s.LocalAddresses()
	return err
}

func (s *Scenario) oneDatabase() error {
	switch {
	case s.Cluster != "" && s.DB != "":
		return fmt.Errorf("db and cluster each name a database: give one of them")
	case s.LocalAddress != "" && s.DB == "":
		return fmt.Errorf("local-address needs a server that runs already: name it with db, or leave local-address out")
	case s.Cluster != "" && s.NoLoad && !strings.HasPrefix(s.Cluster, OwnServers):
		return fmt.Errorf("no-load uses loaded data, and a new cluster is empty: leave one of no-load and cluster out")
	case s.Cluster == "" && s.DB == "" && s.Nemesis != "":
		return fmt.Errorf("nemesis injects faults into a cluster that stroppy has started, or into servers that db names: name one with cluster, such as --cluster KIND:3; `stroppy list clusters` shows the kinds")
	case Masked(s.Probe):
		return fmt.Errorf("probe has xxxxx in place of a secret: put the secret back, or name a variable there, as in PGPASSWORD=$PGPASSWORD")
	case s.Keep && s.Cluster == "":
		return fmt.Errorf("keep leaves a cluster in Kubernetes that stroppy has started: name one with cluster, such as --cluster k8s/KIND:3")
	case s.Nemesis == "" && (s.MaxOutage > 0 || s.MaxDegradation > 0):
		return fmt.Errorf("max-outage and max-degradation limit the effect of faults, and the run has no faults: add some with nemesis")
	}
	return nil
}

// Package scenario is one run as data. A scenario comes from three layers that
// name the same keys (a flag beats a STROPPY_* variable, which beats a YAML
// file) and leaves as a checked value that can be written down and repeated.
package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"stroppy/internal/isolation"
	"stroppy/internal/pace"
)

// The names that Update, Mode, LockOrder and Arrival take.
var (
	updates    = []string{"atomic", "locked", "rmw"}
	modes      = []string{"pipelined", "interactive", "procedure"}
	lockOrders = []string{"key", "random"}
	arrivals   = []string{pace.Uniform.String(), pace.Poisson.String()}
)

// The bounds of a scenario. The clients' bound is what a transaction's id has
// room for, less one for the auditor; the accounts' is the bank's own.
const (
	MaxClients  = 1<<17 - 2
	maxBacklog  = 1_000_000_000
	MaxAccounts = 1_000_000_000_000
	MaxCount    = math.MaxInt64
	maxDuration = 365 * 24 * time.Hour
)

// Scenario is the whole configuration of a run. Its keys are the flags' names.
type Scenario struct {
	Workload string
	DB       string // the database's URL, its password included; empty is SQLite in the run's directory
	NoLoad   bool
	NoCheck  bool
	Expect   isolation.Level // unknown: what the database claims

	Cluster        string        // KIND[:N][?PARAMS]: started on this machine, instead of DB
	Nemesis        string        // a fault a line
	MaxOutage      time.Duration // that a fault may cause; 0 allows any
	MaxDegradation float64       // share of the throughput that may be lost; 0 allows any

	Clients  int
	Duration time.Duration // of the drive; 0 where Count says how long
	Count    uint64        // transactions; 0 where Duration says how long
	Warmup   time.Duration // driven before and not counted in the figures
	Rate     pace.Plan     // transactions per second over the drive, all clients together; the zero Plan is a closed loop
	Retries  int           // new tries of one transaction after the first
	GiveUp   time.Duration // how long no client may reach the database before the run ends

	Arrival    string        // uniform or poisson, of arrivals and of pauses; empty is uniform
	Think      time.Duration // a client's pause between two transactions of a closed loop
	MaxBacklog uint64        // transactions of an open loop that may be due and not sent

	Accounts     uint64
	Seed         uint64 // 0: drawn at random, then printed and recorded
	Zipfian      bool
	ZipfExponent float64
	PayrollShare float64 // of the transactions, 0 to 1; so are the other shares
	PayrollLegs  int     // people that one payroll pays
	JointShare   float64
	InquiryShare float64
	LargeShare   float64
	Isolation    string // as the database names it; empty is its own default
	Update       string // empty: what suits the database
	Mode         string // empty: what suits the database
	LockOrder    string
	Audits       float64 // per second; 0 is none
	AuditSample  uint64  // accounts that one audit reads; 0 is all of up to 100,000, and else 10,000

	TPCB      TPCBSettings
	Events    EventsSettings
	KV        KVSettings
	ValueSize Size // of events and kv

	Out     string // the run's directory; empty is one named after the time
	Serve   string // where to show the run live; empty is nowhere
	Metrics string // where to give metrics; empty is nowhere
	JSON    bool
}

// Default returns the scenario that `stroppy run` alone runs.
func Default() Scenario {
	return Scenario{
		Workload: Bank, Clients: 16, Duration: 10 * time.Second, Retries: 10, GiveUp: time.Minute,
		Accounts: 10_000, ZipfExponent: 0.99, Audits: 1, LockOrder: lockOrders[0], MaxBacklog: 1_000_000,
		PayrollShare: 0.01, PayrollLegs: 10, JointShare: 0.05, InquiryShare: 0.05, LargeShare: 0.01,
		TPCB:   TPCBSettings{Scale: 1, Ratio: [3]uint64{1, 10, 100_000}, History: true},
		Events: EventsSettings{Batch: 1},
		KV: KVSettings{
			Records: 100_000, KeySize: 32, Reads: 0.9, Updates: 0.1, ScanLength: 100, Distribution: Uniform, InFlight: 1,
		},
		ValueSize: Size{1024, 1024},
	}
}

// Validate says in one sentence what is wrong with the scenario, or nil.
func (s *Scenario) Validate() error {
	for _, check := range []error{
		among("workload", s.Workload, Workloads()),
		among("update", s.Update, append([]string{""}, updates...)),
		among("mode", s.Mode, append([]string{""}, modes...)),
		among("arrival", s.Arrival, append([]string{""}, arrivals...)),
		among("lock-order", s.LockOrder, lockOrders),
		between("clients", float64(s.Clients), 1, MaxClients),
		between("accounts", float64(s.Accounts), 4, MaxAccounts),
		between("retries", float64(s.Retries), 0, 1_000_000),
		between("payroll-legs", float64(s.PayrollLegs), 1, 1000),
		between("max-backlog", float64(s.MaxBacklog), 1, maxBacklog),
		between("audits", s.Audits, 0, 1000),
		between("zipf-exponent", s.ZipfExponent, 0.01, 100),
		between("payroll-share", s.PayrollShare, 0, 1),
		between("joint-share", s.JointShare, 0, 1),
		between("inquiry-share", s.InquiryShare, 0, 1),
		between("large-share", s.LargeShare, 0, 1),
		long("duration", s.Duration),
		long("warmup", s.Warmup),
		long("think", s.Think),
		long("give-up", s.GiveUp),
		long("max-outage", s.MaxOutage),
		between("max-degradation", s.MaxDegradation, 0, 1),
		s.oneDatabase(),
		s.howLong(),
		s.howFast(),
		s.own(),
	} {
		if check != nil {
			return check
		}
	}
	return nil
}

func (s *Scenario) howLong() error {
	switch {
	case s.Count > 0 && s.Duration > 0:
		return fmt.Errorf("count is %d and duration is %v: give one of them, because each says when the run ends", s.Count, s.Duration)
	case s.Count == 0 && s.Duration == 0:
		return fmt.Errorf("neither count nor duration says when the run ends: give one of them, such as --duration 10s")
	case s.Duration > 0 && s.Warmup >= s.Duration:
		return fmt.Errorf("warmup is %v and duration is %v: nothing would be left to measure", s.Warmup, s.Duration)
	case s.Count > MaxCount:
		return fmt.Errorf("count is %d: it may be at most %d", s.Count, int64(MaxCount))
	case s.GiveUp == 0:
		return fmt.Errorf("give-up is 0: it must be longer than 0, such as 60s")
	}
	return nil
}

// howFast says what is wrong with the pace.
func (s *Scenario) howFast() error {
	length, bounded := s.Rate.Length()
	switch {
	case s.Think > 0 && !s.Rate.Closed():
		return fmt.Errorf("rate is %s and think is %v: clients that come at a rate do not wait for answers, so give one of them", brief(s.Rate), s.Think)
	case s.Arrival != "" && s.Rate.Closed() && s.Think == 0:
		return fmt.Errorf("arrival is %s and rate is 0, which sends as fast as answers come: give a rate, such as --rate 1000, or leave arrival out", s.Arrival)
	case !s.Rate.Closed() && s.MaxBacklog < uint64(s.Clients):
		return fmt.Errorf("max-backlog is %d and there are %d clients: each has a queue of its own, so it must be at least %d", s.MaxBacklog, s.Clients, s.Clients)
	case bounded && s.Count > 0:
		return fmt.Errorf("rate is %s, which ends after %v, and count is %d: leave out the last stage's time, so that the count is surely done", brief(s.Rate), length, s.Count)
	case bounded && s.Duration > length:
		return fmt.Errorf("rate is %s, which ends after %v, and duration is %v: nothing would be sent in the rest, so leave out duration, or the last stage's time", brief(s.Rate), length, s.Duration)
	}
	return nil
}

// brief is a plan as a sentence can hold it.
func brief(p pace.Plan) string {
	if text := []rune(p.String()); len(text) > 60 {
		return string(text[:60]) + "…"
	}
	return p.String()
}

func (s *Scenario) oneDatabase() error {
	switch {
	case s.Cluster != "" && s.DB != "":
		return fmt.Errorf("db and cluster each name a database: give one of them")
	case s.Cluster != "" && s.NoLoad:
		return fmt.Errorf("no-load drives what is loaded, and a new cluster is empty: leave one of no-load and cluster out")
	case s.Cluster == "" && s.Nemesis != "":
		return fmt.Errorf("nemesis hurts a cluster that stroppy has started: name one with cluster, such as --cluster etcd:3")
	case s.Nemesis == "" && (s.MaxOutage > 0 || s.MaxDegradation > 0):
		return fmt.Errorf("max-outage and max-degradation are limits on what faults do, and there is none: give some with nemesis")
	}
	return nil
}

func (s *Scenario) shares() error {
	sum := s.PayrollShare + s.JointShare + s.InquiryShare
	if sum > 1+1e-9 {
		return fmt.Errorf("payroll-share, joint-share and inquiry-share are %g together: they are parts of all transactions, so at most 1", sum)
	}
	return nil
}

func among(key, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	known = slices.DeleteFunc(known, func(name string) bool { return name == "" })
	return fmt.Errorf("%s is %q: it must be %s", key, value, or(known))
}

func between(key string, value, low, high float64) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%s is %s: it must be from %s to %s", key, number(value), number(low), number(high))
}

func long(key string, d time.Duration) error {
	if d >= 0 && d <= maxDuration {
		return nil
	}
	return fmt.Errorf("%s is %v: it must be from 0s to %v", key, d, maxDuration)
}

// or lists names as a sentence does: a, b or c.
func or(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%g", v)
}

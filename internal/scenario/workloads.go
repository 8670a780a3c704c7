package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The workloads.
const (
	Bank   = "bank"
	TPCB   = "tpcb"
	Events = "events"
	KV     = "kv"
)

// Workloads are all workloads by name, the default first.
func Workloads() []string { return []string{Bank, TPCB, Events, KV} }

// TPCBSettings are those of the workload tpcb.
type TPCBSettings struct {
	Scale    uint64    // how often the ratio's rows are there
	Ratio    [3]uint64 // branches, tellers and accounts of one scale
	History  bool      // each transaction adds its row to the history
	Versions bool      // each row counts the transactions that touched it
}

// EventsSettings are those of the workload events.
type EventsSettings struct {
	Streams  uint64 // 0: one a client
	Batch    int    // events in one commit
	Fragment uint64 // bytes of a value that one row or key holds; 0: as many as the database takes
}

// KVSettings are those of the workload kv. The shares are of the transactions, 0 to
// 1, and add up to 1.
type KVSettings struct {
	Preset       string // whose shares and distribution are the defaults; empty: the VoltDB profile
	Records      uint64
	KeySize      uint64 // bytes
	Reads        float64
	Updates      float64
	Inserts      float64
	Scans        float64
	Modifies     float64 // reads and writes one key in one transaction
	ScanLength   uint64  // records at most; each scan draws 1 to this many
	Distribution string  // of the keys that are chosen
	InFlight     int     // transactions that one connection has under way at once
}

// Size is a number of bytes, or a range from which each is drawn.
type Size struct{ Low, High uint64 }

func (s Size) String() string {
	if s.Low == s.High {
		return strconv.FormatUint(s.Low, 10)
	}
	return fmt.Sprintf("%d..%d", s.Low, s.High)
}

// MaxValue is the largest value that events and kv write, in bytes.
const MaxValue = 16 << 20

// The distributions of kv's keys, as YCSB names them.
const (
	Uniform = "uniform"
	Zipfian = "zipfian" // a few keys often, scattered over all
	Latest  = "latest"  // the keys that were inserted last, most often
)

var distributions = []string{Uniform, Zipfian, Latest}

// preset is a mix of kv. Those of YCSB are its core workloads as
// https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads gives them, and their
// properties: readproportion, updateproportion, insertproportion, scanproportion,
// readmodifywriteproportion, requestdistribution, maxscanlength.
type preset struct {
	name                                     string
	reads, updates, inserts, scans, modifies float64
	distribution                             string
}

var presets = []preset{
	{"ycsb-a", 0.5, 0.5, 0, 0, 0, Zipfian},
	{"ycsb-b", 0.95, 0.05, 0, 0, 0, Zipfian},
	{"ycsb-c", 1, 0, 0, 0, 0, Zipfian},
	{"ycsb-d", 0.95, 0, 0.05, 0, 0, Latest},
	{"ycsb-e", 0, 0, 0.05, 0.95, 0, Zipfian},
	{"ycsb-f", 0.5, 0, 0, 0, 0.5, Zipfian},
}

func (s *Scenario) takePreset(name string) error {
	for _, p := range presets {
		if p.name == name {
			k := &s.KV
			k.Preset, k.Distribution = name, p.distribution
			k.Reads, k.Updates, k.Inserts, k.Scans, k.Modifies = p.reads, p.updates, p.inserts, p.scans, p.modifies
			return nil
		}
	}
	return fmt.Errorf("it must be ycsb-a, ycsb-b, ycsb-c, ycsb-d, ycsb-e or ycsb-f")
}

// workloadKeys are the keys of the workloads beside the bank.
func workloadKeys() []Key {
	return []Key{
		of(whole("scale", "how often the rows of --ratio are there", func(s *Scenario) *uint64 { return &s.TPCB.Scale }), TPCB),
		of(ratio(), TPCB),
		of(flag("history", "each transaction adds a row to the history", func(s *Scenario) *bool { return &s.TPCB.History }), TPCB),
		of(flag("versions", "each row counts the transactions that touched it, so that their order can be checked; not what pgbench makes", func(s *Scenario) *bool { return &s.TPCB.Versions }), TPCB),
		of(whole("streams", "streams of events; 0 is one a client", func(s *Scenario) *uint64 { return &s.Events.Streams }), Events),
		of(small("batch", "events that one commit appends", func(s *Scenario) *int { return &s.Events.Batch }), Events),
		of(whole("fragment", "split values into pieces of so many bytes; 0 splits what the database cannot hold as one", func(s *Scenario) *uint64 { return &s.Events.Fragment }), Events),
		of(Key{Name: "preset", Value: "NAME", Usage: "a mix of YCSB: ycsb-a to ycsb-f; other settings of the mix change it",
			set: func(s *Scenario, t string) error { return s.takePreset(t) },
			get: func(s *Scenario) string { return s.KV.Preset },
		}, KV),
		of(whole("records", "records that are loaded", func(s *Scenario) *uint64 { return &s.KV.Records }), KV),
		of(whole("key-size", "bytes of a key", func(s *Scenario) *uint64 { return &s.KV.KeySize }), KV),
		of(valueSize(), Events, KV),
		of(real("read-share", "share of transactions that read one key, 0 to 1", func(s *Scenario) *float64 { return &s.KV.Reads }), KV),
		of(real("update-share", "share that write one key, 0 to 1", func(s *Scenario) *float64 { return &s.KV.Updates }), KV),
		of(real("insert-share", "share that insert a new key, 0 to 1", func(s *Scenario) *float64 { return &s.KV.Inserts }), KV),
		of(real("scan-share", "share that read keys in their order, 0 to 1", func(s *Scenario) *float64 { return &s.KV.Scans }), KV),
		of(real("modify-share", "share that read one key and write it, 0 to 1", func(s *Scenario) *float64 { return &s.KV.Modifies }), KV),
		of(unless(whole("scan-length", "records that a scan reads at most", func(s *Scenario) *uint64 { return &s.KV.ScanLength }), scanless), KV),
		of(text("distribution", "which keys are chosen: uniform, zipfian or latest", "NAME", func(s *Scenario) *string { return &s.KV.Distribution }), KV),
		of(small("in-flight", "transactions that one connection has under way at once", func(s *Scenario) *int { return &s.KV.InFlight }), KV),
	}
}

// closedLoop, allAlike and scanless say why a setting is idle; see Key.Idle.
func closedLoop(s *Scenario) string {
	if !s.Rate.Closed() {
		return ""
	}
	return "rate is 0, which leaves nothing waiting: give a rate, such as --rate 1000"
}

func allAlike(s *Scenario) string {
	switch {
	case s.Workload == KV && s.KV.Distribution == Uniform:
		return "distribution is uniform, which chooses all keys alike: give another one, such as --distribution zipfian"
	case s.Workload != KV && !s.Zipfian:
		return "zipfian is false, which chooses all accounts alike: give --zipfian"
	}
	return ""
}

func scanless(s *Scenario) string {
	if s.Workload != KV || s.KV.Scans > 0 {
		return ""
	}
	return "scan-share is 0, so that nothing scans: give a share, such as --scan-share 0.1 with the others adding up to 1"
}

// of makes a key one of these workloads alone.
func of(k Key, workloads ...string) Key {
	k.workloads = workloads
	return k
}

// Of says whether a workload has the key.
func (k *Key) Of(workload string) bool {
	return len(k.workloads) == 0 || slices.Contains(k.workloads, workload)
}

// fits refuses a key of other workloads than the one that is run.
func (k *Key) fits(source, workload string) error {
	if k.Of(workload) {
		return nil
	}
	return fmt.Errorf("%s is a setting of %s, and the workload is %s: leave it out", clip(source), or(k.workloads), workload)
}

func ratio() Key {
	return Key{Name: "ratio", Value: "B:T:A", Usage: "branches, tellers and accounts of one scale",
		set: func(s *Scenario, t string) error {
			parts := strings.Split(t, ":")
			var list [3]uint64
			for i := range list {
				n, err := uint64(0), error(nil)
				if len(parts) == len(list) {
					n, err = parseWhole(parts[i])
				}
				if err != nil || n == 0 || n > math.MaxInt32 {
					return fmt.Errorf("it must be three numbers from 1 to %d, such as 1:10:100000", math.MaxInt32)
				}
				list[i] = n
			}
			s.TPCB.Ratio = list
			return nil
		},
		get: func(s *Scenario) string {
			r := s.TPCB.Ratio
			return fmt.Sprintf("%d:%d:%d", r[0], r[1], r[2])
		},
	}
}

func valueSize() Key {
	return Key{Name: "value-size", Value: "BYTES", Usage: "bytes of a value, or a range such as 100..2000 from which each is drawn",
		set: func(s *Scenario, t string) error {
			low, high, several := strings.Cut(t, "..")
			if !several {
				high = low
			}
			from, err := parseWhole(low)
			to, err2 := parseWhole(high)
			switch {
			case err != nil || err2 != nil:
				return fmt.Errorf("it must be a number of bytes, such as 1024, or a range, such as 100..2000")
			case from > to:
				return fmt.Errorf("the range goes down: name the smaller number first, as in %d..%d", to, from)
			}
			s.ValueSize = Size{from, to}
			return nil
		},
		get: func(s *Scenario) string { return s.ValueSize.String() },
	}
}

// own says what is wrong with the settings of the workload that is run.
func (s *Scenario) own() error {
	switch s.Workload {
	case Bank:
		return s.shares()
	case TPCB:
		return between("scale", float64(s.TPCB.Scale), 1, 1_000_000)
	case Events:
		return s.events()
	case KV:
		return s.keyValue()
	}
	return nil
}

func (s *Scenario) events() error {
	for _, check := range []error{
		between("streams", float64(s.Events.Streams), 0, MaxClients),
		between("batch", float64(s.Events.Batch), 1, 1000),
		between("fragment", float64(s.Events.Fragment), 0, MaxValue),
		between("value-size", float64(s.ValueSize.Low), leastEvent, MaxValue),
		between("value-size", float64(s.ValueSize.High), leastEvent, MaxValue),
	} {
		if check != nil {
			return check
		}
	}
	if s.Events.Fragment > 0 && s.Events.Fragment < leastEvent {
		return fmt.Errorf("fragment is %d: it must be 0, or at least %d bytes", s.Events.Fragment, leastEvent)
	}
	return nil
}

// What a value must have room for: who wrote it, which it is, and its checksum.
const (
	leastEvent  = 32
	leastRecord = 64
	leastKey    = 16
)

func (s *Scenario) keyValue() error {
	k := &s.KV
	for _, check := range []error{
		among("distribution", k.Distribution, distributions),
		between("records", float64(k.Records), 1, MaxAccounts),
		between("key-size", float64(k.KeySize), leastKey, 512),
		between("value-size", float64(s.ValueSize.Low), leastRecord, MaxValue),
		between("value-size", float64(s.ValueSize.High), leastRecord, MaxValue),
		between("scan-length", float64(k.ScanLength), 1, 10_000),
		between("in-flight", float64(k.InFlight), 1, 1024),
		between("read-share", k.Reads, 0, 1),
		between("update-share", k.Updates, 0, 1),
		between("insert-share", k.Inserts, 0, 1),
		between("scan-share", k.Scans, 0, 1),
		between("modify-share", k.Modifies, 0, 1),
	} {
		if check != nil {
			return check
		}
	}
	if sum := k.Reads + k.Updates + k.Inserts + k.Scans + k.Modifies; math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("read-share, update-share, insert-share, scan-share and modify-share are %.4g together: they are all transactions, so they must add up to 1", sum)
	}
	return nil
}

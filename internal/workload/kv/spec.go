package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/registers"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
	"stroppy/internal/workload/recording"
	"stroppy/internal/workload/sampling"
)

// Spec is the workload as the commands know it.
func Spec() workload.Spec {
	return recording.Checked(workload.Spec{
		Opening: true,
		Words:   check.Words{One: "transaction"},
		Name:    Name, About: "reads and writes of single records by key, and scans: YCSB's mixes, 90 % reads if none is named",
		Data:      "kv data",
		Elsewhere: elsewhere(),
		Config: func() workload.Config {
			return &Config{
				Records: 100_000, KeySize: 32, ValueLow: 1024, ValueHigh: 1024,
				Mix: Mix{Reads: 0.9, Updates: 0.1, Distribution: Uniform}, ScanLength: 100, ZipfExponent: 0.99, InFlight: 1,
			}
		},
		Loaded: func(h history.Header) map[string]string {
			s, err := shapeOf(h.Keys)
			if err != nil {
				return nil
			}
			return map[string]string{"records": decimal(h.Objects), "key-size": decimal(s.key), "value-size": setting.Range(s.low, s.high)}
		},
		Registers: true,
		Tables:    tables,
		Objects:   func(h history.Header) workload.Objects { return formulaOf(h) },
		Format: workload.Format{ // there are no rows
			Operation: func(op *history.Op) string {
				var parts []string
				if op.Write {
					parts = append(parts, fmt.Sprintf("write %d bytes", op.Amount))
				}
				if op.Observed {
					parts = append(parts, "saw "+found(op.State, op.Value, op.Writer))
				}
				return cmp.Or(strings.Join(parts, ", "), "not seen")
			},
			Short: func(tx *history.Transaction, o workload.Objects) string {
				if tx.Kind != scan || len(tx.Ops) == 0 {
					return ""
				}
				return fmt.Sprintf("from %s, %d records", o.Name(tx.Ops[0].Object), len(tx.Ops))
			},
			Row: func(history.Row) string { return "" },
			End: func(a history.Object) string { return " " + found(a.State, a.Value, a.Writer) },
		},
	}, declared(), checks)
}

// declared returns the checks, with the files that each needs.
func declared() []check.Declared {
	return []check.Declared{
		recording.Declare(registers.Values, history.Recorded,
			"every read returned, whole, what the load or a transaction that was not refused had written to "+
				"that record"),
		recording.Declare(registers.Fresh, history.Recorded,
			"no read returned a value that an acknowledged write had replaced before the read began"),
		recording.Declare(registers.NoLostUpdate, history.Recorded,
			"no two transactions that read and write one record had read the same value of it"),
		recording.Declare(registers.Scans, history.Recorded,
			"every scan returned its records in order, and none was missing that was there"),
		recording.Declare(registers.Linearizable, history.Recorded,
			"the reads and writes of each record have an order that agrees with real time"),
		recording.Declare(check.Durable, history.Recorded|history.EndObjects,
			"every record of the load and of an acknowledged insert is there, with the value of the last "+
				"acknowledged write, of one beside it or of an unknown one"),
		recording.Declare(check.NoGhost, history.Recorded|history.EndObjects,
			"nothing is there that no transaction wrote, or one that was refused"),
	}
}

// found describes what was found under a key.
func found(state history.State, bytes int64, last history.ID) string {
	switch state {
	case history.Absent:
		return "no such record"
	case history.Whole:
		return fmt.Sprintf("%d bytes%s", bytes, workload.MadeBy(last))
	case history.Broken:
		return fmt.Sprintf("%d bytes that no writer wrote like this", bytes)
	}
	return fmt.Sprintf("%d bytes under a key that no formula makes", bytes)
}

// The distributions of the keys that are chosen.
const (
	Uniform = "uniform"
	Zipfian = "zipfian" // a few keys often, scattered over all
	Latest  = "latest"  // the keys that were inserted last, most often
)

// Config configures the records and the clients.
type Config struct {
	workload.Session
	// Records, Seed, KeySize, ValueLow and ValueHigh make the records; sizes are in
	// bytes, and a value has ValueLow to ValueHigh. Zero is right only where an
	// earlier load is attached to: whatever the database holds.
	Records, Seed       uint64
	KeySize             uint64
	ValueLow, ValueHigh uint64

	// Connections is the number of connections. Each has InFlight transactions in progress, so the number of clients
	// is the product.
	Connections int
	InFlight    int

	Mix
	Preset string // whose mix it is; empty: 90 % reads

	ScanLength   uint64 // records; a scan asks for 1 to as many
	ZipfExponent float64
}

// Mix configures the transactions and the choice of records.
type Mix struct {
	Reads, Updates, Inserts, Scans, Modifies float64 // shares, which add up to 1

	Distribution string // empty is uniform
}

// Clients returns the number of clients.
func (c *Config) Clients() int { return c.Connections * max(c.InFlight, 1) }

const (
	leastKey   = uint64(keyHead)
	leastValue = uint64(fillerAt)
	mostKey    = 512
	mostValue  = 16 << 20
	mostScan   = 10_000

	maxInFlight = 1024
	maxLoaded   = 1_000_000_000_000 // records of a load
	maxClients  = 1<<history.ClientBits - 2
)

// check returns the first error of a configuration, for a database with these limits. The bounds of single settings
// are checked elsewhere.
func (c *Config) check(l db.Limits) error {
	most := uint64(l.Value)
	if commit := uint64(l.Commit); commit > c.KeySize {
		most = min(most, commit-c.KeySize)
	}
	switch n := c.Clients(); {
	case n < 1 || n > maxClients:
		return fmt.Errorf("clients is %d and in-flight %d: multiplied they must be 1 to %d", c.Connections, c.InFlight, maxClients)
	case l.Value > 0 && c.ValueHigh > most:
		return fmt.Errorf("value-size is up to %d bytes, and this database takes values of at most %d here: take a smaller one", c.ValueHigh, most)
	}
	return c.Validate()
}

// Validate implements workload.Config.
func (c *Config) Validate() error {
	if sum := c.Reads + c.Updates + c.Inserts + c.Scans + c.Modifies; math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("read-share, update-share, insert-share, scan-share and modify-share are %.4g together: they are all transactions, so they must add up to 1", sum)
	}
	return nil
}

// presets are the mixes of YCSB's core workloads, as
// https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads gives them, by their
// properties: readproportion, updateproportion, insertproportion, scanproportion,
// readmodifywriteproportion, requestdistribution.
var presets = map[string]Mix{
	"ycsb-a": {0.5, 0.5, 0, 0, 0, Zipfian},
	"ycsb-b": {0.95, 0.05, 0, 0, 0, Zipfian},
	"ycsb-c": {1, 0, 0, 0, 0, Zipfian},
	"ycsb-d": {0.95, 0, 0.05, 0, 0, Latest},
	"ycsb-e": {0, 0, 0.05, 0.95, 0, Zipfian},
	"ycsb-f": {0.5, 0, 0, 0, 0.5, Zipfian},
}

// elsewhere returns the names of YCSB and of its core workloads, with our flags.
func elsewhere() map[string]string {
	names := map[string]string{"ycsb": "--preset ycsb-a"}
	for preset := range presets {
		letter := strings.TrimPrefix(preset, "ycsb-")
		names[preset], names["workload"+letter] = "--preset "+preset, "--preset "+preset
	}
	return names
}

// Settings implements workload.Config.
func (c *Config) Settings() []setting.Setting {
	preset := setting.Text(&c.Preset, "preset", "NAME", "a mix of YCSB: ycsb-a to ycsb-f; other settings of the mix change it")
	preset.First, preset.Choices = true, slices.Sorted(maps.Keys(presets))
	preset.Set = func(name string) error {
		mix, ok := presets[name]
		if !ok {
			return errors.New("it must be " + setting.Or(preset.Choices))
		}
		c.Preset, c.Mix = name, mix
		return nil
	}
	distribution := setting.Text(&c.Distribution, "distribution", "NAME", "which keys are chosen: uniform, zipfian or latest").OneOf(Uniform, Zipfian, Latest)
	distribution.Aliases = []setting.Alias{{
		Name: "zipfian", Help: "short for --distribution zipfian", Values: map[string]string{"true": Zipfian, "false": Uniform},
		Says: "which keys are chosen",
	}}
	return []setting.Setting{
		preset,
		setting.Whole(&c.Records, "records", "records that are loaded").OfData().Between(1, maxLoaded).Sized(nil),
		setting.Whole(&c.KeySize, "key-size", "bytes of a key").OfData().Between(float64(leastKey), mostKey),
		setting.Bytes(&c.ValueLow, &c.ValueHigh, leastValue, mostValue, "value-size", "bytes of a value, or a range such as 100..2000").OfData(),
		setting.Share(&c.Reads, "read-share", "share of transactions that read one key, 0 to 1"),
		setting.Share(&c.Updates, "update-share", "share that write one key, 0 to 1"),
		setting.Share(&c.Inserts, "insert-share", "share that insert a new key, 0 to 1"),
		setting.Share(&c.Scans, "scan-share", "share that read keys in their order, 0 to 1"),
		setting.Share(&c.Modifies, "modify-share", "share that read one key and write it, 0 to 1"),
		setting.Whole(&c.ScanLength, "scan-length", "records that a scan reads at most").Between(1, mostScan).IdleIf(func() string {
			if c.Scans > 0 {
				return ""
			}
			return "scan-share is 0, so that nothing scans: give a share, such as --scan-share 0.1 with the others adding up to 1"
		}),
		distribution,
		sampling.Exponent(&c.ZipfExponent, "how uneven the distributions zipfian and latest are", func() string {
			if c.Distribution != Uniform {
				return ""
			}
			return "distribution is uniform, which chooses all keys alike: give another one, such as --distribution zipfian"
		}),
		setting.Small(&c.InFlight, "in-flight", "transactions in progress on one connection").Between(1, maxInFlight),
	}
}

// New implements workload.Config.
func (c *Config) New(database db.Database, o workload.Options) (workload.Workload, error) {
	k := *c
	k.Connections, k.Seed, k.Session = o.Clients, o.Seed, o.Session
	if !o.Given("records") {
		k.Records = 0
	}
	if !o.Given("key-size") {
		k.KeySize = 0
	}
	if !o.Given("value-size") {
		k.ValueLow, k.ValueHigh = 0, 0
	}
	return New(database, k)
}

func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	f, err := recordedFormula(recorded)
	if err != nil {
		return nil, err
	}
	in := registers.Input{Input: recorded.Input, Records: f.records, Place: f.place, At: f.places.Backward, Insert: insert, Modify: modify, Scan: scan}
	writer := func(n uint64, id history.ID) history.ID { return id }
	if opening := recorded.Opening; opening != nil {
		writer = func(n uint64, id history.ID) history.ID {
			if id == 0 {
				id = opening.Writer(n)
			}
			return id
		}
	}
	in.Name, in.Length = f.Name, func(n uint64, id history.ID) int64 { return int64(f.size(n, writer(n, id))) }
	in.Value = func(b []byte, n uint64, id, previous history.ID) []byte {
		return f.value(b, n, writer(n, id), previous)
	}
	if f.low == f.high {
		in.Bytes = int64(f.low)
	}
	if recorded.Tables == nil {
		return registers.Check(ctx, in)
	}
	m := measure(recorded.Header)
	in.Meter = &m.Meter
	results, err := registers.Check(ctx, in)
	if m.Whole {
		*recorded.Tables = m.tables()
	}
	return results, err
}

// recordedFormula returns the common formula of the records of all histories. It returns an error if their headers
// lack the lengths of keys and values, or differ.
func recordedFormula(recorded recording.Input) (*formula, error) {
	headers := []history.Header{recorded.Header}
	for _, source := range recorded.History {
		headers = append(headers, source.Header())
	}
	var first shape
	for i, h := range headers {
		s, err := shapeOf(h.Keys)
		switch {
		case err != nil:
			return nil, fmt.Errorf("check the recording of run %d: its header lacks the lengths of keys and values", h.Run)
		case i == 0:
			first = s
		case s != first:
			return nil, fmt.Errorf("check the recordings of the runs %d and %d: their headers have different lengths of keys and values", headers[0].Run, h.Run)
		}
	}
	return formulaOf(recorded.Header), nil
}

// formulaOf returns the formula of a history's records. Without sizes in the header it still knows places.
func formulaOf(h history.Header) *formula {
	s, err := shapeOf(h.Keys)
	if err != nil {
		s = shape{leastKey, leastValue, leastValue}
	}
	return newFormula(h.Seed, h.Objects, s)
}

// Number is the inverse of Name. The text behind the key is optional. A record of the load needs its number alone,
// with or without the word.
func (f *formula) Number(name string) (uint64, error) {
	key, _, _ := strings.Cut(name, " ")
	n, ok := f.number([]byte(key), f.newKey())
	if !ok {
		if n, ok := workload.ParseNumber(name, "record"); ok {
			if n >= f.records {
				return 0, fmt.Errorf("%q is none of the %d records that were loaded, which have the numbers 0 to %d", name, f.records, f.records-1)
			}
			return n, nil
		}
		return 0, fmt.Errorf("%q is no key of these records, nor the number of one: a key looks like %s", name, strings.Fields(f.Name(0))[0])
	}
	if n < MaxRecords && n >= f.records {
		return 0, fmt.Errorf("%s is none of the %d records that were loaded", key, f.records)
	}
	return n, nil
}

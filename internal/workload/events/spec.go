package events

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/logs"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
	"stroppy/internal/workload/recording"
)

// Spec is the log of events as the commands know it.
func Spec() workload.Spec {
	return recording.Checked(workload.Spec{
		Opening: true,
		Words:   sentenceWords(),
		Name:    Name, About: "events at the ends of streams, in batches and in pieces; every one is read back",
		Data:   "events data",
		Config: func() workload.Config { return &Config{Batch: 1, Size: Size{1024, 1024}} },
		Loaded: func(h history.Header) map[string]string {
			return map[string]string{"streams": strconv.FormatUint(h.Objects, 10)}
		},
		Tables:  tables,
		Objects: func(h history.Header) workload.Objects { return names(h.Objects) },
		Format: workload.Format{
			Operation: func(op *history.Op) string {
				text := fmt.Sprintf("append %d bytes", op.Amount)
				if !op.Observed {
					return text + ", where is not known"
				}
				return fmt.Sprintf("%s behind place %d", text, op.Version)
			},
			Row: func(leg history.Row) string {
				if leg.State == history.Broken {
					return fmt.Sprintf(" place %d  not whole", leg.Version)
				}
				return fmt.Sprintf(" place %d  %d bytes", leg.Version, leg.Amount)
			},
			End: func(a history.Object) string {
				return fmt.Sprintf(" ends at place %d%s", a.Version, workload.MadeBy(a.Writer))
			},
		},
	}, declared(), checks)
}

// declared returns the checks, with the files that each needs.
func declared() []check.Declared {
	return []check.Declared{
		recording.Declare(check.Durable, history.Recorded|history.EndLedger,
			"every acknowledged event was read back, whole"),
		recording.Declare(check.NoGhost, history.Recorded|history.EndState,
			"nothing aborted is in the log, and nothing there was never sent"),
		recording.Declare(check.ExactlyOnce, history.Recorded|history.EndLedger, "no event is in the log twice"),
		recording.Declare(logs.Whole, history.EndLedger,
			"every entry is byte for byte what its writer made, and every batch is there as a whole or not at all"),
		recording.Declare(logs.Order, history.Recorded|history.EndLedger,
			"batches stand together, at the acknowledged places, and in the order in which they were acknowledged"),
		recording.Declare(logs.Continuous, history.EndState, "no stream has a hole before its end"),
	}
}

// Config configures the log and the appends.
type Config struct {
	workload.Session
	Clients  int
	Seed     uint64 // 0: the seed of the log in the database
	Streams  uint64 // 0: as many as the log in the database has
	Batch    int    // events in one commit
	Size     Size   // of the values
	Fragment uint64 // bytes of a value that one piece holds; 0: as many as the database takes
}

// Size is a range of bytes from which each value's length is drawn.
type Size struct{ Low, High uint64 }

const (
	maxStreams = 1<<17 - 1 // each client may have one
	maxBatch   = 1000      // events of one commit
	maxValue   = 16 << 20  // bytes
	maxCommit  = 256 << 20 // bytes, which drivers keep until they are sent
)

// Validate implements workload.Config.
func (c *Config) Validate() error {
	if c.Fragment > 0 && c.Fragment < leastValue {
		return fmt.Errorf("fragment is %d: it must be 0, or at least %d bytes", c.Fragment, leastValue)
	}
	return nil
}

// pieces returns the number of pieces of the longest value.
func (c *Config) pieces() uint64 { return (c.Size.High + c.Fragment - 1) / c.Fragment }

// limit sets the size of a piece and refuses commits that the database cannot take. around is the number of bytes
// that a piece needs beside its part of the value.
func (c *Config) limit(database db.Database, around uint64) error {
	l := database.Limits()
	most := uint64(l.Value)
	switch {
	case most == 0 && c.Fragment == 0:
		c.Fragment = maxValue
	case most == 0:
	case c.Fragment == 0:
		c.Fragment = min(most-around, maxValue)
	case c.Fragment+around > most:
		return fmt.Errorf("fragment is %d, and this database holds at most %d bytes of a value in one piece: take less, or 0 for as many as it holds", c.Fragment, most-around)
	}
	commit := uint64(c.Batch) * (c.Size.High + c.pieces()*around)
	if most := uint64(l.Commit); most > 0 && commit > most {
		return fmt.Errorf("%d events of up to %d bytes make commits of up to %d bytes, and this database takes at most %d: use a smaller batch or value-size",
			c.Batch, c.Size.High, commit, most)
	}
	return nil
}

// Settings implements workload.Config.
func (c *Config) Settings() []setting.Setting {
	return []setting.Setting{
		setting.Whole(&c.Streams, "streams", "streams of events; 0 is one per client").OfData().Between(0, maxStreams-1),
		setting.Small(&c.Batch, "batch", "events that one commit appends").Between(1, maxBatch),
		setting.Whole(&c.Fragment, "fragment", "split values into pieces of so many bytes; 0 splits only values that the database cannot hold").Between(0, maxValue),
		setting.Bytes(&c.Size.Low, &c.Size.High, leastValue, maxValue, "value-size", "bytes of a value, or a range such as 100..2000"),
	}
}

// defaultEvents is the number of events of a run without a given length, as in the study that the workload repeats.
const defaultEvents = 4096

// DefaultCount implements workload.Counted.
func (c *Config) DefaultCount() uint64 {
	batch := uint64(max(c.Batch, 1))
	return (defaultEvents + batch - 1) / batch
}

// New implements workload.Config.
func (c *Config) New(database db.Database, o workload.Options) (workload.Workload, error) {
	e := *c
	e.Clients, e.Seed, e.Session = o.Clients, o.Seed, o.Session
	if o.Undriven {
		e.Batch = 1
	}
	switch {
	case !o.Given("streams"):
		e.Streams = 0
	case e.Streams == 0:
		e.Streams = uint64(o.Clients)
	}
	return New(database, e)
}

// Keys in the header of a history for the checks.
const (
	keyBatch = "batch"    // events in one commit
	keyLow   = "size_low" // bytes of a value
	keyHigh  = "size_high"
)

func sentenceWords() check.Words {
	return check.Words{One: "append", Book: "log", Part: "event", Amount: func(n int64) string { return strconv.FormatInt(n, 10) }}
}

func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	h := recorded.Header
	f := formula{h.Seed}
	var runs configs
	in := logs.Input{Input: recorded.Input, Streams: h.Objects, Words: sentenceWords()}
	in.Name = names(h.Objects).Name
	for _, source := range in.History {
		h := source.Header()
		c, err := configOf(h)
		if err != nil {
			return nil, fmt.Errorf("check the recording of run %d: %w", h.Run, err)
		}
		runs = append(runs, configOfRun{h.Run, c})
	}
	in.Batch = func(id history.ID) uint32 { return uint32(runs.of(id).Batch) }
	in.Length = func(id history.ID, member uint32) int64 {
		return int64(f.length(runs.of(id).Size, id, member))
	}
	if recorded.Tables == nil {
		return logs.Check(ctx, in)
	}
	m, err := measure(recorded.Header)
	if err != nil {
		return nil, err
	}
	in.Meter = &m.Meter
	results, err := logs.Check(ctx, in)
	if m.Whole {
		*recorded.Tables = m.tables()
	}
	return results, err
}

// configs holds the distinct configurations of the given runs, mostly one.
type configs []configOfRun

type configOfRun struct {
	run    uint64
	config Config
}

// of returns the one of the run of an append.
func (c configs) of(id history.ID) *Config {
	for i := range c {
		if c[i].run == id.Run() {
			return &c[i].config
		}
	}
	return new(Config)
}

// configOf returns what the appends of one run are like: its batch and its sizes.
func configOf(h history.Header) (c Config, err error) {
	number := func(key string, least, most uint64) (n uint64) {
		if n, e := strconv.ParseUint(h.Keys[key], 10, 64); e == nil && n >= least && n <= most {
			return n
		}
		err = fmt.Errorf("the header of the history has the impossible %s %q", key, h.Keys[key])
		return 0
	}
	c.Batch = int(number(keyBatch, 1, maxBatch))
	c.Size = Size{number(keyLow, leastValue, maxValue), number(keyHigh, leastValue, maxValue)}
	if err == nil && c.Size.Low > c.Size.High {
		err = fmt.Errorf("the header of the history has impossible sizes of values, %d to %d bytes", c.Size.Low, c.Size.High)
	}
	return c, err
}

// names converts between the streams of a log and their names.
type names uint64

// Name returns stream n as reports show it.
func (streams names) Name(n uint64) string { return "stream " + strconv.FormatUint(n, 10) }

// Number is the inverse of Name; the word before the number can be left out.
func (streams names) Number(name string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(name, "stream")), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no stream: one is written as its number, such as 0", name)
	}
	if n >= uint64(streams) {
		return 0, fmt.Errorf("%q is none of the %d streams of this log, which have the numbers 0 to %d", name, streams, streams-1)
	}
	return n, nil
}

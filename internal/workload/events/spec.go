package events

import (
	"fmt"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
	"stroppy/internal/workload/recording"
)

// Spec is the log of events as the commands know it.
func Spec() workload.Spec {
	return workload.Spec{
		Name: Name, About: "events at the ends of streams, in batches and in pieces; every one is read back",
		Data:   "events data",
		Config: func() workload.Config { return &Config{Batch: 1, Size: Size{1024, 1024}} },
		Loaded: func(h history.Header) map[string]string {
			return map[string]string{"streams": strconv.FormatUint(h.Accounts, 10)}
		},
		Check:   recording.Checker(Name, checks),
		Checks:  Checks,
		Tables:  Tables,
		Objects: func(h history.Header) workload.Objects { return NamesOf(h) },
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
	}
}

// Settings implements workload.Config.
func (c *Config) Settings() []setting.Setting {
	list := []setting.Setting{
		setting.Whole(&c.Streams, "streams", "streams of events; 0 is one a client").OfData().Between(0, maxStreams-1),
		setting.Small(&c.Batch, "batch", "events that one commit appends").Between(1, maxBatch),
		setting.Whole(&c.Fragment, "fragment", "split values into pieces of so many bytes; 0 splits what the database cannot hold as one").Between(0, maxValue),
		setting.Bytes(&c.Size.Low, &c.Size.High, leastValue, maxValue, "value-size", "bytes of a value, or a range such as 100..2000 from which each is drawn"),
	}
	for i := range list {
		list[i].Group = setting.Workload
	}
	return list
}

// defaultEvents is how many events are appended where nobody says how many, or how
// long: as many as in the study that the workload repeats.
const defaultEvents = 4096

// DefaultCount implements workload.Config.
func (c *Config) DefaultCount() uint64 {
	batch := uint64(max(c.Batch, 1))
	return (defaultEvents + batch - 1) / batch
}

// Clone implements workload.Config.
func (c *Config) Clone() workload.Config {
	d := *c
	return &d
}

// New implements workload.Config.
func (c *Config) New(database db.Database, o workload.Options) (workload.Workload, error) {
	e := *c
	e.Clients, e.Seed, e.Isolation, e.Mode = o.Clients, o.Seed, o.Isolation, o.Mode
	switch {
	case !o.Given("streams"):
		e.Streams = 0
	case e.Streams == 0:
		e.Streams = uint64(o.Clients)
	}
	return New(database, e)
}

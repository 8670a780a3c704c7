package tpcb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/check/totals"
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
		Words:   sentenceWords(),
		Name:    Name, About: "the transaction of TPC-B on pgbench's own tables; the sums and every row are checked",
		Data:      "tpcb data",
		Elsewhere: map[string]string{"pgbench": "", "tpc-b": ""},
		Config:    func() workload.Config { return new(DefaultConfig()) },
		Loaded:    loaded,
		Registers: true,
		Objects: func(h history.Header) workload.Objects {
			f, _ := recorded(h) // of a header that says nothing every row is unknown
			return &f.size
		},
		Format: workload.FormatAmounts(func(n int64) string { return check.Group(int(n)) }),
	}, declared(), checks)
}

// declared are the checks, with the files that each needs.
func declared() []check.Declared {
	return []check.Declared{
		recording.Declare(check.Total, history.EndState,
			"the balances of accounts, of tellers and of branches grew by the same sum, the sum of all "+
				"committed amounts"),
		recording.Declare(check.Ledger, history.EndState,
			"opening + amounts of the history = end balance, for every account, teller and branch"),
		recording.DeclareIf(withHistory, check.Durable, history.Recorded|history.EndState,
			"every committed transaction is in the history"),
		recording.DeclareIf(withHistory, check.NoGhost, history.Recorded|history.EndState,
			"nothing aborted is in the history, and nothing there was never sent"),
		recording.DeclareIf(withHistory, check.ExactlyOnce, history.Recorded|history.EndLedger,
			"no transaction was applied twice"),
		recording.Declare(check.Serializable, history.Recorded|history.EndState,
			"one order of all transactions explains every balance that was read"),
		recording.Declare(check.Strict, history.Recorded|history.EndState, "one that agrees with real time does"),
	}
}

// withHistory reports whether one of these runs left entries in the history.
func withHistory(runs []history.Header) bool {
	driven := slices.DeleteFunc(slices.Clone(runs), func(h history.Header) bool { return !check.Driven(h) })
	return len(driven) == 0 || slices.ContainsFunc(driven, func(h history.Header) bool { return !bare(h) })
}

// bare reports whether a run left no entries in the history.
func bare(h history.Header) bool {
	return check.Driven(h) && h.Keys[keyHistory] == strconv.FormatBool(false)
}

// loaded returns scale and ratio of the data that a recording is of.
func loaded(h history.Header) map[string]string {
	if _, err := recorded(h); err != nil {
		return nil
	}
	return map[string]string{"scale": h.Keys[factScale], "ratio": h.Keys[factRatio]}
}

// Settings implements workload.Config.
func (c *Config) Settings() []setting.Setting {
	return append([]setting.Setting{
		setting.Whole(&c.Scale, "scale", "multiple of the rows of --ratio").OfData().Between(1, 1_000_000).Sized(nil),
		c.ratio().OfData(),
		setting.Switch(&c.History, "history", "each transaction adds a row to the history"),
		c.versions().OfData(),
	}, sampling.Settings(&c.Zipfian, &c.ZipfExponent)...)
}

// versions is a switch with a third state, nobody's choice, which is the data model's.
func (c *Config) versions() setting.Setting {
	s := setting.Switch(&c.Versions, "versions", "each row counts its transactions, so that their order can be checked; pgbench's tables have no versions (on SQL off by default, else on)")
	set, get := s.Set, s.Get
	s.Set = func(t string) error {
		err := set(t)
		c.Plain = err == nil && !c.Versions
		return err
	}
	s.Get = func() string {
		if !c.Versions && !c.Plain {
			return ""
		}
		return get()
	}
	return s
}

func (c *Config) ratio() setting.Setting {
	return setting.Setting{
		Name: "ratio", Value: "B:T:A", Help: "branches, tellers and accounts of one scale",
		Set: func(t string) error {
			ratio, ok := parseRatio(t)
			if !ok {
				return fmt.Errorf("it must be three numbers from 1 to %d, such as 1:10:100000", math.MaxInt32)
			}
			c.Ratio = ratio
			return nil
		},
		Get: func() string { return ratioText(c.Ratio) },
	}
}

// Validate implements workload.Config.
func (c *Config) Validate() error { return nil }

// New implements workload.Config.
func (c *Config) New(database db.Database, o workload.Options) (workload.Workload, error) {
	t := *c
	t.Clients, t.Seed, t.Session = o.Clients, o.Seed, o.Session
	t.AnyRows = !o.Given("versions")
	if !o.Given("scale") && !o.Given("ratio") {
		t.Scale, t.Ratio = 0, [noKind]uint64{}
	}
	return New(database, t)
}

func checks(ctx context.Context, input recording.Input) ([]check.Result, error) {
	f, err := recorded(input.Header)
	if err != nil {
		return nil, fmt.Errorf("check %s: its header lacks the numbers of branches, tellers and accounts: it is damaged", input.Dir)
	}
	in := totals.GroupsInput{
		Input: input.Input, Words: sentenceWords(),
		Versions: f.versions, Unexpected: f.unexpected,
	}
	for k, rows := range f.size {
		in.Groups = append(in.Groups, totals.Group{Name: columns[k].table, Rows: rows})
	}
	in.Name = f.size.Name
	if opening := input.Opening; opening != nil {
		in.Opening, in.Unexpected = opening.Value, 0
	}
	for _, source := range in.History {
		if header := source.Header(); bare(header) {
			in.Bare = append(in.Bare, header.Run)
		}
	}
	return totals.Groups(ctx, in)
}

func sentenceWords() check.Words {
	return check.Words{One: "transaction", Book: "history", Part: "row", Amount: func(n int64) string { return strconv.FormatInt(n, 10) }}
}

// Config configures the data and the clients.
type Config struct {
	workload.Session
	// Scale, Ratio and Seed make the data. Zero is right only where an earlier load
	// is attached to: whatever the database holds.
	Scale uint64
	Ratio [noKind]uint64 // branches, tellers and accounts of one scale
	Seed  uint64

	Clients int
	History bool // each transaction adds its row to the history

	// Versions lets each row count the transactions that touched it, in tables that are not pgbench's. Without SQL
	// rows do so unless Plain is set.
	Versions bool
	// Plain asks for rows without versions on any database.
	Plain bool
	// AnyRows takes rows with or without versions, as an earlier load has made them.
	AnyRows bool

	Zipfian      bool
	ZipfExponent float64 // of rank^-exponent, above 0
}

// DefaultConfig returns the default: pgbench's ratio. The caller sets Seed and Clients.
func DefaultConfig() Config {
	return Config{Scale: 1, Ratio: [noKind]uint64{1, 10, 100_000}, History: true, ZipfExponent: 0.99}
}

// check returns an error in one sentence for a wrong configuration, whatever the
// database. The bounds of single settings are theirs.
func (c *Config) check() error {
	if c.Mode == workload.Procedure && c.Versions && !c.AnyRows {
		return errVersionsProcedure
	}
	if c.Versions && !c.AnyRows && !c.History {
		return errVersionsHistory
	}
	if c.Scale == 0 && c.Ratio == [noKind]uint64{} {
		return nil
	}
	_, err := c.size()
	return err
}

var (
	errVersionsProcedure = fmt.Errorf("the procedure is written for pgbench's own rows: take pipelined or interactive with --versions")
	errVersionsAlways    = fmt.Errorf("the rows of tpcb always have versions on this database: leave out --versions=false")
	errVersionsSimple    = fmt.Errorf("rows with versions need statements that write several columns of a row, which this database lacks: leave --versions out")
	errProcedureHistory  = fmt.Errorf("the procedure of this database leaves no id in the history, so that nothing could be looked up there: take --history=false with the mode procedure")
	errVersionsHistory   = fmt.Errorf("versions come from the rows of the history: leave out --history=false or --versions")
)

// maxRows bounds what is loaded, so that no sum of ids or rows overflows.
const maxRows = 1 << 40

// size returns the rows that are asked for, of which there must be some.
func (c *Config) size() (s size, err error) {
	for k, rows := range c.Ratio {
		switch {
		case c.Scale == 0 || slices.Contains(c.Ratio[:], 0):
			return s, fmt.Errorf("scale is %d and ratio %s: each number must be 1 or more", c.Scale, ratioText(c.Ratio))
		case rows > math.MaxInt32 || c.Scale > maxRows/rows:
			return s, fmt.Errorf("scale %d with ratio %s is more than %d rows: take less", c.Scale, ratioText(c.Ratio), uint64(maxRows))
		}
		s[k] = c.Scale * rows
	}
	if s[branch] > math.MaxInt32 || s[teller] > math.MaxInt32 {
		return s, fmt.Errorf("scale %d with ratio %s has more branches or tellers than numbers of 4 bytes can distinguish: take less", c.Scale, ratioText(c.Ratio))
	}
	return s, nil
}

package workload

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/setting"
)

// Spec is one workload as everything generic knows it. Its folder has a function
// that returns it, and the registry in cli a line that calls it.
type Spec struct {
	Name  string // in commands, histories and results
	About string // one line
	Data  string // a name for the data in sentences, such as "kv data"
	// Elsewhere are names that other tools have for it, each with the flags that make it the
	// same here.
	Elsewhere map[string]string
	// Steps is set if pop loads the workload, pay runs it and check checks it, each by itself.
	Steps bool

	// Config returns the settings of a new run, with their defaults.
	Config func() Config
	// Loaded returns the settings of the data that a recording is of, by their names.
	Loaded func(h history.Header) map[string]string

	// Opening is set if the checks can take the state at the start of a run as the loaded data. The others need no such
	// state, because the transactions of one run do not touch what another run wrote.
	Opening bool

	// Registers is set if each object is a register: its content is known by its writer, and the load is writer 0.
	Registers bool

	// Check makes all checks of one recorded run, or of several against the same data
	// together, from their directories alone. Violations are handed to report, which
	// may be nil. A directory without a readable history is an error; an end state
	// that is not there leaves unknown what needs it.
	Check func(ctx context.Context, dirs []string, expect isolation.Level, report func(check.Violation)) (check.Checked, error)
	// CheckPart makes the checks of some transactions of a recording that goes on: what they
	// show is a violation in the whole one too.
	CheckPart func(ctx context.Context, h history.Header, expect isolation.Level, part check.Source) ([]check.Result, error)
	// Unproved returns a sentence that gives the reason why nothing of a recording is checked, or an empty string. A nil
	// Unproved means that something always is.
	Unproved func(h history.Header) string
	// Words are the nouns of its sentences about findings.
	Words check.Words
	// Unsafe is the way of writing that loses updates below snapshot isolation; nil: it has none.
	Unsafe *UnsafeStyle
	// Checks declares all checks, in the order in which they are reported. A check without the
	// files that it needs is unknown.
	Checks []check.Declared
	// Study is set if the report has the tables of the Stroppy study.
	Study bool
	// Tables returns additional tables for the report of one recorded run, unless Check has made them already; nil:
	// there are none.
	Tables func(ctx context.Context, recorded *history.Reader) ([]Table, error)

	// Isolation is its test of isolation levels; nil: it has none.
	Isolation *IsolationTest

	// Objects names the objects that the transactions of a recording touch.
	Objects func(h history.Header) Objects
	// Format writes the recorded state of an object.
	Format Format
}

// UnsafeStyle is a value of a setting with which transactions read, compute and write the result.
type UnsafeStyle struct {
	Setting string // as Drive.Style of a result has it
	Value   string
	Safe    string // the value that is safe at any level
}

// IsolationTest is a workload as a test of isolation levels.
type IsolationTest struct {
	// Settings are the settings of its runs, by name. Steps are added if clients run transactions of the database
	// step by step. Predicates are added if such transactions read by predicate, in SQL or by ranges of keys, and SQL
	// if they do so in SQL alone.
	Settings, Steps, Predicates, SQL [][2]string
	// StepsOnly is set if it has no other transactions than steps.
	StepsOnly bool
	// Finds are the anomalies that each check, by its name, would name where it is
	// decided: their short names in the literature, such as P4.
	Finds map[string][]string
	// Decides is set if these checks decide the claim whatever else they find. A check that named an anomaly and is
	// not required then shows that the claim is kept.
	Decides bool
}

// Config is a pointer to the settings of a workload.
type Config interface {
	// Settings are bound to the fields of the Config.
	Settings() []setting.Setting
	// Validate returns an error in one sentence if several settings contradict each other.
	Validate() error
	// New binds the workload to an open database. It does not change the Config.
	New(database db.Database, o Options) (Workload, error)
}

// Counted is implemented by a Config whose runs have a default number of transactions. The others have a default
// duration.
type Counted interface{ DefaultCount() uint64 }

// Attended is satisfied by a Config whose runs have clients in the background, each with a
// connection of its own.
type Attended interface{ BackgroundClients() int }

// Recalled is satisfied by a Workload whose data say nothing of a run without its recording. Recall is called before
// AttachReadOnly.
type Recalled interface{ Recall(h history.Header) }

// Measured is satisfied by a Workload whose clients in this process have measured tables for the report. It is called
// after the load phase.
type Measured interface{ Measured() []Table }

// Costly is satisfied by a Workload of which the memory of a check is known before the run.
type Costly interface {
	// CheckMemory returns about how many bytes a check takes at least, and for each
	// transaction; 0: it does not grow with the length of the run.
	CheckMemory() (fixed, each int64)
}

// Selective is satisfied by a Config with which not all checks of its workload are made.
type Selective interface {
	// Omits reports whether a check is left out for data that such a run has loaded.
	Omits(check string) bool
}

// Altering is satisfied by a workload that may change the form of tables that the user made.
type Altering interface {
	// OnAlter sets a function that is called with these tables before the first change. Its error prevents the change.
	OnAlter(agree func(tables string) error)
}

// Clone returns a copy of the settings.
func Clone(c Config) Config {
	copied := reflect.New(reflect.TypeOf(c).Elem())
	copied.Elem().Set(reflect.ValueOf(c).Elem())
	return copied.Interface().(Config)
}

// Options are the options of a run for every workload.
type Options struct {
	Session
	Clients int
	Seed    uint64 // 0: the seed of the loaded data

	// Given reports whether a setting of the data was given. Otherwise the loaded data decide.
	Given func(name string) bool
	// Undriven is set if no transaction is driven, as by a load alone or a check. A setting
	// that only transactions need must then not be refused, whatever the data are.
	Undriven bool
}

// Objects gives names to the numbers of objects, and back.
type Objects interface {
	Name(n uint64) string
	Number(name string) (uint64, error)
}

// ParseNumber reads the number of an object as names show it: with the word for such
// objects before it or without, in parentheses or not.
func ParseNumber(name, word string) (n uint64, ok bool) {
	name = strings.TrimSpace(name)
	if inner, found := strings.CutPrefix(name, "("); found {
		name = strings.TrimSuffix(inner, ")")
	}
	n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(name, word)), 10, 64)
	return n, err == nil
}

// Format is how what is recorded is written: of an object each behind its name.
type Format struct {
	// Short says in few words what a transaction with many operations came to; empty:
	// they are listed. It may be nil.
	Short     func(tx *history.Transaction, o Objects) string
	Operation func(op *history.Op) string   // what a transaction did and saw
	Value     func(value []byte) string     // a value whose bytes were kept, in place of Operation; nil: none is shown
	Row       func(leg history.Row) string  // a row of the end state that is no tombstone
	End       func(a history.Object) string // what the end state holds
}

// FormatAmounts is the format of what adds amounts to balances, which written writes.
func FormatAmounts(written func(n int64) string) Format {
	signed := func(n int64) string {
		if n > 0 {
			return "+" + written(n)
		}
		return written(n)
	}
	at := func(balance int64, version uint64, last history.ID) string {
		return fmt.Sprintf("%s at version %d%s", written(balance), version, MadeBy(last))
	}
	return Format{
		Operation: func(op *history.Op) string {
			text := ""
			if op.Write {
				text = signed(op.Amount) + " "
			}
			if !op.Observed {
				return text + "not seen"
			}
			return text + "saw " + at(op.Value, op.Version, op.Writer)
		},
		Row: func(leg history.Row) string {
			return fmt.Sprintf(" %s  made version %d", signed(leg.Amount), leg.Version)
		},
		End: func(a history.Object) string { return " " + at(a.Value, a.Version, a.Writer) },
	}
}

// MadeBy returns the transaction that has written something.
func MadeBy(id history.ID) string {
	if id == 0 {
		return " of the load"
	}
	return fmt.Sprintf(" of %v", id)
}

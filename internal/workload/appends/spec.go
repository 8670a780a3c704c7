package appends

import (
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/check/lists"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
	"stroppy/internal/workload/recording"
)

// Spec is the workload as the commands know it.
func Spec() workload.Spec {
	return recording.Checked(workload.Spec{
		Words: check.Words{One: "transaction"},
		Name:  Name, About: "transactions of any size that append to lists and read them: every anomaly of isolation that has a name is looked for",
		Data:      "lists",
		Elsewhere: map[string]string{"list-append": ""},
		Config: func() workload.Config {
			return &Config{Length: 16, Operations: 4, Reads: 0.5, ReadOnly: 0.1, Range: 4, ZipfExponent: 0.6}
		},
		Loaded: func(history.Header) map[string]string { return nil },
		Isolation: &workload.IsolationTest{
			StepsOnly: true, SQL: [][2]string{{"access", Predicate}}, Decides: true,
			Finds: map[string][]string{
				check.Serializable: {"G0", "G1a", "G1b", "G1c", "OTV", "internal", "P4", "G-single", "long fork", "G2-item", "G2"},
				check.Strict:       {"stale read"},
			},
		},
		Tables:  tables,
		Objects: func(history.Header) workload.Objects { return names{} },
		Format: workload.Format{
			Operation: func(op *history.Op) string {
				switch {
				case op.Write:
					return "append"
				case !op.Observed:
					return "read, what is not known"
				case op.State == history.Broken:
					return "read what no transaction writes"
				}
				return "read " + check.Plural(int(op.Value), "element")
			},
			Row: func(row history.Row) string {
				return fmt.Sprintf(" place %d  append %d of its transaction", row.Version, row.Number)
			},
			End: func(list history.Object) string {
				return fmt.Sprintf(" %s, the last%s", check.Plural(int(list.Value), "element"), workload.MadeBy(list.Writer))
			},
		},
	}, declared(), checks)
}

// declared returns the checks, with the files that each needs.
func declared() []check.Declared {
	return []check.Declared{
		recording.Declare(lists.Lists, history.Recorded,
			"no two reads of a list contradict each other, and all in it was appended, once"),
		recording.Declare(check.Durable, history.Recorded|history.EndLedger,
			"every element of an acknowledged transaction, and every one that was read, is in the end where it was"),
		recording.Declare(check.NoGhost, history.Recorded|history.EndState,
			"nothing that a refused transaction appended is there, and nothing that nobody appended"),
		recording.Declare(check.Serializable, history.Recorded, "the dependency graph has no cycle"),
		recording.Declare(lists.Session, history.Recorded, "nor with the order of each client added"),
		recording.Declare(check.Strict, history.Recorded, "nor with real-time order added"),
	}
}

// How lists are kept and found.
const (
	Primary   = "primary"   // a text a list, found by its primary key; it is there before it is appended to
	Secondary = "secondary" // the same, found by another index
	Upsert    = "upsert"    // a text a list, inserted or appended to by one statement
	Rows      = "rows"      // a row an element, whose primary key is the list and the place in it
	Predicate = "predicate" // a row an element and one behind the last, which each append deletes and adds anew, found within a range of an index
)

// Config configures the transactions.
type Config struct {
	workload.Session
	Clients int
	Seed    uint64 // 0: the seed of the loaded data
	Access  string // one of the above; empty: the first that the database has of Upsert and Primary

	Lists        uint64  // that are live at once; 0: by the number of clients
	Length       uint64  // elements with which a list is full
	Operations   uint64  // of a transaction, at most
	Reads        float64 // share of operations
	ReadOnly     float64 // share of transactions that only read
	Range        uint64  // lists that a read of Predicate reads, at most
	ZipfExponent float64 // 0: all live lists are chosen alike
}

const (
	mostLive       = 1 << 20
	mostLength     = 256
	mostOperations = 1 << numberBits / 2
	mostRange      = 16

	leastLive     = 16
	liveOfAClient = 4
)

// live returns the number of live lists: so many that each transaction meets a few others, for any number of clients.
func (c *Config) live() uint64 {
	if c.Lists > 0 {
		return c.Lists
	}
	return max(leastLive, liveOfAClient*uint64(c.Clients))
}

// Validate implements workload.Config.
func (c *Config) Validate() error {
	if c.Reads == 0 && c.ReadOnly == 0 && c.Clients > 1 {
		return fmt.Errorf("read-share and read-only-share are both 0: without reads no violation shows, so give one of them a share")
	}
	return nil
}

// Settings implements workload.Config.
func (c *Config) Settings() []setting.Setting {
	return []setting.Setting{
		setting.Text(&c.Access, "access", "NAME", "how SQL keeps and finds lists: primary, secondary, upsert, rows or predicate").
			OneOf(Primary, Secondary, Upsert, Rows, Predicate),
		setting.Whole(&c.Lists, "lists", "lists that are appended to at once; 0 is 4 per client, at least 16").Between(0, mostLive),
		setting.Whole(&c.Length, "list-length", "elements of a full list").Between(1, mostLength),
		setting.Whole(&c.Operations, "operations", "most operations of a transaction").Between(1, mostOperations),
		setting.Share(&c.Reads, "read-share", "share of operations that read, 0 to 1"),
		setting.Share(&c.ReadOnly, "read-only-share", "share of transactions that only read, 0 to 1"),
		setting.Whole(&c.Range, "range", "most neighboring lists in a read of --access predicate").Between(1, mostRange).IdleIf(func() string {
			if c.Access == Predicate {
				return ""
			}
			return "access is not predicate, so that each read is of one list: give --access predicate"
		}),
		setting.Real(&c.ZipfExponent, "zipf-exponent", "how unevenly live lists are chosen; 0 chooses all alike").Between(0, 100),
	}
}

// New implements workload.Config.
func (c *Config) New(database db.Database, o workload.Options) (workload.Workload, error) {
	l := *c
	l.Clients, l.Seed, l.Session = o.Clients, o.Seed, o.Session
	if o.Undriven {
		l.Operations = 1
	}
	return New(database, l)
}

// textOnly refuses an access that needs SQL.
func (c *Config) textOnly(model string) error {
	if c.Access != "" && c.Access != Primary {
		return fmt.Errorf("access is %s, and %s has its lists under their keys alone: leave it out", c.Access, model)
	}
	c.Access = Primary
	return nil
}

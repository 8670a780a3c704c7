package script

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/invariants"
	"stroppy/internal/check/rows"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/script"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
	"stroppy/internal/workload/recording"
	"stroppy/internal/workload/script/track"
)

// Spec is the workload as the commands know it.
func Spec() workload.Spec {
	return recording.Checked(workload.Spec{
		Words: words(),
		Name:  Name, About: "your own SQL, in pgbench's script files; with receipts, no transaction is lost or applied twice",
		Data:   "receipts of scripts",
		Config: func() workload.Config { return &Config{AuditInterval: 10 * time.Second} },
		Loaded: func(history.Header) map[string]string { return nil },
		Unproved: func(h history.Header) string {
			if one := []history.Header{h}; withEither(one) || withInvariants(one) {
				return ""
			}
			return "Measured; nothing was checked, because the scripts have no receipts and no invariants."
		},
		Unsafe:  &workload.UnsafeStyle{}, // a lost update that is found shows it
		Objects: func(h history.Header) workload.Objects { return newObjects(h) },
		Format:  format(),
	}, declared(), checks)
}

func words() check.Words {
	return check.Words{One: "transaction", Book: "table of receipts", Part: "receipt", Amount: func(n int64) string { return strconv.FormatInt(n, 10) }}
}

// declared returns the checks, with the files that each needs.
func declared() []check.Declared {
	return []check.Declared{
		recording.DeclareIf(withEither, check.Durable, history.Recorded|history.EndState,
			"every committed transaction that wrote has its receipt, and tracked rows end in the latest version"),
		recording.DeclareIf(withEither, check.NoGhost, history.Recorded|history.EndState,
			"nothing aborted or rejected has a receipt or wrote a tracked row last, "+
				"and no receipt is of a transaction that was never sent"),
		recording.DeclareIf(withReceipts, check.ExactlyOnce, history.Recorded|history.EndLedger, "no transaction has two receipts"),
		recording.DeclareIf(withInvariants, check.Invariants, history.Recorded|history.EndState, "every invariant held at each audit and in the end"),
		recording.DeclareIf(withComputed, rows.NoLostUpdate, history.Recorded,
			"no transaction read a tracked row, and wrote the value that it computed over a version that it had not read"),
		recording.DeclareIf(withTracked, check.Serializable, history.Recorded,
			"one order of all transactions explains every version of a tracked row that was read or written"),
		recording.DeclareIf(withTracked, check.Strict, history.Recorded, "one that agrees with real time does"),
	}
}

// withInvariants reports whether one of these runs had invariants.
func withInvariants(runs []history.Header) bool {
	return slices.ContainsFunc(runs, func(h history.Header) bool { return h.Keys[keyInvariants] != "" })
}

// withReceipts reports whether one of these runs left receipts.
func withReceipts(runs []history.Header) bool {
	return slices.ContainsFunc(runs, func(h history.Header) bool { return h.Keys[keyReceipts] == "true" })
}

// noReceipts is the value of Config.Receipts of a run without receipts.
const noReceipts = "false"

// Config configures the scripts and the clients.
type Config struct {
	workload.Session
	Clients  int
	Seed     uint64
	Files    []script.File
	Builtins []string // NAME@WEIGHT
	Define   []string // NAME=VALUE
	Scale    uint64   // of the variable scale; 0: the rows of pgbench_branches for built-in scripts, and 1 for others
	Init     string   // the path of a file with statements for the load phase; empty: none
	Receipts string   // empty: if a script writes
	Track    []track.Table
	Undriven bool // no transaction is run

	Invariants    []invariants.Invariant
	AuditInterval time.Duration // 0: the invariants are read at the start and the end alone

	PerStatement bool // the statements are measured

	sources []string // of each of Files, as it was given
}

// mode returns how statements travel. The default is pgbench's: one by one.
func (c *Config) mode() string {
	if c.Mode == "" {
		return workload.Interactive
	}
	return c.Mode
}

// Settings implements workload.Config.
func (c *Config) Settings() []setting.Setting {
	receipts := setting.Switch(new(bool), "receipts", "each transaction that writes leaves its id in the table "+receiptTable+", so that its outcome can be checked (by default if a script writes)")
	receipts.Set = func(text string) error {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("it must be true or false")
		}
		c.Receipts = strconv.FormatBool(on)
		return nil
	}
	receipts.Get = func() string { return c.Receipts }
	receipts.Aliases = []setting.Alias{{
		Name: "no-receipts", Help: "no table of receipts: the run is a measurement, and nothing is checked",
		Values: map[string]string{"true": noReceipts, "false": "true"},
	}}
	return []setting.Setting{
		{
			Name: "script", Value: "FILE[@WEIGHT]", Lines: true, Files: ".sql",
			Help: "a file in the language of pgbench's scripts, and how often it runs among several; -f FILE.sql is the same",
			Set:  c.setFiles, Get: c.files, Brief: c.paths, Item: fileOf, Fields: fieldsOf,
		},
		{
			Name: "builtin", Value: "NAME[@WEIGHT]", Lines: true, Letter: "b", Help: "a script that pgbench has built in: tpcb-like, simple-update or select-only",
			Set: c.setBuiltins, Get: func() string { return strings.Join(c.Builtins, "\n") },
		},
		{
			Name: "define", Value: "NAME=VALUE", Lines: true, Letter: "D", Help: "a variable of the scripts",
			Set: c.setDefine, Get: func() string { return strings.Join(c.Define, "\n") },
		},
		setting.Whole(&c.Scale, "scale", "value of the variable :scale; 0: the rows of pgbench_branches with --builtin, and 1 without").Between(0, 1<<40),
		{
			Name: "init", Value: "FILE", Help: "SQL statements for the load phase, such as those that make the tables",
			Set: func(text string) error { c.Init = text; return nil }, Get: func() string { return c.Init }, Data: true,
		},
		receipts,
		{
			Name: "track", Value: "TABLE(KEY)", Lines: true, Set: c.setTrack, Get: c.trackText,
			Help: "a table whose rows count their versions in two more columns, so that isolation can be checked; " +
				"its key is in parentheses",
		},
		{
			Name: "invariant", Value: "NAME: EXPECTATION: SQL", Lines: true,
			Help: "a query whose result must be as expected: a number, unchanged, empty, equal (of two queries) or sum(:VARIABLE); may be given several times",
			Set:  c.setInvariants, Get: func() string { return invariants.Lines(c.Invariants) }, Item: invariantOf,
		},
		setting.Duration(&c.AuditInterval, "audit-interval", "time between audits of the invariants in the load phase; 0: none there"),
		setting.Switch(&c.PerStatement, "report-per-command", "measure each statement of the scripts, and show a table of them").Short("r"),
	}
}

// setFiles adds scripts. A line is the path of a file, or a name and the quoted text. The saved scenario has texts.
func (c *Config) setFiles(lines string) error {
	for line := range strings.Lines(lines) {
		name, quoted, inline := strings.Cut(strings.TrimRight(line, "\n"), " \"")
		path, weight, err := script.WeightedFile(name)
		if err != nil {
			return err
		}
		f, source := script.File{Name: path, Weight: weight}, strings.TrimRight(line, "\n")
		if inline {
			f.Text, err = strconv.Unquote("\"" + quoted)
		} else {
			var text []byte
			text, err = os.ReadFile(path)
			f.Name, f.Text = filepath.Base(path), string(text)
		}
		if err != nil {
			return fmt.Errorf("read the script %s: %w", path, err)
		}
		c.Files, c.sources = append(c.Files, f), append(c.sources, source)
	}
	return nil
}

// fileOf returns the line of a script that is a mapping in a file.
func fileOf(fields map[string]string) (string, error) {
	weight := "1"
	for key, value := range fields {
		switch key {
		case "name", "sql":
		case "weight":
			weight = value
		default:
			return "", fmt.Errorf("has the unknown key %q in a script: take name, weight or sql", key)
		}
	}
	if fields["name"] == "" || fields["sql"] == "" {
		return "", errors.New("has a script without a name or sql")
	}
	if _, _, err := script.WeightedFile(fields["name"] + "@" + weight); err != nil {
		return "", fmt.Errorf("has the weight %q in the script %s: it must be a whole number", weight, fields["name"])
	}
	return fmt.Sprintf("%s@%s %q", fields["name"], weight, fields["sql"]), nil
}

// fieldsOf returns the fields of a script whose text is in its line. A script in a file has none.
func fieldsOf(line string) []setting.Field {
	name, quoted, inline := strings.Cut(line, " \"")
	path, weight, err := script.WeightedFile(name)
	text, unquoted := strconv.Unquote("\"" + quoted)
	if !inline || err != nil || unquoted != nil {
		return nil
	}
	return []setting.Field{{Name: "name", Value: path}, {Name: "weight", Value: strconv.Itoa(weight)}, {Name: "sql", Value: text}}
}

// paths returns the scripts as they were given.
func (c *Config) paths() string { return strings.Join(c.sources, "\n") }

// files returns all scripts with their texts, so that a saved scenario needs no other file.
func (c *Config) files() string {
	var lines []string
	for _, f := range c.Files {
		lines = append(lines, fmt.Sprintf("%s@%d %q", f.Name, f.Weight, f.Text))
	}
	return strings.Join(lines, "\n")
}

func (c *Config) setBuiltins(lines string) error {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if _, err := builtin(line); err != nil {
			return err
		}
		c.Builtins = append(c.Builtins, line)
	}
	return nil
}

// builtin returns a script that pgbench has built in.
func builtin(line string) (f script.File, err error) {
	name, weight, err := script.WeightedFile(line)
	if err == nil {
		f, err = script.Builtin(name)
	}
	f.Weight = weight
	return f, err
}

func (c *Config) setDefine(lines string) error {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if name, _, ok := strings.Cut(line, "="); !ok || name == "" {
			return errors.New("it must be a name, an equals sign and a value")
		}
		c.Define = append(c.Define, line)
	}
	return nil
}

// Validate implements workload.Config.
func (c *Config) Validate() error {
	if len(c.Files)+len(c.Builtins) == 0 {
		return nil
	}
	program, err := c.program()
	if err == nil {
		_, err = c.sums(program)
	}
	return err
}

// sums returns the slots of the variables that invariants sum.
func (c *Config) sums(program *script.Program) (slots []int, err error) {
	if len(program.Scripts) == 0 {
		return nil, nil
	}
	for _, name := range invariants.Variables(c.Invariants) {
		slot, ok := program.Settable(name)
		if !ok {
			return nil, fmt.Errorf("an invariant sums the variable %s, and no script sets it: use \\set or \\gset", name)
		}
		slots = append(slots, slot)
	}
	return slots, nil
}

// mostScripts is the number of scripts that the kinds of a history can tell apart.
const mostScripts = 60

// program parses the scripts.
func (c *Config) program() (*script.Program, error) {
	all := slices.Clone(c.Files)
	for _, line := range c.Builtins {
		f, err := builtin(line)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	switch {
	case len(all) == 0 && c.Undriven:
		return &script.Program{}, nil
	case len(all) == 0:
		return nil, errors.New("there is no script: give one with --script FILE.sql, or a built-in one with --builtin tpcb-like")
	case len(all) > mostScripts:
		return nil, fmt.Errorf("there are %d scripts: give at most %d", len(all), mostScripts)
	}
	defined := map[string]script.Value{}
	for _, name := range []string{"scale", "client_id", "random_seed", "default_seed"} {
		defined[name] = script.Value{Kind: script.Integer}
	}
	for _, line := range c.Define {
		name, value, _ := strings.Cut(line, "=")
		defined[name] = script.Value{Kind: script.Text, Text: []byte(value)}
	}
	return script.Parse(all, defined)
}

// initial returns the statements of the file of --init.
func (c *Config) initial() (list []string, err error) {
	if c.Init == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.Init)
	if err != nil {
		return nil, fmt.Errorf("read the statements of --init: %w", err)
	}
	program, err := script.Parse([]script.File{{Name: c.Init, Text: string(text), Weight: 1}}, nil)
	if err != nil {
		return nil, err
	}
	for _, step := range program.Scripts[0].Steps {
		if step.Op != script.Execute {
			return nil, fmt.Errorf("%s:%d: a file of --init has SQL statements alone", c.Init, step.Line)
		}
		list = append(list, step.SQL.Parts[0])
	}
	return list, nil
}

// New implements workload.Config.
func (c *Config) New(database db.Database, o workload.Options) (workload.Workload, error) {
	own := *c
	own.Clients, own.Seed, own.Session, own.Undriven = o.Clients, o.Seed, o.Session, o.Undriven
	if own.Mode == workload.Procedure {
		return nil, errors.New("mode procedure is not for scripts: call the procedure in the script")
	}
	return New(database, own)
}

package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/totals"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/script"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
	"stroppy/internal/workload/recording"
)

// Spec is the workload as the commands know it.
func Spec() workload.Spec {
	return recording.Checked(workload.Spec{
		Words: words(),
		Name:  Name, About: "your own SQL, in pgbench's script files; with receipts, no transaction is lost or applied twice",
		Data:   "receipts of scripts",
		Config: func() workload.Config { return new(Config) },
		Loaded: func(history.Header) map[string]string { return nil },
		Unproved: func(h history.Header) string {
			if withReceipts([]history.Header{h}) {
				return ""
			}
			return "Measured; nothing was checked, because the scripts have no receipts."
		},
		Objects: func(history.Header) workload.Objects { return receiptTableName{} },
		Format:  workload.FormatAmounts(func(n int64) string { return check.Group(int(n)) }),
	}, declared(), checks)
}

func words() check.Words {
	return check.Words{One: "transaction", Book: "table of receipts", Part: "receipt", Amount: func(n int64) string { return strconv.FormatInt(n, 10) }}
}

// receiptTableName names the only object.
type receiptTableName struct{}

func (receiptTableName) Name(uint64) string { return receiptTable }

func (receiptTableName) Number(name string) (uint64, error) {
	if name == receiptTable {
		return 0, nil
	}
	return 0, fmt.Errorf("there is no object %s: the only one is %s", name, receiptTable)
}

// declared returns the checks, with the files that each needs.
func declared() []check.Declared {
	return []check.Declared{
		recording.DeclareIf(withReceipts, check.Durable, history.Recorded|history.EndState, "every committed transaction that wrote has its receipt"),
		recording.DeclareIf(withReceipts, check.NoGhost, history.Recorded|history.EndState,
			"nothing aborted or rejected has a receipt, and no receipt is of a transaction that was never sent"),
		recording.DeclareIf(withReceipts, check.ExactlyOnce, history.Recorded|history.EndLedger, "no transaction has two receipts"),
	}
}

// withReceipts reports whether one of these runs left receipts.
func withReceipts(runs []history.Header) bool {
	return slices.ContainsFunc(runs, func(h history.Header) bool { return h.Keys[keyReceipts] == "true" })
}

// checks decides about the receipts. They are the history of one row, to which each transaction adds 1.
func checks(ctx context.Context, input recording.Input) ([]check.Result, error) {
	if input.Header.Keys[keyReceipts] != "true" {
		return nil, nil
	}
	in := totals.GroupsInput{Input: input.Input, Words: words(), Groups: []totals.Group{{Name: "receipts", Rows: 1}}}
	if report := in.OnViolation; report != nil {
		in.OnViolation = func(v check.Violation) {
			if ofReceipts(v.Check) {
				report(v)
			}
		}
	}
	results, err := totals.Groups(ctx, in)
	return slices.DeleteFunc(results, func(r check.Result) bool { return !ofReceipts(r.Name) }), err
}

func ofReceipts(name string) bool {
	return name == check.Durable || name == check.NoGhost || name == check.ExactlyOnce
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
	Undriven bool     // no transaction is run

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
			Set:  c.setFiles, Get: c.files, Brief: c.paths,
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
	_, err := c.program()
	return err
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

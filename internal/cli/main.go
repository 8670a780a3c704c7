// Package cli is the command line of stroppy: commands, flags and printing.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/setting"
	"stroppy/internal/spelling"
)

// Main runs stroppy with arguments (without the program's name), environment and streams, and returns the exit code. If
// the code is not 0, the last line on stderr is the reason.
func Main(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	scenario.ShowFiles(registry.FileSchemes())
	a := &app{&session.App{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr, Scrub: scenario.Scrubber("")}}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := longFlags(root, args)
	if err == nil {
		err = root.Execute()
	}
	if err == nil {
		return exit.Valid
	}
	reasons := a.Reasons(err)
	for _, more := range reasons[1:] {
		fmt.Fprintf(stderr, "stroppy: also: %s\n", more)
	}
	fmt.Fprintf(stderr, "stroppy: %s\n", reasons[0])
	return exitCode(err)
}

// app is one call of the program.
type app struct{ *session.App }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "stroppy",
		Short: "Find out whether a database can be trusted with money, and how fast it is",
		Long: "Stroppy moves money between accounts with many clients at once, records every transaction,\n" +
			"and then proves from the records and the end state whether the database kept its promises.\n\n" +
			"`stroppy run bank` does the whole job on an embedded database.",
		SilenceUsage: true, SilenceErrors: true,
		Version:           registry.Version(),
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return noneEmpty(c) },
	}
	root.SetVersionTemplate("stroppy {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version") // without the -v that cobra would take
	root.AddCommand(a.runCommand(), a.loadCommand("load"), a.driveCommand("drive"), a.loadCommand("pop"), a.driveCommand("pay"), a.cleanupCommand(), a.checkCommand(), a.exportCommand(), a.historyCommand(), a.clusterCommand(), a.reportCommand(), a.sweepCommand(), a.compareCommand(), a.isolationCommand(), a.probeCommand(), a.initCommand(), a.listCommand(), a.versionCommand())
	root.AddCommand(a.workerCommands()...)
	root.AddCommand(registry.Servants()...)
	a.addCompletion(root)
	showExamples(root, examples())
	completeValues(root)
	a.fitHelp(root)
	root.SetFlagErrorFunc(flagError)
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if form, found := registry.WorkloadOf(args[0]); found {
			return exit.Usagef("%q is no command of stroppy: the workload is run by `stroppy run %s`", args[0], form)
		}
		var names []string
		for _, c := range root.Commands() {
			if !c.Hidden {
				names = append(names, c.Name())
			}
		}
		if hint := spelling.Hint(args[0], names, commandMeanings, ""); hint != "" {
			return exit.Usagef("%q is no command of stroppy; %s", args[0], hint)
		}
		return exit.Usagef("%q is no command of stroppy: `stroppy --help` lists them", args[0])
	}
	return root
}

// commandMeanings maps words of other tools to commands.
var commandMeanings = map[string]string{
	"prepare": "load", "initialize": "load", "populate": "load",
	"bench": "run", "benchmark": "run", "test": "run", "start": "run",
	"verify": "check", "analyze": "check", "diff": "compare", "show": "report",
	"destroy": "cleanup", "drop": "cleanup", "ping": "probe", "doctor": "probe", "info": "probe",
}

// sameAs is the annotation of a command that is an alias of another command.
const sameAs = "same"

// addCompletion adds the command that writes completion scripts.
func (a *app) addCompletion(root *cobra.Command) {
	if a.Stdout != nil {
		root.SetOut(a.Stdout)
	}
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil && help != root {
		help.Run, help.RunE = nil, helpAbout
	}
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil || c == root {
		return // there is none
	}
	shells := []string{}
	for _, shell := range c.Commands() {
		shell.Args = noArguments
		shells = append(shells, shell.Name())
	}
	c.Short = "Write the script that lets a shell complete commands, flags and values"
	c.Args = takes(0, 0, "takes a shell: "+setting.Or(shells))
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.Stdout, "stroppy", registry.Version())
			return err
		},
	}
}

// habits maps flags of other tools to advice, for commands that have the corresponding flag of ours. The name of a
// server flag may have a prefix, as in sysbench.
var habits = []struct {
	names []string
	flag  string
	says  string
}{
	{[]string{"host", "hostname", "port", "user", "username", "password", "dbname", "database", "db", "url", "U"},
		"db", "a server is named by its URL, as in --db SCHEME://USER:PASSWORD@HOST:PORT/DATABASE; `stroppy list databases` shows the forms"},
	{[]string{"rps", "qps", "tps", "target", "R"}, "rate", "give transactions per second with --rate, such as --rate 100"},
	{[]string{"nodes"}, "cluster", "their number stands in --cluster KIND:N, such as --cluster KIND:3; `stroppy list clusters` shows the kinds"},
	{[]string{"iterations", "operationcount", "t"}, "count", "give a number of transactions with --count, such as --count 1000"},
	{[]string{"T", "runtime", "seconds", "max-time", "maxexecutiontime"}, "duration", "give a time with its unit with -d, such as -d 30s"},
	{[]string{"concurrency", "client", "terminals"}, "clients", "give clients with -c, such as -c 16"},
	{[]string{"table-size", "table_size", "recordcount", "s"}, "records", "how much is loaded is --accounts of bank, --scale of tpcb and script, and --records of kv"},
	{[]string{"table-size", "table_size", "recordcount", "s"}, "accounts", "how much is loaded is --accounts"},
	{[]string{"j"}, "clients", "there are no threads to choose: clients are given with -c, such as -c 16"},
	{[]string{"S"}, "builtin",
		"pgbench's reads are `stroppy run script --builtin select-only`, and YCSB's `stroppy run kv --preset ycsb-c`"},
	{[]string{"N"}, "builtin", "pgbench's simple update is `stroppy run script --builtin simple-update`"},
	{[]string{"i", "initialize"}, "init", "a file with the statements that make the tables is given with --init"},
	{[]string{"n", "no-vacuum"}, "no-load", "the tables that are there are used with --no-load, and nothing is vacuumed"},
	{[]string{"l", "log"}, "out", "each transaction is recorded in the directory of --out: `stroppy history` shows them"},
	{[]string{"M", "protocol"}, "mode",
		"statements are prepared, which some URLs prevent by ?prepare=false; how they travel is --mode: " +
			"pipelined, interactive or procedure"},
	{[]string{"P", "p"}, "preset", "the workloads of YCSB are `stroppy run kv --preset ycsb-a` to ycsb-f, and what else they have are flags; " +
		"the progress is drawn on a terminal; a port stands in --db"},
}

// habit returns the advice for another tool's flag; empty: there is none.
func habit(flags *pflag.FlagSet, name string) string {
	_, last, _ := strings.Cut(name, "-")
	for _, h := range habits {
		if (slices.Contains(h.names, name) || h.flag == "db" && slices.Contains(h.names, last)) && flags.Lookup(h.flag) != nil {
			return h.says
		}
	}
	return ""
}

// samples maps the placeholder or type of a flag's value to an example.
var samples = map[string]string{
	"N": "100", "X": "0.5", "TIME": "30s", "SHARE": "20%", "BYTES": "1024", "RATE": "1000", "DIR": "results", "ADDR": "8080", "FILE": "scenario.yaml",
	"FAULT": "'kill leader every 20s for 5s'", "duration": "10ms", "int": "20",
}

// flagError returns a helpful error for an unknown flag and for a wrong or missing value.
func flagError(c *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	var without *pflag.ValueRequiredError
	var missing *pflag.NotExistError
	switch {
	case errors.As(err, &wrong):
		return wrongValue(wrong, err)
	case errors.As(err, &without):
		given := "--" + without.GetSpecifiedName()
		if without.GetSpecifiedShortnames() != "" {
			given = "-" + without.GetSpecifiedName()
		}
		value, _ := pflag.UnquoteUsage(without.GetFlag())
		if sample := cmp.Or(samples[value], samples[without.GetFlag().Value.Type()]); sample != "" {
			return exit.Usagef("%s needs a value, such as %s %s", given, given, sample)
		}
		return exit.Usagef("%s needs a value: give its %s", given, value)
	case errors.As(err, &missing):
		return unknownFlag(c, missing)
	}
	return exit.With(exit.Usage, err)
}

// wrongValue returns the error for an invalid value. The error of a setting needs no change.
func wrongValue(wrong *pflag.InvalidValueError, err error) error {
	must := ""
	switch kind := wrong.GetFlag().Value.Type(); kind {
	case "bool":
		must = "true or false"
	case "duration":
		must = "a time with its unit, such as " + samples[kind]
	case "int":
		must = "a whole number, such as " + samples[kind]
	default:
		return exit.With(exit.Usage, err)
	}
	return exit.Usagef("--%s is %q: it must be %s", wrong.GetFlag().Name, wrong.GetValue(), must)
}

// unknownFlag returns the error for an unknown flag, with a similar flag or the command that has it.
func unknownFlag(c *cobra.Command, missing *pflag.NotExistError) error {
	name := missing.GetSpecifiedName()
	given, says := "--"+name, habit(c.Flags(), name)
	if letters := missing.GetSpecifiedShortnames(); letters != "" { // as in -clients
		name, given = letters, "-"+letters
	} else if len(name) == 1 {
		says = "" // a letter is one behind a single dash
	}
	if says != "" {
		return exit.Usagef("%s is no flag of `%s`: %s", given, c.CommandPath(), says)
	}
	var names, owners []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, other := range c.Root().Commands() {
		if other.Annotations[sameAs] == "" && other.Flags().Lookup(name) != nil && !slices.Contains(names, name) {
			owners = append(owners, "`"+other.CommandPath()+"`")
		}
	}
	if len(owners) > 0 {
		return exit.Usagef("%s is no flag of `%s`, but of %s", given, c.CommandPath(), listed(owners))
	}
	if near, found := spelling.Near(name, names); found {
		return exit.Usagef("%s is no flag of `%s`; the nearest is --%s", given, c.CommandPath(), near)
	}
	return exit.Usagef("%s is no flag of `%s`: `%s --help` lists them", given, c.CommandPath(), c.CommandPath())
}

// longFlags returns an error for a long flag after a single dash, such as -clients. The parser would read it as a
// short flag with a value. It also returns an error for an unknown command, before the flags are parsed.
func longFlags(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil {
		return nil // the execution of the command reports it
	}
	if c == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !strings.HasPrefix(rest[0], cobra.ShellCompRequestCmd) {
		return root.Args(root, rest)
	}
	for _, arg := range rest {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		switch {
		case arg == "--":
			return nil
		case len(name) > 1 && strings.HasPrefix(arg, "-") && c.Flags().Lookup(name) != nil:
			return exit.Usagef("-%s is no flag of `%s`; the nearest is --%s", name, c.CommandPath(), name)
		}
	}
	return nil
}

// takes returns a check for the number of arguments. Its error states the arguments of the command.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return exit.Usagef("`%s` %s", c.CommandPath(), what)
		}
		return nil
	}
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("`%s` takes no argument, and was given %q", c.CommandPath(), args[0])
	}
	return nil
}

// listed joins names for a sentence.
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

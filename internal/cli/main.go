// Package cli is the command line of stroppy: commands, flags, environment and
// signals. It is the only place that knows concrete databases and workloads.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/report"
	"stroppy/internal/scenario"
	"stroppy/internal/setting"
	"stroppy/internal/spelling"
)

// The exit codes.
const (
	exitValid   = 0 // every check valid
	exitInvalid = 1 // a check found a violation
	exitUsage   = 2 // wrong usage or configuration
	exitFailed  = 3 // the run could not be carried out
	exitUnknown = 4 // a check or an objective could not be decided
	exitMissed  = 5 // every check valid, and an objective missed
)

// Main runs stroppy with arguments (without the program's name), environment
// and streams, and returns the exit code. Where that is not 0, the reason is the
// last line on stderr.
func Main(args, environ []string, _ io.Reader, stdout, stderr io.Writer) int {
	scenario.ShowFiles(fileSchemes())
	a := &app{environ: environ, stdout: stdout, stderr: stderr, scrub: scenario.Scrubber("")}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := longFlags(root, args)
	if err == nil {
		err = root.Execute()
	}
	if err == nil {
		return exitValid
	}
	reasons := a.reasons(err)
	for _, more := range reasons[1:] {
		fmt.Fprintf(stderr, "stroppy: also: %s\n", more)
	}
	fmt.Fprintf(stderr, "stroppy: %s\n", reasons[0])
	return exitCode(err)
}

// reasons returns the lines of an error, each once: the first is what went
// wrong, and what follows went wrong because of it, unless another line says it too.
func (a *app) reasons(err error) (lines []string) {
	for line := range strings.FieldsFuncSeq(a.scrub(err.Error()), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return []string{"it failed and did not say why"}
	}
	said := func(line string) bool {
		return slices.ContainsFunc(lines, func(other string) bool { return other != line && strings.Contains(other, line) })
	}
	return append(lines[:1:1], slices.DeleteFunc(slices.Clone(lines[1:]), said)...)
}

// app is one call of the program.
type app struct {
	environ        []string
	stdout, stderr io.Writer
	scrub          func(string) string // takes the secrets of this call out of a text
	quiet, verbose bool                // how much is shown; at most one of them
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "stroppy",
		Short: "Find out whether a database can be trusted with money, and how fast it is",
		Long: "Stroppy moves money between accounts with many clients at once, records every transaction,\n" +
			"and then proves from the records and the end state whether the database kept its promises.\n\n" +
			"`stroppy run bank` does the whole job on an embedded database.",
		SilenceUsage: true, SilenceErrors: true,
		Version: version(),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("stroppy {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version") // without the -v that cobra would take
	root.AddCommand(a.runCommand(), a.popCommand("pop"), a.popCommand("load"), a.payCommand("pay"), a.payCommand("drive"), a.cleanupCommand(), a.checkCommand(), a.exportCommand(), a.historyCommand(), a.clusterCommand(), a.reportCommand(), a.sweepCommand(), a.compareCommand(), a.isolationCommand(), a.listCommand(), a.versionCommand())
	root.AddCommand(a.workerCommands()...)
	root.AddCommand(servants()...)
	a.addCompletion(root)
	showExamples(root, examples())
	completeValues(root)
	root.SetFlagErrorFunc(flagError)
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range root.Commands() {
			names = append(names, c.Name())
		}
		if near, found := spelling.Near(args[0], names); found {
			return usagef("%q is no command of stroppy; the nearest is %s", args[0], near)
		}
		return usagef("%q is no command of stroppy: `stroppy --help` lists them", args[0])
	}
	return root
}

// sameAs is the annotation of a command that is another one by a name that other tools use.
const sameAs = "same"

// addCompletion adds the command that writes scripts for shells, which cobra makes.
func (a *app) addCompletion(root *cobra.Command) {
	if a.stdout != nil {
		root.SetOut(a.stdout)
	}
	root.InitDefaultHelpCmd()
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
			_, err := fmt.Fprintln(a.stdout, "stroppy", version())
			return err
		},
	}
}

// version is what the build recorded: a tag, or a revision.
func version() string {
	b := build()
	if b.Version == "" || b.Version == "(devel)" {
		return cmp.Or(b.Commit, b.Version, "unknown")
	}
	return b.Version
}

// build is what the build recorded of this program. Without a version control there is no
// commit.
func build() (b report.Build) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version, b.Go = cmp.Or(info.Main.Version, "(devel)"), info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Committed = s.Value
		case "vcs.modified":
			b.Dirty = new(s.Value == "true")
		}
	}
	return b
}

// flagError names the nearest flag of one that does not exist, or whose flag it is.
func flagError(c *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) && wrong.GetFlag().Value.Type() == "bool" { // of settings the error is a sentence already
		return usagef("--%s is %q: it must be true or false", wrong.GetFlag().Name, wrong.GetValue())
	}
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return &exitError{exitUsage, err}
	}
	name := missing.GetSpecifiedName()
	given := "--" + name
	if letters := missing.GetSpecifiedShortnames(); letters != "" { // as in -clients
		name, given = letters, "-"+letters
	}
	var names, owners []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, other := range c.Root().Commands() {
		if other.Annotations[sameAs] == "" && other.Flags().Lookup(name) != nil && !slices.Contains(names, name) {
			owners = append(owners, "`"+other.CommandPath()+"`")
		}
	}
	if len(owners) > 0 {
		return usagef("%s is no flag of `%s`, but of %s", given, c.CommandPath(), listed(owners))
	}
	if near, found := spelling.Near(name, names); found {
		return usagef("%s is no flag of `%s`; the nearest is --%s", given, c.CommandPath(), near)
	}
	return usagef("%s is no flag of `%s`: `%s --help` lists them", given, c.CommandPath(), c.CommandPath())
}

// longFlags refuses the name of a flag behind a single dash, as -clients: its first letter
// would be taken for a short flag, and the others for what that is given.
func longFlags(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil {
		return nil // which is said when the command is executed
	}
	for _, arg := range rest {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		switch {
		case arg == "--":
			return nil
		case len(name) > 1 && strings.HasPrefix(arg, "-") && c.Flags().Lookup(name) != nil:
			return usagef("-%s is no flag of `%s`; the nearest is --%s", name, c.CommandPath(), name)
		}
	}
	return nil
}

// takes refuses fewer or more arguments, and says what the command takes.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("`%s` %s", c.CommandPath(), what)
		}
		return nil
	}
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("`%s` takes no argument, and was given %q", c.CommandPath(), args[0])
	}
	return nil
}

type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func (a *app) getenv(name string) (value string) {
	for _, entry := range a.environ {
		if text, ok := strings.CutPrefix(entry, name+"="); ok {
			value = text // the last one counts
		}
	}
	return value
}

// terminal says whether w is a terminal that understands control sequences.
func (a *app) terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && isatty.IsTerminal(file.Fd()) && a.getenv("TERM") != "dumb"
}

// colors says whether w takes colours, which NO_COLOR forbids (https://no-color.org).
func (a *app) colors(w io.Writer) bool { return a.terminal(w) && a.getenv("NO_COLOR") == "" }

// listed writes names as they stand in a sentence.
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

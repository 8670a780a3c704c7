package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/check"
	"stroppy/internal/exit"
	"stroppy/internal/foreign"
	"stroppy/internal/isolation"
	"stroppy/internal/nemesis"
	"stroppy/internal/output"
	"stroppy/internal/pace"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/setting"
	"stroppy/internal/spelling"
	"stroppy/internal/workload"
	"stroppy/scenarios"
)

func clusterLines() (lines []listLine) {
	for _, k := range registry.ClusterKinds() {
		form, about, _ := strings.Cut(k.About, "  ")
		lines = append(lines, listLine{fmt.Sprintf("%-42s ", form), about})
	}
	return append(lines, listLine{}, listLine{"", "Parameters of every kind except own and in Kubernetes, after a question mark:"},
		listLine{"  memory=on    ", "the data in /dev/shm, where fsync costs nothing and means nothing"},
		listLine{"  loopback=on  ", "all nodes on 127.0.0.1, without network namespaces and the faults that need them"},
		listLine{"  layer=on     ", "a file system under every node's data that can fill up, be slow, and lose what was not synced"},
		listLine{"  bin=DIR      ", "the folder of the server's programs; without it those on PATH come before the system's"})
}

// inSteps reports whether a workload with single steps has the key.
func inSteps(k scenario.Key) bool {
	return slices.ContainsFunc(registry.Workloads(), func(w workload.Spec) bool { return w.Steps && k.AppliesTo(w.Name) })
}

// usual lists the settings that the help shows first, with the first ownUsual settings of the workload. --help-all
// shows all settings.
var usual = []string{"db", "cluster", "isolation", "mode", "clients", "duration", "count", "rate", "nemesis", "threshold", "out"}

const ownUsual = 2

// rare lists flags beside the settings that only --help-all shows.
var rare = []string{"quiet", "verbose", "no-color", "open", "help", "help-all", "version"}

// groupedHelp makes the help of a command show the flags of the workload in its argument, in groups.
func groupedHelp(c *cobra.Command) {
	all, args := c.Flags().Bool("help-all", false, "show all flags"), c.Args
	c.Args = func(c *cobra.Command, given []string) error {
		if *all {
			return pflag.ErrHelp
		}
		return args(c, given)
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		list := registry.Workloads()
		spec, err := list.Find(cmp.Or(c.Flags().Arg(0), list[0].Name))
		if err != nil {
			spec = list[0]
		}
		fmt.Fprint(c.OutOrStdout(), helpOf(c, list, spec, *all))
	})
}

// fitHelp wraps the help of a command and its sub-commands at the width of the terminal. Without a terminal, each flag
// stays on one line.
func (a *app) fitHelp(c *cobra.Command) {
	for _, below := range c.Commands() {
		a.fitHelp(below)
	}
	show := c.HelpFunc()
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		out, width := c.OutOrStdout(), a.textOptions("").Width
		var text bytes.Buffer
		c.SetOut(&text)
		show(c, args)
		c.SetOut(out)
		fmt.Fprint(out, fitted(text.String(), width))
	})
}

// columnsLine matches a line of a help page in two columns: a flag or a command, and its description. besideLine matches
// a line that continues a description.
var (
	columnsLine = regexp.MustCompile(`^( {2,8}(?:(?:-., +)?--|[a-z]).*?\S {2,})(\S.*)$`)
	besideLine  = regexp.MustCompile(`^ {12,}\S`)
)

// fitted wraps the columns and paragraphs of a help page at a width; 0: no wrapping. Examples are not wrapped, so that
// they can be copied.
func fitted(page string, width int) string {
	if width == 0 {
		return page
	}
	var out strings.Builder
	var lead, about string
	flush := func() {
		if lead+about != "" {
			out.WriteString(report.Hang(lead, about, width))
		}
		lead, about = "", ""
	}
	for line := range strings.Lines(page) {
		text := strings.TrimSuffix(line, "\n")
		columns := columnsLine.FindStringSubmatch(text)
		switch paragraph := text != "" && text[0] != ' '; {
		case columns != nil:
			flush()
			lead, about = columns[1], columns[2]
		case lead != "" && besideLine.MatchString(text), lead == "" && about != "" && paragraph:
			about += " " + strings.TrimSpace(text)
		case paragraph:
			flush()
			about = text
		default:
			flush()
			out.WriteString(line)
		}
	}
	flush()
	return out.String()
}

// helpAbout shows the help of a command and, if named, of a workload.
func helpAbout(c *cobra.Command, args []string) error {
	about, rest, err := c.Root().Find(args)
	switch {
	case err != nil:
		return exit.With(exit.Usage, err)
	case len(rest) == 0:
	case about == c.Root():
		return about.Args(about, rest)
	case about.Name() == "run" || about.Name() == "sweep" || about.Name() == "compare":
		if err := oneWorkload(about, rest); err != nil {
			return err
		}
		if names := registry.Workloads().Names(); !slices.Contains(names, rest[0]) {
			return exit.Usagef("workload is %q: it must be %s", rest[0], setting.Or(names))
		}
		if err := about.ParseFlags(rest); err != nil {
			return flagError(about, err)
		}
	default:
		return exit.Usagef("`%s` has no command %q: `%s --help` lists its commands", about.CommandPath(), rest[0], about.CommandPath())
	}
	about.InitDefaultHelpFlag()
	about.InitDefaultVersionFlag()
	return about.Help()
}

// helpOf returns the help of a command for a workload, with all flags or the usual ones.
func helpOf(c *cobra.Command, list scenario.Workloads, spec workload.Spec, all bool) string {
	s, _, err := list.Merge([]scenario.Setting{{Key: "workload", Value: spec.Name}})
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	others := slices.DeleteFunc(list.Names(), func(other string) bool { return other == spec.Name })
	fmt.Fprintf(&out, "%s\n\nUsage:\n  %s\n\nThe workload %s: %s.\n", cmp.Or(c.Long, c.Short), c.UseLine(), spec.Name, spec.About)
	if c.Example != "" {
		fmt.Fprintf(&out, "\nExamples:\n%s\n\n", c.Example)
	}
	fmt.Fprintf(&out, "The settings of %s are shown by `%s WORKLOAD --help`.\n", setting.Or(others), c.CommandPath())
	show := func(group string, add func(*pflag.FlagSet)) {
		flags := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
		flags.SortFlags = false
		if add(flags); flags.HasFlags() {
			fmt.Fprintf(&out, "\n%s:\n%s", group, flags.FlagUsages())
		}
	}
	own := setting.Names(s.Config.Settings(), func(one setting.Setting) string { return one.Name })
	shown := slices.Concat(usual, own[:min(ownUsual, len(own))])
	for _, group := range setting.Groups() {
		show(string(group), func(flags *pflag.FlagSet) {
			for _, one := range s.Settings() {
				if one.Group != group || !ofSetting(c.Flags().Lookup(one.Name)) || !all && !slices.Contains(shown, one.Name) {
					continue
				}
				key := scenario.Key{Name: one.Name, Setting: one}
				addFlag(flags, key, one.Help+alsoTaken(c.Flags(), key))
				for i := range one.Aliases {
					if alias := &one.Aliases[i]; alias.Help != "" {
						addFlag(flags, scenario.Key{Name: alias.Name, Setting: one, Alias: alias}, alias.Help)
					}
				}
			}
		})
	}
	show("Other", func(flags *pflag.FlagSet) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !ofSetting(f) && (all || !slices.Contains(rare, f.Name)) {
				flags.AddFlag(f)
			}
		})
		flags.SortFlags = true
	})
	if !all {
		fmt.Fprintf(&out, "\n`%s %s --help-all` shows all flags.\n", c.CommandPath(), spec.Name)
	}
	return out.String()
}

// examples maps each command to examples, one per line.
func examples() map[string]string {
	return map[string]string{
		"stroppy": `stroppy run
stroppy run bank --db postgres://me@localhost/test --clients 32 --duration 1m
stroppy run --cluster etcd:3 --nemesis 'kill leader every 20s for 5s' --duration 2m`,
		"stroppy run": `stroppy run bank -c 32 -d 1m --db postgres://me@localhost/test
stroppy run bank --cluster etcd:3 --nemesis 'kill leader every 20s for 5s' -d 2m
stroppy run kv --rate 1000 --threshold 'p99<50ms' --db redis://localhost
stroppy run -f lost-update --db postgres://me@localhost/test
stroppy run bank --db postgres://me@10.0.0.9/test --workers 2 --workers-listen 0.0.0.0:7070 --workers-token-file token
stroppy run tpcb --cluster postgres:3 --dry-run`,
		"stroppy load": `stroppy load --db postgres://me@localhost/test --accounts 1000000`,
		"stroppy drive": `stroppy drive --db postgres://me@localhost/test -c 32 -d 1m
stroppy drive --db postgres://me@localhost/test --rate 500 --isolation serializable`,
		"stroppy cleanup": `stroppy cleanup --db postgres://me@localhost/test`,
		"stroppy check": `stroppy check stroppy-runs/20250101-120000-bank-sqlite
stroppy check stroppy-runs/20250101-120000-bank-postgres --db postgres://me@localhost/test
stroppy check --db postgres://me@localhost/test
stroppy check --format elle history.edn --expect serializable`,
		"stroppy export": `stroppy export --format elle stroppy-runs/20250101-120000-append-sqlite -o history.edn`,
		"stroppy history": `stroppy history stroppy-runs/20250101-120000-bank-sqlite 1-2-345
stroppy history stroppy-runs/20250101-120000-bank-sqlite --around 1-2-345 --within 10ms`,
		"stroppy worker": `stroppy worker --join 10.0.0.1:7070 --token-file token`,
		"stroppy cluster": `stroppy cluster up postgres:3
stroppy cluster status
stroppy cluster down postgres:3`,
		"stroppy cluster up":     `stroppy cluster up postgres:3`,
		"stroppy cluster status": `stroppy cluster status`,
		"stroppy cluster down":   `stroppy cluster down postgres:3`,
		"stroppy report": `stroppy report stroppy-runs/20250101-120000-bank-sqlite --verbose
stroppy report stroppy-runs/20250101-120000-bank-sqlite --format junit
stroppy report stroppy-runs/20250101-120000-bank-sweep-sqlite --format benchstat
stroppy report before after --out comparison`,
		"stroppy sweep": `stroppy sweep bank --over clients=1,2,4,8 -d 10s --db postgres://me@localhost/test
stroppy sweep kv --over rate --db redis://localhost
stroppy sweep bank --over nodes=1,3,5 --cluster etcd
stroppy sweep --over 'scenarios=study/*' --scale-down 1000`,
		"stroppy compare": `stroppy compare before.yaml after.yaml --repeat 5
stroppy compare lost-update --db postgres://me@localhost/test --db mysql://me@localhost/test
stroppy compare tpcb --db postgres://me@old/test --db postgres://me@new/test -d 30s --repeat 5
stroppy compare bank --cluster postgres:3 --vary synchronous=on,off`,
		"stroppy isolation": `stroppy isolation --db postgres://me@localhost/test
stroppy isolation --cluster mariadb --schedules-only --format markdown`,
		"stroppy probe": `stroppy probe --db postgres://me@localhost/test
stroppy probe --db postgres://me@localhost/test --json`,
		"stroppy init": `stroppy init --db postgres://me@localhost/shop
stroppy init --db mysql://me@localhost/shop -o shop.yaml`,
		"stroppy help": `stroppy help run`,
		"stroppy list": `stroppy list faults
stroppy list scenarios`,
		"stroppy version": `stroppy version`,
		"stroppy completion": `source <(stroppy completion bash)
stroppy completion zsh
stroppy completion fish`,
		"stroppy completion bash":       `source <(stroppy completion bash)`,
		"stroppy completion zsh":        `source <(stroppy completion zsh)`,
		"stroppy completion fish":       `stroppy completion fish`,
		"stroppy completion powershell": `stroppy completion powershell`,
	}
}

// showExamples adds the examples to a command and its sub-commands.
func showExamples(c *cobra.Command, all map[string]string) {
	if text := all[c.CommandPath()]; text != "" {
		c.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	for _, below := range c.Commands() {
		showExamples(below, all)
	}
}

func (a *app) listCommand() *cobra.Command {
	kinds := setting.Names(lists(), func(l list) string { return l.kind })
	return &cobra.Command{
		Use: "list " + strings.Join(kinds, "|"), Short: "List what this build knows", ValidArgs: kinds,
		Args: takes(1, 1, "takes one of "+listed(kinds)),
		RunE: func(_ *cobra.Command, args []string) error {
			at := slices.Index(kinds, args[0])
			if at < 0 {
				return exit.Usagef("%q cannot be listed; %s", args[0], spelling.Hint(args[0], kinds, listMeanings, "take "+setting.Or(kinds)))
			}
			return writeList(a.Stdout, lists()[at].lines(), a.textOptions("").Width)
		},
	}
}

// listLine is a line of a list: a name, padded to its column, and a description.
type listLine struct{ lead, about string }

// writeList writes lines for a terminal of the given width; 0: no terminal, and lines are not wrapped.
func writeList(w io.Writer, lines []listLine, width int) error {
	for _, l := range lines {
		text := l.lead + l.about + "\n"
		if width > 0 && utf8.RuneCountInString(text) > width {
			text = report.Hang(l.lead, l.about, width)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// listMeanings maps other words to the kinds of lists.
var listMeanings = map[string]string{"db": "databases", "dbs": "databases", "engines": "databases", "nemesis": "faults", "nemeses": "faults", "tests": "workloads"}

// list is a list of what this build knows.
type list struct {
	kind  string
	lines func() []listLine
}

func lists() []list {
	return []list{
		{"workloads", func() []listLine {
			return linesOf(registry.Workloads(), func(w workload.Spec) listLine { return listLine{w.Name + "  ", w.About} })
		}},
		{"databases", databaseLines},
		{"clusters", clusterLines},
		{"faults", faultLines},
		{"checks", checkLines},
		{"scenarios", scenarioLines},
		{"formats", func() []listLine {
			return linesOf(registry.Formats(), func(f foreign.Format) listLine { return listLine{fmt.Sprintf("%-15s ", f.Name), f.About} })
		}},
	}
}

// linesOf returns a line for each value.
func linesOf[T any](values []T, line func(T) listLine) (lines []listLine) {
	for _, v := range values {
		lines = append(lines, line(v))
	}
	return lines
}

func faultLines() (lines []listLine) {
	for _, f := range nemesis.List() {
		lines = append(lines, listLine{"", f[0]}, listLine{"      ", f[1]})
	}
	return lines
}

// checkLines returns the lines of the checks of each workload. The first list also has the checks of all clusters.
func checkLines() (lines []listLine) {
	about := func(c check.Declared) listLine { return listLine{fmt.Sprintf("%-15s ", c.Name), c.About} }
	for i, w := range registry.Workloads() {
		if i > 0 {
			lines = append(lines, listLine{}, listLine{"", "Of the workload " + w.Name + ":"})
		}
		lines = append(lines, linesOf(w.Checks, about)...)
		if i == 0 {
			lines = append(lines, linesOf(run.Checks(), about)...)
		}
	}
	return lines
}

func databaseLines() (lines []listLine) {
	for _, d := range registry.Databases() {
		url, about, _ := strings.Cut(d.About, "  ")
		lines = append(lines, listLine{fmt.Sprintf("%-46s ", url), about})
	}
	lines = append(lines, listLine{}, listLine{"", "Mutants of memory:, each a bug that real databases have had:"})
	for _, m := range registry.Mutants() {
		lines = append(lines, listLine{fmt.Sprintf("  %-19s ", m.Name), m.Bug})
	}
	return lines
}

// completeValues adds the completion of flags and arguments to a command and its sub-commands.
func completeValues(c *cobra.Command) {
	for _, below := range c.Commands() {
		completeValues(below)
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		_ = c.RegisterFlagCompletionFunc(f.Name, completing(func(c *cobra.Command, word string) ([]string, cobra.ShellCompDirective) {
			return flagValues(c, f, word) // each flag is registered once
		}))
	})
	if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
		c.ValidArgsFunction = completing(argumentValues)
	}
}

// completing completes a word from the values that begin with it.
func completing(values func(c *cobra.Command, word string) ([]string, cobra.ShellCompDirective)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		list, then := values(c, word)
		return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return !strings.HasPrefix(one, word) }), then
	}
}

// argumentValues returns the values of a command's arguments.
func argumentValues(c *cobra.Command, _ string) ([]string, cobra.ShellCompDirective) {
	switch c.Name() {
	case "run", "sweep":
		return registry.Workloads().Names(), cobra.ShellCompDirectiveNoFileComp
	case "up", "down":
		return clusterNames(), cobra.ShellCompDirectiveNoFileComp
	case "compare":
		return slices.Concat(registry.Workloads().Names(), session.ScenarioNames()), cobra.ShellCompDirectiveDefault
	case "check", "export", "history", "report":
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// flagValues returns the values of a flag; by default the shell offers files.
func flagValues(c *cobra.Command, f *pflag.Flag, word string) ([]string, cobra.ShellCompDirective) {
	const none, open = cobra.ShellCompDirectiveNoFileComp, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	switch f.Name {
	case "arrival": // of a sweep no setting
		return []string{pace.Uniform.String(), pace.Poisson.String()}, none
	case "cluster":
		return clusterNames(), none
	case "db":
		return setting.Names(registry.Databases(), func(d registry.Database) string { return d.Schemes[0] + ":" }), open
	case "expect":
		return setting.Names(isolation.Levels(), isolation.Level.String), none
	case "format":
		return formatNames(c.Name()), none
	case "isolation", "level":
		return isolationNames(c.Flags()), none
	case "nemesis":
		return nemesis.Continuations(word), open
	case "out":
		if c.Name() != "export" { // which writes a file
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
	case "over":
		return []string{"rate", "clients=", "nodes=", "scenarios="}, open
	case "scenario":
		return session.ScenarioNames(), cobra.ShellCompDirectiveDefault
	}
	if key, ofSetting := f.Value.(*keyFlag); ofSetting {
		return key.key.Choices, none
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// isolationNames returns the isolation levels of the database in the other flags, or the usual levels.
func isolationNames(flags *pflag.FlagSet) []string {
	var c session.Config
	for name, text := range map[string]*string{"db": &c.DB, "cluster": &c.Cluster} {
		if f := flags.Lookup(name); f != nil {
			*text = f.Value.String()
		}
	}
	if kind, err := c.DatabaseKind(); err == nil && len(kind.Isolations.Levels) > 0 {
		return kind.Isolations.IsolationNames()
	}
	return []string{"read uncommitted", "read committed", "repeatable read", "snapshot", "serializable"}
}

func clusterNames() []string {
	return setting.Names(registry.ClusterKinds(), func(k registry.ClusterKind) string { return k.Name })
}

// scenarioLines returns the lines of the built-in scenarios.
func scenarioLines() (lines []listLine) {
	all, width := scenarios.All(), 0
	for _, s := range all {
		width = max(width, len(s.Name))
	}
	for _, s := range all {
		lines = append(lines, listLine{fmt.Sprintf("%-*s %-21s %-8s ", width, s.Name, s.Database, s.Verdict), s.About})
	}
	return lines
}

// formatNames returns the values of a command's --format.
func formatNames(command string) []string {
	switch command {
	case "check", "export":
		return setting.Names(registry.Formats(), func(f foreign.Format) string { return f.Name })
	case "isolation":
		return []string{"text", "markdown"}
	}
	return output.Names()
}

package cli

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/session"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

const referenceFile = "../../docs/commands.md"

const referenceHead = `# Commands

<!-- written by go test ./internal/cli -run TestReference -update -->

All commands with their flags, as ` + "`--help`" + ` prints them (` + "`--help-all`" + ` for ` + "`run`" + ` and ` + "`sweep`" + `). The settings of a run stand once, under ` + "`stroppy run`" + `. Each is a flag, a variable (` + "`--think-time`" + ` is ` + "`STROPPY_THINK_TIME`" + `) and a key of a scenario file (` + "`think-time: 200ms`" + `). A flag overrides a variable, and a variable overrides a file. An unknown name is an error that suggests the nearest known one.
`

// TestReference checks that docs/commands.md agrees with the help of the commands.
func TestReference(t *testing.T) {
	made := reference(t)
	if *update {
		if err := os.WriteFile(referenceFile, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != made {
		t.Errorf("%s does not agree with the help of the commands: run go test ./internal/cli -run TestReference -update", referenceFile)
	}
}

func reference(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(referenceHead)
	root := (&app{&session.App{}}).root()
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	writeRun(&b, run)
	for _, c := range root.Commands() {
		if c != run && c.IsAvailableCommand() && c.Name() != "help" {
			writeCommand(&b, c, run)
		}
	}
	var out bytes.Buffer
	if code := Main([]string{"list", "faults"}, nil, nil, &out, &out); code != exit.Valid {
		t.Fatalf("stroppy list faults ended with %d: %s", code, &out)
	}
	fmt.Fprintf(&b, "\n## The faults\n\nAs `stroppy list faults` prints them.\n\n```text\n%s```\n", &out)
	return b.String()
}

// writeRun writes the settings of all workloads, and then the settings of each workload.
func writeRun(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## stroppy run\n\n%s.\n\n```text\n%s\n\n%s\n```\n", c.Short, c.UseLine(), c.Example)
	list, seen := registry.Workloads(), map[string]bool{}
	for i, spec := range list {
		_, help, _ := strings.Cut(helpOf(c, list, spec, true), "\n\nWorkload:\n")
		groups := strings.Split(help, "\n\n")
		own := fmt.Sprintf("\n### Settings of %s\n\n%s.\n\n```text\n%s```\n", spec.Name, spec.About, newSettings(groups[0], seen))
		if i == 0 {
			for _, group := range groups[1:] {
				name, flags, _ := strings.Cut(group, ":\n")
				fmt.Fprintf(b, "\n### %s\n\n```text\n%s\n```\n", name, strings.TrimRight(flags, "\n"))
			}
		}
		b.WriteString(own)
	}
}

// newSettings returns the lines of a workload's help. Settings that an earlier workload has appear only by name.
func newSettings(help string, seen map[string]bool) string {
	lines, known := "", ""
	for line := range strings.Lines(strings.TrimRight(help, "\n") + "\n") {
		words := strings.Fields(line)
		if key := strings.Join(words, " "); seen[key] {
			known += " " + words[0]
		} else {
			seen[key] = true
			lines += line
		}
	}
	if known != "" {
		lines += "\n  as above:" + known + "\n"
	}
	return lines
}

// writeCommand writes a command and its sub-commands, with the flags that run does not have.
func writeCommand(b *strings.Builder, c, run *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	if same := c.Annotations[sameAs]; same != "" {
		fmt.Fprintf(b, "The same as `stroppy %s`.\n", same)
		return
	}
	text := cmp.Or(c.Long, c.Short)
	if c.Long == "" {
		text += "."
	}
	fmt.Fprintf(b, "```text\n%s\n\n%s\n", strings.TrimSpace(text), c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "\n%s\n", c.Example)
	}
	flags := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	flags.SortFlags = false
	var shared []string
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		same := run.Flags().Lookup(f.Name)
		switch _, ofSetting := f.Value.(*keyFlag); {
		case f.Hidden || f.Name == "help":
		case same != nil && (ofSetting || f.Name == "scenario" || f.Usage == same.Usage):
			ours, _, _ := strings.Cut(f.Usage, "; also --") // a command may have fewer of those names
			if theirs, _, _ := strings.Cut(same.Usage, "; also --"); theirs == ours && !isAlias(f) {
				shared = append(shared, "--"+f.Name)
			}
		default:
			flags.AddFlag(f)
		}
	})
	if flags.HasFlags() {
		fmt.Fprintf(b, "\n%s", flags.FlagUsages())
	}
	b.WriteString("```\n")
	if len(shared) > 0 {
		list, some := shared, "Settings of `stroppy run` that it also takes"
		if missing := otherSettings(run, shared); len(missing) < len(shared) {
			list, some = missing, "It also takes all settings of `stroppy run` except"
		}
		fmt.Fprintf(b, "\n%s:\n\n```text\n%s\n```\n", some, strings.Join(list, " "))
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && c.Name() != "completion" { // its help explains how to load each script
			writeCommand(b, below, run)
		}
	}
}

// otherSettings returns the settings of a command that are not in a list.
func otherSettings(run *cobra.Command, list []string) (other []string) {
	run.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden && !isAlias(f) && !slices.Contains(list, "--"+f.Name) {
			other = append(other, "--"+f.Name)
		}
	})
	return other
}

// isAlias reports whether a flag is another name of a setting.
func isAlias(f *pflag.Flag) bool {
	k, ok := f.Value.(*keyFlag)
	return ok && k.key.Alias != nil
}

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"

	"stroppy/tools/try"
)

// shells are those that stroppy writes a completion script for, with the file of each.
var shells = [][2]string{
	{"bash", "completions/stroppy.bash"}, {"fish", "completions/stroppy.fish"},
	{"powershell", "completions/stroppy.ps1"}, {"zsh", "completions/_stroppy"},
}

// documents are the files that stand beside each binary.
func (b *builder) documents(r *release, binaries []binary) (list []file) {
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		list = append(list, file{name, try.Must(os.ReadFile(filepath.Join(b.root, name)))})
	}
	commands := try.Must(os.ReadFile(filepath.Join(b.root, "docs", "commands.md")))
	list = append(list, file{"man/stroppy.1", manual(commands, r.version, r.time)})
	return append(append(list, b.completions(binaries)...), file{"THIRD-PARTY-NOTICES", b.notices()})
}

// completions asks a stroppy of this machine for its scripts, which are the same everywhere.
func (b *builder) completions(binaries []binary) (list []file) {
	var own binary
	if i := slices.IndexFunc(binaries, func(one binary) bool { return one.target == host() }); i >= 0 {
		own = binaries[i]
	} else {
		own = b.build(host())
	}
	for _, shell := range shells {
		list = append(list, file{shell[1], try.Output(exec.Command(own.path, "completion", shell[0]))})
	}
	return list
}

// manualHead stands in the man page before what docs/commands.md says.
const manualHead = `# "STROPPY" "1" "%s" "stroppy %s" "User Commands"

## NAME

stroppy - find out whether a database can be trusted with money, and how fast it is

## SYNOPSIS

**stroppy** _command_ [_argument_ ...] [_flags_]

## DESCRIPTION

Stroppy moves money between accounts with many clients at once, records every transaction, and then proves from the records and the end state whether the database kept its promises.

`

const manualEnd = `

## EXIT STATUS

**0**: every check is valid. **1**: a check found a violation. **2**: wrong usage or configuration. **3**: the run could not be carried out. **4**: a check could not be decided. **5**: every check is valid, and an objective was missed.

## FILES

*stroppy-runs/*: the folders of runs, in the working directory, unless **--out** names another.
`

// manual makes the man page of docs/commands.md, which a test holds to what the commands say
// of themselves.
func manual(commands []byte, version string, when time.Time) []byte {
	_, text, found := bytes.Cut(commands, []byte("-->\n"))
	if !found || !bytes.Contains(text, []byte("\n## stroppy run\n")) {
		try.Fail("docs/commands.md has not its head or not the command stroppy run: go test ./internal/cli -run TestReference -update writes it")
	}
	head := fmt.Sprintf(manualHead, when.Format(time.DateOnly), version)
	return md2man.Render(slices.Concat([]byte(head), text, []byte(manualEnd)))
}

// noticeName is how modules name the files of their licences.
var noticeName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents|uplot\.licen[cs]e)([.-].*)?$`)

// notices are the licences of all that is in a binary of any target, which ask to be passed on
// with it.
func (b *builder) notices() []byte {
	goroot := try.Output(exec.Command("go", "env", "GOROOT"))
	folders := map[string]string{
		"Go " + strings.TrimPrefix(runtime.Version(), "go"): strings.TrimSpace(string(goroot)),
		"uPlot": filepath.Join(b.root, "internal", "report", "assets"),
	}
	for _, name := range allTargets {
		system, arch, _ := strings.Cut(name, "/")
		b.modules(target{system, arch}, folders)
	}
	var text bytes.Buffer
	text.WriteString("Stroppy is under the Apache License 2.0. Its binaries contain what follows, under these licences.\n")
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		writeNotices(&text, name, folders[name])
	}
	return text.Bytes()
}

// modules adds the modules of a binary, each with its folder. Nothing is compiled for it.
func (b *builder) modules(t target, folders map[string]string) {
	command := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/stroppy")
	command.Dir, command.Env = b.root, environment(os.Environ(), t)
	for line := range strings.Lines(string(try.Output(command))) {
		if name, dir, found := strings.Cut(strings.TrimSpace(line), "\t"); found {
			folders[name] = dir
		}
	}
}

// writeNotices writes what the licence files of a folder say. A module without one is an error,
// because then nobody has allowed to pass it on.
func writeNotices(text *bytes.Buffer, name, folder string) {
	found := false
	for _, entry := range try.Must(os.ReadDir(folder)) {
		if entry.IsDir() || !noticeName.MatchString(entry.Name()) {
			continue
		}
		notice := try.Must(os.ReadFile(filepath.Join(folder, entry.Name())))
		found = true
		fmt.Fprintf(text, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 72), name, entry.Name(), bytes.TrimSpace(notice))
	}
	if !found {
		try.Fail("%s has no licence in %s: find out under which it may be passed on before releasing it", name, folder)
	}
}

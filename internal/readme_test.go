package internal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// buildCommand is how the documents build stroppy. The tests build it so, to
// another place.
const buildCommand = "CGO_ENABLED=0 go build -o stroppy ./cmd/stroppy"

// These flags are appended to commands, so that the tests are short and leave room on the machine.
const (
	brief    = " --duration 500ms" // to a run without a duration
	longer   = " --duration 1s"    // to one that has to find something, or a cluster's
	step     = " --duration 500ms" // to a sweep that does, or is over clients; one over a rate repeats shorter steps
	moderate = " --rate 60"        // to a closed loop on a cluster: each of its faults lasts for seconds
	fewer    = " --accounts 1000"  // to a bank of as many as there are by default, or more
)

// held are the commands that the documents name and that are not run here, each
// with what holds it in place of that.
func held() map[string]func(t *testing.T) {
	return map[string]func(t *testing.T){
		// Every test has run it already: its output is the binary that the others use.
		buildCommand: func(*testing.T) {},
		// They run these very tests.
		"./scripts/test.sh":       holdScript,
		"./scripts/test.sh quick": holdScript,
		// They take minutes and want a quiet machine.
		"go -C tools/bench run .": holdBench,
		"make bench":              holdBench,
		"make versions":           holdVersions,
		firstCommand:              holdFirst,
		// They install and build what every test has built, in places of their own.
		"go install ./cmd/stroppy": func(t *testing.T) { must(t, "go", "vet", "../cmd/stroppy") },
		"make dist":                holdDist,
		// They take files of a release, which the tests of tools/dist open.
		"sha256sum --check SHA256SUMS":                                                 holdDist,
		"sudo apt-get install ./stroppy-linux-amd64.deb":                               holdDist,
		"sudo dnf install ./stroppy-linux-amd64.rpm":                                   holdDist,
		"skopeo copy oci-archive:stroppy-image.oci.tar docker-daemon:stroppy:VERSION":  holdDist,
		"podman load --input stroppy-image.oci.tar":                                    holdDist,
		"ctr --namespace k8s.io images import stroppy-image.oci.tar":                   holdDist,
		"podman run --rm --read-only --tmpfs /runs localhost/stroppy:VERSION run bank": holdDist,
		"SOURCE_DATE_EPOCH=1767225600 make dist":                                       holdDist,
		// Each of them keeps a cluster for as long as another run does that shows the same.
		killedPrimary: holdKilledPrimary,
		lostTransfers: holdLostTransfers,
	}
}

// Runs on clusters, of which another document has the one with more, and a scenario is the other.
const (
	killedPrimary = "stroppy run bank --cluster postgres:2 --nemesis 'kill primary at 4s for 4s' --duration 15s"
	lostTransfers = "stroppy run bank --cluster 'postgres:2?synchronous=off&maximum_lag_on_failover=1073741824&ttl=3s&loop_wait=1s&retry_timeout=2s' " +
		`--duration 16s --nemesis "partition standbys at 2s for 5s" --nemesis "kill primary at 5s for 11s"`
)

// holdKilledPrimary checks that another page has the same run, which must be VALID too.
func holdKilledPrimary(t *testing.T) {
	list, err := commands("inject-faults.md", read(t, "../docs/how-to/inject-faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list, func(c command) bool { return c.text == killedPrimary+" --max-outage 10s" && c.code == 0 }) {
		t.Errorf("docs/how-to/inject-faults.md does not run %s --max-outage 10s", killedPrimary)
	}
}

// holdLostTransfers holds that a scenario, of which the tests want that it is INVALID, is run by the tests with the same flags.
func holdLostTransfers(t *testing.T) {
	const path = "../scenarios/patroni-lagging.yaml"
	scenario, flags := read(t, path), strings.TrimPrefix(lostTransfers, "stroppy run bank ")
	if !strings.HasPrefix(scenario, "# verdict: invalid\n") || !strings.Contains(scenario, "\n# brief: "+flags+"\n") || !strings.Contains(scenario, "\nworkload: bank\n") {
		t.Errorf("%s is not what tests run as %s", path, lostTransfers)
	}
}

// firstCommand builds the databases of its own process alone, and no C, which takes less than half of the
// time of all. GOGC=400 takes a fifth off that: the compiler's own collections of garbage.
const firstCommand = "CGO_ENABLED=0 GOGC=400 go run -tags embedded ./cmd/stroppy run bank"

// holdFirst runs the first command, and holds what its build says of what it leaves out.
func holdFirst(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "stroppy")
	must(t, "go", "build", "-tags", "embedded", "-o", binary, "../cmd/stroppy")
	must(t, binary, "run", "bank", "--duration", "1s", "--out", filepath.Join(dir, "run"))
	for _, args := range [][]string{{"run", "--db", "postgres://localhost/bank"}, {"run", "--cluster", "etcd:3"},
		{"run", "--serve", "0"}, {"run", "--metrics", "0"}, {"run", "--workers", "2"}, {"sweep", "--over", "clients=2,4,6", "--workers", "2"}, {"worker", "--join", "127.0.0.1:1"}} {
		out, err := exec.Command(binary, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !bytes.Contains(out, []byte("build it without that tag")) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

func holdScript(t *testing.T) { must(t, "sh", "-n", "../scripts/test.sh") }

// holdVersions holds what it can without the servers, which are many hundred MB.
func holdVersions(t *testing.T) {
	holdScript(t)
	must(t, "sh", "-n", "../scripts/versions.sh")
	if makefile := read(t, "../Makefile"); !strings.Contains(makefile, "\nversions:\n\t./scripts/test.sh versions\n") {
		t.Error("the Makefile's target versions is not ./scripts/test.sh versions")
	}
}

func holdBench(t *testing.T) {
	must(t, "go", "-C", "../tools/bench", "vet", ".")
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(makefile, []byte("\nbench:\n\tgo -C tools/bench run .\n")) {
		t.Error("the Makefile's target bench is not go -C tools/bench run .")
	}
}

// holdDist holds that the Makefile calls the program that makes releases, whose own tests
// scripts/test.sh runs.
func holdDist(t *testing.T) {
	if makefile := read(t, "../Makefile"); !strings.Contains(makefile, "\ndist:\n\tgo -C tools/dist run .\n") {
		t.Error("the Makefile's target dist is not go -C tools/dist run .")
	}
	if script := read(t, "../scripts/test.sh"); !strings.Contains(script, `modules="tools/bench tools/dist tools/chart"`) {
		t.Error("scripts/test.sh does not test tools/dist")
	}
}

func must(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return out
}

// documents returns the Markdown files whose commands and links are held.
func documents(t *testing.T) []string {
	t.Helper()
	list := []string{"../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md"}
	err := filepath.WalkDir("../docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// command is one line of a shell block in a document.
type command struct {
	line int
	text string // without the comment
	code int    // the exit code that the comment names; 0 if it names none
}

var (
	fence       = regexp.MustCompile("^```(.*)$")
	commentPart = regexp.MustCompile(`(?:^|\s+)#.*$`)
	exitCode    = regexp.MustCompile(`exit code (\d)`)
	assignments = regexp.MustCompile(`^(?:[A-Z_]+=\S+ +)*`)
	shellStart  = regexp.MustCompile(`^(?:\$ |\./|(?:cd|docker|git|go|make|sh|stroppy|sudo) )`)
)

// commands returns the commands in the shell blocks of a document. A block
// without a language is one if any of its lines begins like a command.
func commands(path, text string) (list []command, err error) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		opening := fence.FindStringSubmatch(lines[i])
		if opening == nil {
			continue
		}
		from := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		if i == len(lines) {
			return nil, fmt.Errorf("%s:%d: the block has no end", path, from)
		}
		block := lines[from:i]
		if !isShell(opening[1], block) {
			continue
		}
		for n, line := range block {
			if c := parseCommand(from+n+1, line); c.text != "" {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

func isShell(language string, block []string) bool {
	if language != "" {
		return slices.Contains([]string{"sh", "shell", "bash", "console"}, language)
	}
	return slices.ContainsFunc(block, func(line string) bool {
		return shellStart.MatchString(assignments.ReplaceAllString(line, ""))
	})
}

func parseCommand(number int, line string) command {
	c := command{line: number, text: strings.TrimSpace(commentPart.ReplaceAllString(line, ""))}
	if code := exitCode.FindStringSubmatch(commentPart.FindString(line)); code != nil {
		c.code, _ = strconv.Atoi(code[1]) // one digit
	}
	return c
}

// documentsVariable asks for the commands of the documents. Its value is the tier, see skipOtherTier.
const documentsVariable = "STROPPY_TEST_DOCUMENTS"

// needDocuments skips a test that runs clusters for minutes, unless scripts/test.sh or its user asks for it.
func needDocuments(t *testing.T) {
	t.Helper()
	if testing.Short() || os.Getenv(documentsVariable) == "" {
		t.Skip("runs clusters for minutes: set " + documentsVariable + "=on, or use scripts/test.sh")
	}
}

// TestDocuments runs the commands of the documents and the scenarios, on real
// servers where they name one.
func TestDocuments(t *testing.T) {
	needDocuments(t)
	stroppy, shared := buildStroppy(t), &sharedPostgres{t: t}
	onlyScenarios := os.Getenv(documentsVariable) == "seeds" || os.Getenv(documentsVariable) == "versions"
	for _, path := range documents(t) {
		list, err := commands(path, read(t, path))
		if err != nil {
			t.Fatal(err)
		}
		if onlyScenarios || len(list) == 0 {
			continue
		}
		t.Run(strings.TrimPrefix(path, "../"), func(t *testing.T) {
			t.Parallel()
			sh := newShell(t, stroppy, shared)
			for _, c := range list {
				t.Run(fmt.Sprintf("line %d", c.line), func(t *testing.T) { sh.try(t, c) })
			}
			validateResults(t, sh.dir)
		})
	}
	t.Run("scenarios", func(t *testing.T) {
		t.Parallel()
		tryScenarios(t, stroppy, shared)
	})
	if onlyScenarios {
		return
	}
	t.Run("names", func(t *testing.T) { tryNames(t, newShell(t, stroppy, shared)) })
}

// TestReaderFindsEveryCommand checks that the reader of documents misses no command.
func TestReaderFindsEveryCommand(t *testing.T) {
	text := "```sh\nstroppy a  # exit code 4: unknown\n\n# only a comment\nX=1 stroppy b\n```\n```\nX=1 go run x\nunheard of\n```\n" +
		"```\n a ──► b\n```\n```yaml\ngo: 1\n```\n"
	got, err := commands("x.md", text)
	want := []command{{2, "stroppy a", 4}, {5, "X=1 stroppy b", 0}, {8, "X=1 go run x", 0}, {9, "unheard of", 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := commands("x.md", "```sh\nstroppy a\n"); err == nil {
		t.Error("a block without an end was taken")
	}
}

// buildStroppy builds the binary as the documents do, and returns its path.
func buildStroppy(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stroppy")
	build := exec.Command("sh", "-c", strings.Replace(buildCommand, "-o stroppy", `-o "$OUTPUT"`, 1))
	build.Dir, build.Env = "..", append(os.Environ(), "OUTPUT="+path)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", buildCommand, err, out)
	}
	return path
}

// shell runs the commands of one document, one after the other in one folder and on
// a server or a database of its own.
type shell struct {
	stroppy string
	servers *servers
	dir     string
	env     []string
	skipped map[string]string // folders that a skipped command would have made, with its reason
	held    map[string]bool   // commands of the document that were held otherwise
}

func newShell(t *testing.T, stroppy string, shared *sharedPostgres) *shell {
	t.Helper()
	s := &servers{t: t, postgres: shared, started: map[string]error{}}
	sh := &shell{stroppy: stroppy, servers: s, dir: t.TempDir(), skipped: map[string]string{}, held: map[string]bool{}}
	for _, folder := range []string{"scenarios", "docs/examples"} {
		source, err := filepath.Abs("../" + folder)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(sh.dir, folder)), 0o755)
		}
		if err == nil {
			err = os.Symlink(source, filepath.Join(sh.dir, folder))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "STROPPY_") && !strings.HasPrefix(entry, "PG") {
			sh.env = append(sh.env, entry)
		}
	}
	sh.env = append(sh.env, "PATH="+filepath.Dir(stroppy)+":"+os.Getenv("PATH"))
	return sh
}

var (
	quoted     = regexp.MustCompile(`'[^']*'`)
	serverURL  = regexp.MustCompile(`\b(postgres|postgresql|etcd)://[^\s']+`)
	outFolder  = regexp.MustCompile(`--out (\S+)`)
	drives     = regexp.MustCompile(`^stroppy (run|drive)\b`)
	bounded    = regexp.MustCompile(`--(duration|count|help)\b`)
	paced      = regexp.MustCompile(`--(rate|think|think-time|scenario|help|count)\b`)
	many       = regexp.MustCompile(`--accounts \d{5,}\b`)
	bankRun    = regexp.MustCompile(`^stroppy (run|sweep|isolation)( bank)? --`)
	sized      = regexp.MustCompile(`--(accounts|no-load|scenario|help|schedules-only)\b|--over (nodes|scenarios)`)
	goRunStart = "go run ./cmd/stroppy"
)

// try runs one command, or what holds it, and wants the exit code that the
// document names.
func (sh *shell) try(t *testing.T, c command) {
	if hold, ok := held()[c.text]; ok {
		if !sh.held[c.text] { // what stands twice in a document
			sh.held[c.text] = true
			hold(t)
		}
		return
	}
	text := strings.Replace(c.text, goRunStart, "stroppy", 1)
	env := assignments.FindString(text)
	call := text[len(env):]
	switch {
	case !strings.HasPrefix(call, "stroppy "):
		t.Fatalf("%q is neither a call of stroppy nor in the list of commands that are held otherwise", c.text)
	case strings.ContainsAny(quoted.ReplaceAllString(text, ""), "|&;<>`$?*\"\\"):
		t.Fatalf("%q: in the documents stands one plain command a line, with single quotes around special characters", c.text)
	}
	drive := drives.MatchString(call)
	if drive && !bounded.MatchString(call) {
		if c.code == 0 && !strings.Contains(call, " --cluster ") && !strings.Contains(call, " --warmup ") {
			call += brief
		} else {
			call += longer
		}
	}
	if strings.HasPrefix(call, "stroppy sweep ") && (strings.Contains(call, " --duration ") || strings.Contains(call, " --over clients")) && !strings.Contains(call, " --count ") {
		call += step
	}
	if drive && strings.Contains(call, " --cluster ") && !paced.MatchString(call) {
		call += moderate
	}
	if many.MatchString(call) || bankRun.MatchString(call) && !sized.MatchString(call) {
		call += fewer
	}
	for folder, reason := range sh.skipped {
		if strings.Contains(call, folder) {
			t.Skip(reason)
		}
	}
	for _, url := range serverURL.FindAllString(text, -1) {
		address, missing := sh.servers.address(t, url)
		if missing != "" {
			if out := outFolder.FindStringSubmatch(call); out != nil {
				sh.skipped[out[1]] = missing
			}
			t.Skip(missing)
		}
		env = strings.ReplaceAll(env, url, "'"+address+"'")
		call = strings.ReplaceAll(call, "'"+url+"'", url)
		call = strings.ReplaceAll(call, url, "'"+address+"'")
	}
	code, stdout, stderr := sh.run(t, env+call)
	if code != c.code {
		t.Errorf("%s\nended with exit code %d; the document says %d\n%s\n%s", c.text, code, c.code, stdout, stderr)
	}
}

// run runs a line in the shell's folder.
func (sh *shell) run(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = sh.dir, sh.env, 10*time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", line, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestRelativeLinksLeadSomewhere checks that every relative link leads to a file, and to a heading in
// it where one is named.
func TestRelativeLinksLeadSomewhere(t *testing.T) {
	for _, path := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
				continue
			}
			if fragment != "" && !slices.Contains(slugs(read(t, file)), fragment) {
				t.Errorf("%s links to %s, and there is no such heading", path, m[1])
			}
		}
	}
}

// slugs returns the names under which the headings of a document can be linked.
func slugs(text string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		plain := noSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(strings.TrimSpace(plain), " ", "-"))
	}
	return list
}

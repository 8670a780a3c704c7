//go:build unix

package cli_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"stroppy/internal/report"
)

var liveAddress = regexp.MustCompile(`(?m)^(live report|metrics) on (http://\S+)$`)

// addresses waits until the process prints the address of its page.
func (p *process) addresses(t *testing.T, n int) map[string]string {
	t.Helper()
	found := map[string]string{}
	p.goesOn(t, func() bool {
		for _, m := range liveAddress.FindAllStringSubmatch(read(t, p.stderr), -1) {
			found[m[1]] = m[2]
		}
		return len(found) == n
	})
	return found
}

// fetch returns the content of an address, or an empty text if nobody answers.
func fetch(address string) string {
	answer, err := http.Get(address)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(data)
}

func liveData(t *testing.T, address string) (d report.Document, ok bool) {
	t.Helper()
	text := fetch(address + report.LiveData)
	if text == "" {
		return d, false
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return d, true
}

// seconds returns the number of points in the charts over time.
func seconds(d *report.Document) int {
	chart := d.Section("timeline").Chart
	if chart == nil {
		return 0
	}
	at, _ := chart.Data.(map[string]any)["timeline"].(map[string]any)["at_s"].([]any)
	return len(at)
}

// TestLivePageShowsTheWholeRun checks the live page from the load phase until the verdict, which is shown before the
// process ends.
func TestLivePageShowsTheWholeRun(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--db", "memory:", "--accounts", "1000", "--clients", "4", "--rate", "500", "--duration", "4s", "--out", "r", "--serve", "0", "--metrics", "0", "--json")
	found := p.addresses(t, 2) // one address for both: the port is any
	at := found["live report"]
	if found["metrics"] != at+"metrics" || !strings.HasPrefix(at, "http://127.0.0.1:") {
		t.Fatalf("it is shown at %q", at)
	}
	var last report.Document
	p.goesOn(t, func() bool {
		d, ok := liveData(t, at)
		if ok {
			last = d
		}
		return ok && d.Live && seconds(&d) >= 2 && d.Section("latency").Chart != nil
	})
	if last.Verdict != "running" || last.Workload != "bank" || !strings.Contains(last.Reason, "takes another") || last.Section("what").Command == "" {
		t.Errorf("it shows %+v", last)
	}
	metrics := fetch(at + "metrics")
	for _, want := range []string{`stroppy_transactions_total{database="memory",kind="transfer",outcome="committed",run="r",workload="bank"} `, `stroppy_phase{database="memory",phase="drive",run="r",workload="bank"} 1`, "stroppy_transaction_duration_seconds_bucket{", "stroppy_build_info{", "go_goroutines "} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not have %s:\n%s", want, metrics)
		}
	}
	if page := fetch(at); !strings.HasPrefix(page, "<!DOCTYPE html>") || !strings.Contains(page, "connect-src 'self'") {
		t.Errorf("the page is %.200s", page)
	}
	for deadline := time.Now().Add(waitLimit); last.Live && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if d, ok := liveData(t, at); ok {
			last = d
		}
	}
	if last.Live || last.Verdict != "valid" || !strings.Contains(last.Notes[len(last.Notes)-1].Text, filepath.Join("r", report.PageName)) {
		t.Errorf("at the end it shows %s: %s %v", last.Verdict, last.Reason, last.Notes)
	}
	code, stdout, stderr := p.wait(t)
	if code != 0 || !json.Valid([]byte(stdout)) {
		t.Fatalf("it ended with %d: %s%s", code, stderr, stdout)
	}
	if fetch(at) != "" {
		t.Error("it answers after its end")
	}
	for _, name := range []string{"scenario.yaml", "result.json"} {
		if text := read(t, filepath.Join(p.dir, "r", name)); strings.Contains(text, `"serve"`) || strings.Contains(text, "serve:") || strings.Contains(text, "metrics") {
			t.Errorf("%s reports where it was looked at from: %s", name, text)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "r", report.PageName)); err != nil {
		t.Error(err)
	}
}

// TestUnwatchedRunEndsAtOnce checks that the process does not wait if nobody watches.
func TestUnwatchedRunEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--db", "noop:", "--no-check", "--count", "100", "--serve", "0")
	if code, _, stderr := p.wait(t); code != 0 || !strings.Contains(stderr, "live report on http://127.0.0.1:") {
		t.Errorf("it ended with %d: %s", code, stderr)
	}
}

// TestUnwatchedFailureEndsAtOnce checks that a failure ends at once if nobody watches, and that no password is shown.
func TestUnwatchedFailureEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, "pay", "--db", "postgres://bank:hidden-Tr0ub4dor@127.0.0.1:1/bank?connect_timeout=30", "--serve", "0")
	code, _, stderr := p.wait(t)
	refused(t, code, 3, stderr, "127.0.0.1")
	if strings.Contains(stderr, "hidden") {
		t.Errorf("the password is shown: %s", stderr)
	}
}

// TestUnusableServeAddressIsRefused checks that the error comes before anything is made or started.
func TestUnusableServeAddressIsRefused(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, command := range []string{"run", "pay", "sweep"} {
		args := []string{command}
		switch command {
		case "sweep":
			args = append(args, "--over", "clients=1,2", "--db", "memory:")
		case "pay":
			args = append(args, "--db", "memory:")
		}
		for _, c := range []struct{ flag, value, says string }{
			{"--serve", port, "--serve: listen on 127.0.0.1:" + port + ": the port is in use"},
			{"--metrics", ":" + port, "--metrics: listen on 127.0.0.1:" + port + ": the port is in use"},
			{"--serve", "nowhere", `--serve: "nowhere" is no address: give a port`},
			{"--metrics", "localhost:x", `--metrics: "localhost:x" is no address`},
			{"--serve", "192.0.2.1:0", "no address of this machine"},
		} {
			p := start(t, append(args, c.flag, c.value)...)
			code, stdout, stderr := p.wait(t)
			refused(t, code, 2, stderr, c.says)
			if entries, err := os.ReadDir(p.dir); err != nil || len(entries) > 0 || stdout != "" {
				t.Errorf("%s %s %s left %v and printed %q: %v", command, c.flag, c.value, entries, stdout, err)
			}
		}
	}
}

// TestLivePageFollowsASweep checks that the page continues from step to step, and ends with the last.
func TestLivePageFollowsASweep(t *testing.T) {
	t.Parallel()
	p := start(t, "sweep", "--over", "clients=1,2", "--db", "memory:", "--accounts", "100", "--think-time", "2ms", "--duration", "2s", "--out", "s", "--serve", "0")
	at := p.addresses(t, 1)["live report"]
	clients := map[string]bool{}
	var last report.Document
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		d, ok := liveData(t, at)
		if !ok {
			break
		}
		last = d
		for _, f := range d.Section("what").Facts {
			if f.Name == "Load phase" && d.Section("timeline").Chart != nil {
				clients[strings.Fields(f.Value)[0]] = true
			}
		}
	}
	if !clients["1"] || !clients["2"] || last.Live || !strings.Contains(last.Notes[len(last.Notes)-2].Text, "last step of the sweep in s") {
		t.Errorf("it showed %v clients, and at the end %s %v", clients, last.Verdict, last.Notes)
	}
	if code, _, stderr := p.wait(t); code != 0 {
		t.Errorf("it ended with %d: %s", code, stderr)
	}
}

// TestLiveCheckIsServed checks that the page and the metrics show the violations that were found during the run, the
// kinds of transactions and the requested rate.
func TestLiveCheckIsServed(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--db", "memory:?mutant=lost-update&rate=0.01", "--accounts", "100", "--clients", "4", "--rate", "500", "--duration", "30s", "--live-check", "--out", "r", "--serve", "0", "--metrics", "0", "--json")
	at := p.addresses(t, 2)["live report"]
	var last report.Document
	p.goesOn(t, func() bool {
		d, ok := liveData(t, at)
		if ok {
			last = d
		}
		return ok && d.Live && d.Verdict == "invalid"
	})
	failed, figures := last.Section("failed").Checks, last.Section("figures").Figures
	if !strings.Contains(last.Reason, "The check beside the clients has found a violation of ") || len(failed) == 0 || figures[0].Name != "Throughput, last second" {
		t.Errorf("it shows %q, %+v, %+v", last.Reason, failed, figures)
	}
	metrics := fetch(at + "metrics")
	for _, want := range []string{
		`stroppy_transactions_total{database="`, `kind="transfer"`, `stroppy_target_rate{`, "} 500\n", `stroppy_live_check_transactions_total{`,
		`stroppy_check_status{check="` + failed[0].Name + `"`, `status="invalid"`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not have %s", want)
		}
	}
	p.signal(t, os.Interrupt)
	if code, _, stderr := p.wait(t); code != 1 {
		t.Errorf("it ended with %d: %s", code, stderr)
	}
}

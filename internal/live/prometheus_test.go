package live

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
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

const dashboard = "../../dashboards/stroppy.json"

// expressions returns all PromQL expressions of the dashboard by position.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d any
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var walk func(where string, x any)
	walk = func(where string, x any) {
		switch x := x.(type) {
		case map[string]any:
			for key, value := range x {
				if text, ok := value.(string); ok && key == "expr" {
					found[where] = text
				} else if ok && key == "definition" {
					inside := strings.TrimSuffix(strings.TrimPrefix(text, "label_values("), ")")
					found[where] = inside[:strings.LastIndex(inside, ",")]
				}
				walk(where+"."+key, value)
			}
		case []any:
			for i, value := range x {
				walk(fmt.Sprintf("%s[%d]", where, i), value)
			}
		}
	}
	walk("", d)
	return found
}

var metricName = regexp.MustCompile(`\b(?:stroppy|process|go)_[a-z_]+\b`)

// TestDashboardUsesExportedMetrics checks that the dashboard uses only exported metrics and all of stroppy's,
// and that its panels do not overlap.
func TestDashboardUsesExportedMetrics(t *testing.T) {
	feed, _ := violated()
	exported := []string{}
	for name := range scrape(t, feed, asText) {
		exported = append(exported, name)
	}
	shown := map[string]bool{}
	for where, expression := range expressions(t) {
		for _, name := range metricName.FindAllString(expression, -1) {
			name = strings.TrimSuffix(name, "_bucket")
			shown[name] = true
			if !slices.Contains(exported, name) {
				t.Errorf("%s names %s, which is not exported", where, name)
			}
		}
	}
	for _, name := range exported {
		if strings.HasPrefix(name, "stroppy_") && !shown[name] {
			t.Errorf("%s is not on the dashboard", name)
		}
	}
	data, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
		}
		Templating struct {
			List []struct{ Name, Type string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		g := p.GridPos
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("the panel %q is where %q is", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(d.Panels) < 10 || len(d.Templating.List) == 0 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("%d panels and the variables %v", len(d.Panels), d.Templating.List)
	}
}

// startPrometheus starts a Prometheus server that scrapes an address every second, and returns its own
// address.
func startPrometheus(t *testing.T, scraped string, features ...string) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("skipped engine: prometheus: install the Debian package prometheus")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := "global:\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\nscrape_configs:\n- job_name: stroppy\n  static_configs:\n  - targets: ['" + scraped + "']\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	cmd := exec.Command(program, append([]string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
	}, features...)...)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // one that has ended is no error
		_ = cmd.Wait()
		log.Close()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("Prometheus says:\n%s", said)
		}
	})
	return address
}

// query returns the value of each series of a Prometheus query. A native histogram has none.
func query(t *testing.T, address, expression string) (values []float64, histograms int, err error) {
	t.Helper()
	answer, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, 0, err
	}
	var parsed struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Value     [2]any
				Histogram []any
			}
		}
	}
	if err := json.Unmarshal(data, &parsed); err != nil || parsed.Status != "success" {
		return nil, 0, fmt.Errorf("%s: %w %s", answer.Status, err, parsed.Error)
	}
	for _, r := range parsed.Data.Result {
		if r.Histogram != nil {
			histograms++
			continue
		}
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, 0, err
		}
		values = append(values, v)
	}
	return values, histograms, nil
}

// variables replaces the dashboard's variables like Grafana.
var variables = strings.NewReplacer("$__rate_interval", "10s", "$workload", ".*", "$database", ".*", "$run", ".*", "$job", ".*")

// TestPrometheusAnswersTheDashboard lets Prometheus servers scrape a load phase, with and without native
// histograms, and runs every query of the dashboard.
func TestPrometheusAnswersTheDashboard(t *testing.T) {
	feed, d := violated()
	s, err := Listen(feed, "127.0.0.1:0", Options{Metrics: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve()
	defer s.Close()
	servers := map[string]string{
		"native":  startPrometheus(t, s.Address(), "--enable-feature=native-histograms"),
		"classic": startPrometheus(t, s.Address()),
	}
	for name, address := range servers {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 8))
			ready := func() bool { // until the last of several scrapes is there
				d.commit(1000, random)
				feed.Show(d.state())
				values, _, err := query(t, address, variables.Replace(`count_over_time(stroppy_transactions_total{outcome="committed"}[1m]) >= 4`))
				return err == nil && len(values) == 2 // kinds
			}
			for deadline := time.Now().Add(time.Minute); !ready(); time.Sleep(200 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("Prometheus does not scrape")
				}
			}
			for where, expression := range expressions(t) {
				if err := answered(t, address, variables.Replace(expression)); err != nil {
					t.Errorf("%s: %s\n%v", where, expression, err)
				}
			}
			_, histograms, err := query(t, address, "stroppy_transaction_duration_seconds")
			if want := map[string]int{"native": 2}[name]; err != nil || histograms != want {
				t.Errorf("it has %d native histograms: %v", histograms, err)
			}
			for _, q := range []float64{0.5, 0.99} {
				width := map[string]float64{"native": math.Exp2(1.0 / (1 << schema)), "classic": 1.5}[name]
				checkQuantile(t, address, q, width, d.all)
			}
		})
	}
}

// checkQuantile checks that Prometheus computes a quantile exact to the ratio of a bucket's ends, over the
// values during the scrapes.
func checkQuantile(t *testing.T, address string, q, width float64, all []time.Duration) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(all))
	truth := sorted[int(q*float64(len(sorted)))].Seconds()
	expression := ""
	for _, e := range expressions(t) {
		if strings.HasPrefix(e, fmt.Sprintf("histogram_quantile(%v,", q)) && !strings.Contains(e, "by (kind)") {
			expression = e
		}
	}
	values, _, err := query(t, address, variables.Replace(expression))
	if err != nil || len(values) != 1 {
		t.Errorf("%s gives %v, %v", expression, values, err)
		return
	}
	if off := math.Abs(math.Log(values[0] / truth)); off > math.Log(width)+0.02 {
		t.Errorf("the quantile %v is %v, want %v", q, values[0], truth)
	}
}

// answered waits until Prometheus has a value for an expression, because a scrape may be late on a busy
// machine.
func answered(t *testing.T, address, expression string) error {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		values, histograms, err := query(t, address, expression)
		if err == nil && len(values)+histograms > 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it gives nothing: %w", cmp.Or(err, errors.New("no series")))
		}
	}
}

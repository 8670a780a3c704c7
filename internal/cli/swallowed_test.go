package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
	"stroppy/internal/nemesis"
	"stroppy/internal/report"
	"stroppy/internal/run"
)

// immortal is a cluster of one node that reports a kill as successful and continues to run.
type immortal struct{}

func (immortal) Number() int                         { return 0 }
func (immortal) Name() string                        { return "n0" }
func (immortal) Running() bool                       { return true }
func (immortal) Kill(context.Context) error          { return nil }
func (immortal) Restart(context.Context) error       { return nil }
func (immortal) WaitHealthy(context.Context) error   { return nil }
func (i immortal) Nodes() []cluster.Node             { return []cluster.Node{i} }
func (immortal) Leader(context.Context) (int, error) { return 0, cluster.ErrNoLeader }

// TestSwallowedFaultLeavesVerdictUnknown checks that a fault without an effect or an error is recorded as not
// observed.
func TestSwallowedFaultLeavesVerdictUnknown(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	var out, complaints bytes.Buffer
	args := []string{"run", "bank", "--db", "memory:", "--accounts", "20", "--clients", "2", "--count", "200", "--out", dir}
	if code := Main(args, nil, strings.NewReader(""), &out, &complaints); code != 0 {
		t.Fatalf("a run without faults: exit code %d: %s", code, complaints.String())
	}
	kill, err := nemesis.Parse("kill n0 at 1ms for 1ms")
	if err != nil {
		t.Fatal(err)
	}
	n, err := nemesis.New(immortal{}, nil, nemesis.Script{kill}, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	var last fault.Injection
	n.Run(ctx, func() time.Duration { return time.Since(began) }, func(f fault.Injection) {
		last = f
		if f.Healing != nil {
			cancel()
		}
	})
	if !strings.Contains(last.Error, "n0 was ended and is running yet") || last.Healed != nil || last.Verified == "n0 down" {
		t.Fatalf("a fault without effect: %+v", last)
	}
	line, err := json.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, run.FaultsFile), append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	complaints.Reset()
	code := Main([]string{"check", dir, "--json"}, nil, strings.NewReader(""), &out, &complaints)
	r, err := report.Parse(out.Bytes())
	if err != nil {
		t.Fatalf("exit code %d: %v: %s", code, err, complaints.String())
	}
	if code != 4 || r.Verdict != "unknown" || !strings.Contains(out.String(), "was not injected: n0 was ended and is running yet") {
		t.Errorf("exit code %d, verdict %s: %s", code, r.Verdict, complaints.String())
	}
}

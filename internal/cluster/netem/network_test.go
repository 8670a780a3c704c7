package netem

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"stroppy/internal/cluster/host"
	"stroppy/internal/fault"
)

// TestLoopbackNetworkRejectsLinkFaults checks that a network without namespaces gives its nodes different ports,
// and rejects faults of links.
func TestLoopbackNetworkRejectsLinkFaults(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	n, err := New(t.Context(), 2, true)
	if err != nil {
		t.Fatal(err)
	}
	if n.Loopback() == "" {
		t.Error("the loopback network does not say why it is one")
	}
	if _, err := n.Add(t.Context()); err != nil {
		t.Fatal(err)
	}
	ports := map[int]bool{}
	for i := range 3 {
		h := n.Host(i)
		port, err := h.Port(t.Context(), 5432)
		if err != nil || !h.Addr().IsLoopback() {
			t.Errorf("n%d is at %s port %d: %v", i, h.Addr(), port, err)
		}
		ports[port] = true
	}
	if ports[5432] || len(ports) < 2 {
		t.Errorf("the ports are %v", ports)
	}
	if through, err := n.Reaches(t.Context(), 0, 1); err != nil || !through {
		t.Errorf("n0 reaches n1: %v, %v", through, err)
	}
	if took, err := n.RoundTrip(t.Context(), fault.Client, 2); err != nil || took <= 0 {
		t.Errorf("the round trip is %v, %v", took, err)
	}
	if _, err := n.Reaches(t.Context(), 0, 3); err == nil {
		t.Error("a host that is not there is reached")
	}
	for _, fault := range []func() error{
		func() error { _, err := n.Cut(t.Context(), []fault.Cut{{From: 0, To: 1}}); return err },
		func() error { _, err := n.Shape(t.Context(), 0, fault.Link{Loss: 0.5}); return err },
	} {
		if err := fault(); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("a fault on the loopback network: %v", err)
		}
	}
	p, err := n.Host(0).Start(exec.Command("sleep", "1000"), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	records, err := host.Records()
	if err != nil || len(records) != 1 || len(records[0].Made) != 1 || records[0].Made[0].PID != p.PID() {
		t.Errorf("the record of a process on loopback: %+v, %v", records, err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := n.Add(t.Context()); err == nil {
		t.Error("a host was added to a closed network")
	}
	if records, err := host.Records(); err != nil || len(records) > 0 {
		t.Errorf("records after Close: %v, %v", records, err)
	}
}

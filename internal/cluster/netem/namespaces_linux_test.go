package netem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"stroppy/internal/cluster/host"
	"stroppy/internal/fault"
)

// roleVariable makes the test binary play a role instead of running tests.
const roleVariable = "STROPPY_CLUSTER_TEST_ROLE"

func init() {
	switch role, text, _ := strings.Cut(os.Getenv(roleVariable), " "); role {
	case "":
		return
	case "echo":
		fmt.Println(serveEcho(text))
	case "own":
		fmt.Println(ownNetwork(text))
	case "user":
		fmt.Println(loopbackReason(text))
	default:
		fmt.Println("unknown part", role)
	}
	os.Exit(1)
}

func inRole(ctx context.Context, role string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// serveEcho sends back what it receives.
func serveEcho(address string) error {
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() { _, _ = io.Copy(conn, conn) }()
	}
}

// needNamespaces skips a test if the user may not make network namespaces. It finds out without the code under test.
func needNamespaces(t *testing.T) {
	t.Helper()
	refused := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		refused <- unix.Unshare(unix.CLONE_NEWNET)
	}()
	if err := <-refused; err != nil {
		t.Skip("skipped engine: network namespaces: run as root")
	}
}

// newNamespaces makes a network and checks at the end of the test that nothing is left of it. Its record is in the
// user's folder, so that a later program clears it if this test is killed.
func newNamespaces(t *testing.T, hosts int) *Network {
	t.Helper()
	needNamespaces(t)
	n, err := New(t.Context(), hosts, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if f, ok := n.backend.(*namespaces); ok {
			if left := traces(t, f.id); len(left) > 0 {
				t.Errorf("%v are left after Close", left)
			}
			if named, err := recorded(f.id); err != nil || named {
				t.Errorf("a record names the network after Close: %v, %v", named, err)
			}
		}
	})
	if reason := n.Loopback(); reason != "" {
		t.Fatalf("there are no namespaces: %s", reason)
	}
	return n
}

// recorded reports whether a record names something with this id.
func recorded(id string) (bool, error) {
	records, err := host.Records()
	return slices.ContainsFunc(records, func(r host.RecordInfo) bool {
		return slices.ContainsFunc(r.Made, func(l host.Leftover) bool { return strings.Contains(l.Name, id) })
	}), err
}

// traces lists the links with this id. This program's own link disappears with the switch, like the links of all
// hosts.
func traces(t *testing.T, id string) (left []string) {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.Contains(l.Attrs().Name, id) {
			left = append(left, l.Attrs().Name)
		}
	}
	return left
}

// echoOn starts a server on a host and returns its address.
func echoOn(t *testing.T, h *host.Host) (string, *host.Process) {
	t.Helper()
	port, err := h.Port(t.Context(), 4001)
	if err != nil {
		t.Fatal(err)
	}
	address := netip.AddrPortFrom(h.Addr(), uint16(port)).String()
	p, err := h.Start(inRole(context.Background(), "echo "+address), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return address, p
}

// dialFrom connects from a place, and tries again until the server listens.
func dialFrom(t *testing.T, n *Network, place int, address string) net.Conn {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var conn net.Conn
		err := n.at(place, func() (err error) {
			conn, err = net.DialTCP("tcp4", nil, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)))
			return err
		})
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		if time.Now().After(limit) {
			t.Fatalf("connect to %s: %v", address, err)
		}
	}
}

func exchange(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("the echo of %q is %q, %v", text, got, err)
	}
}

func TestEachHostHasItsOwnNamespace(t *testing.T) {
	n := newNamespaces(t, 2)
	addresses := map[netip.Addr]bool{}
	for i := range 3 {
		if i == 2 {
			if _, err := n.Add(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		h := n.Host(i)
		addresses[h.Addr()] = true
		if here, err := OnThisMachine(h.Addr()); err != nil || !here {
			t.Errorf("%v is on this machine: %v, %v", h.Addr(), here, err)
		}
		address, p := echoOn(t, h)
		if !strings.HasSuffix(address, ":4001") {
			t.Errorf("the server of n%d is at %s, want the standard port", i, address)
		}
		exchange(t, dialFrom(t, n, fault.Client, address), "from the client")
		exchange(t, dialFrom(t, n, 0, address), "from n0")
		var ours, its unix.Stat_t
		err := errors.Join(unix.Stat("/proc/self/ns/net", &ours), unix.Stat(fmt.Sprintf("/proc/%d/ns/net", p.PID()), &its))
		if err != nil || ours.Ino == its.Ino {
			t.Errorf("the server of n%d is in this program's own namespace: %v", i, err)
		}
	}
	if len(addresses) != 3 {
		t.Errorf("three hosts have the addresses %v", addresses)
	}
	for range 20 { // no thread of this program has stayed in a namespace
		link := n.backend.(*namespaces).homeEnd.name
		if _, err := net.InterfaceByName(link); err != nil {
			t.Fatalf("a thread does not see %s: %v", link, err)
		}
	}
}

// becomeUser makes this process run as another user.
func becomeUser(uid string) error {
	id, err := strconv.Atoi(uid)
	if err == nil {
		err = syscall.Setuid(id)
	}
	return err
}

// loopbackReason returns why another user has no namespaces.
func loopbackReason(uid string) string {
	if err := becomeUser(uid); err != nil {
		return err.Error()
	}
	n, err := New(context.Background(), 2, false)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v: %s %v", n.Host(1).Addr(), n.Loopback(), n.Close())
}

// TestUserWithoutNamespacesGetsLoopback checks that a user who may not make namespaces gets a network on the
// loopback address, with the reason.
func TestUserWithoutNamespacesGetsLoopback(t *testing.T) {
	needNamespaces(t)
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir) // it belongs to another user
	t.Setenv("TMPDIR", dir)
	said, _ := inRole(t.Context(), "user 65534").CombinedOutput() // every part ends with status 1
	out := string(said)
	const want = "127.0.0.1: network namespaces need root, or the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN: "
	if !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "<nil>\n") {
		t.Errorf("another user's network: %s", out)
	}
	t.Logf("%s", out)
	files, err := filepath.Glob(filepath.Join(dir, "stroppy-65534", "*"))
	if err != nil || len(files) > 0 {
		t.Errorf("%v are left, %v", files, err)
	}
}

// reach returns which of the hosts and the client reach each other.
func reach(t *testing.T, n *Network, hosts int) map[fault.Cut]bool {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	matrix := map[fault.Cut]bool{}
	for from := fault.Client; from < hosts; from++ {
		for to := fault.Client; to < hosts; to++ {
			if from == to {
				continue
			}
			all.Go(func() {
				through, err := n.Reaches(t.Context(), from, to)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				matrix[fault.Cut{From: from, To: to}] = through
			})
		}
	}
	all.Wait()
	return matrix
}

func expectCut(t *testing.T, n *Network, hosts int, want map[fault.Cut]int) {
	t.Helper()
	for way, through := range reach(t, n, hosts) {
		if cut := want[way] > 0; cut == through {
			t.Errorf("from %s to %s: reaches is %v with the cuts %v", endpointName(way.From), endpointName(way.To), through, want)
		}
	}
}

// TestOverlappingCutsHealIndependently checks that random overlapping cuts block exactly their directions, before
// and after each heal.
func TestOverlappingCutsHealIndependently(t *testing.T) {
	n := newNamespaces(t, 3)
	random := rand.New(rand.NewPCG(3, 1))
	type injected struct {
		cuts []fault.Cut
		heal func() error
	}
	var faults []injected
	want := map[fault.Cut]int{}
	shapes := [][]fault.Cut{
		{{From: 0, To: 1}},                   // one way
		{{From: 1, To: 2}, {From: 2, To: 1}}, // both ways
		{{From: 0, To: fault.Client}},        // answers to the client
		{{From: fault.Client, To: 2}},        // calls of the client
		{{From: 0, To: 1}, {From: 1, To: 0}, {From: 0, To: 2}, {From: 2, To: 0}}, // a node from its peers
	}
	expectCut(t, n, 3, want)
	for step := range 12 {
		if len(faults) > 0 && (step > 8 || random.IntN(3) == 0) {
			i := random.IntN(len(faults))
			for range 2 { // a second heal changes nothing
				if err := faults[i].heal(); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range faults[i].cuts {
				want[c]--
			}
			faults = append(faults[:i], faults[i+1:]...)
		} else {
			cuts := shapes[random.IntN(len(shapes))]
			heal, err := n.Cut(t.Context(), cuts)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cuts {
				want[c]++
			}
			faults = append(faults, injected{cuts: cuts, heal: heal})
		}
		expectCut(t, n, 3, want)
	}
	for _, f := range faults {
		if err := f.heal(); err != nil {
			t.Fatal(err)
		}
	}
	expectCut(t, n, 3, nil)
}

// TestCutConnectionContinuesAfterHeal checks that an open connection is cut without a notice, and continues after
// the heal.
func TestCutConnectionContinuesAfterHeal(t *testing.T) {
	n := newNamespaces(t, 2)
	address, _ := echoOn(t, n.Host(0))
	for _, place := range []int{fault.Client, 1} {
		for _, cut := range fault.Between(0, place) {
			conn := dialFrom(t, n, place, address)
			exchange(t, conn, "before")
			heal, err := n.Cut(t.Context(), []fault.Cut{cut})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "during"); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 6)
			_ = conn.SetDeadline(time.Now().Add(400 * time.Millisecond))
			if _, err := io.ReadFull(conn, got); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection of %s with %v is not held but %q, %v", endpointName(place), cut, got, err)
			}
			if err := heal(); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != "during" {
				t.Errorf("the connection of %s with %v after the heal: %q, %v", endpointName(place), cut, got, err)
			}
		}
	}
}

func TestInvalidLinkFaultsAreRejected(t *testing.T) {
	n := newNamespaces(t, 1)
	for _, c := range []fault.Cut{{}, {To: 1}, {From: -2}} {
		if heal, err := n.Cut(t.Context(), []fault.Cut{c}); err == nil || heal != nil {
			t.Errorf("Cut(%v) is taken", c)
		}
	}
	for _, l := range []fault.Link{{Delay: -1}, {Loss: 1.1}, {Bandwidth: 3}, {Delay: time.Hour}} {
		if _, err := n.Shape(t.Context(), 0, l); err == nil {
			t.Errorf("Shape(%v) is taken", l)
		}
	}
	if _, err := n.Shape(t.Context(), fault.Client, fault.Link{Loss: 0.5}); err == nil {
		t.Error("Shape of the client is taken")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := n.Reaches(ended, fault.Client, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Reaches after its context: %v", err)
	}
	expectCut(t, n, 1, nil)
}

// TestCloseEndsProcesses checks that closing a network ends the processes of a server and of a delayed link.
func TestCloseEndsProcesses(t *testing.T) {
	n := newNamespaces(t, 1)
	_, p := echoOn(t, n.Host(0))
	if _, err := n.Shape(t.Context(), 0, fault.Link{Delay: time.Second, Bandwidth: 4096}); err != nil {
		t.Fatal(err)
	}
	heal, err := n.Cut(t.Context(), []fault.Cut{{From: fault.Client}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Error("the server has outlived its network")
	}
	if err := heal(); err != nil {
		t.Errorf("heal after Close: %v", err)
	}
	if _, err := n.Reaches(t.Context(), fault.Client, 0); err == nil {
		t.Error("Reaches after Close knows something")
	}
	if out, err := exec.Command("ip", "link").CombinedOutput(); err == nil && bytes.Contains(out, []byte(n.backend.(*namespaces).id)) {
		t.Errorf("ip link still shows it: %s", out)
	}
}

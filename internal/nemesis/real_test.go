package nemesis

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/netem"
	"stroppy/internal/fault"
)

// shopVariable makes the test binary a server instead of running tests: the
// address to listen on, and the folder of its data.
const shopVariable = "STROPPY_NEMESIS_TEST_SHOP"

func TestMain(m *testing.M) {
	if address, dir, ok := strings.Cut(os.Getenv(shopVariable), " "); ok {
		fmt.Println(keepShop(address, dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// keepShop answers every line with what is in its data folder, until SIGTERM.
func keepShop(address, dir string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		os.Exit(0)
	}()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				text, err := os.ReadFile(filepath.Join(dir, "stock"))
				if err != nil {
					return
				}
				fmt.Fprintf(conn, "%s\n", text)
			}
		}()
	}
}

// shop is one server of shops.
type shop struct {
	*host.Server
	address string
}

// ask returns the node's answer.
func (s *shop) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("?\n")); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}

func (s *shop) ready(ctx context.Context) error {
	for {
		_, err := s.ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// shops is a cluster of real servers that share nothing: the first that runs
// leads, unless the lead was moved.
type shops struct {
	network *netem.Network
	dir     string

	mu    sync.Mutex
	nodes []*shop
	next  int // a number is never used again
	moved int
}

func openShops(t *testing.T, count int, loopback bool) *shops {
	t.Helper()
	network, err := netem.New(t.Context(), 0, loopback)
	if err != nil {
		t.Fatal(err)
	}
	s := &shops{network: network, dir: t.TempDir()}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	for range count {
		if _, err := s.Add(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *shops) Add(ctx context.Context) (int, error) {
	on, err := s.network.Add(ctx)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	number := s.next
	s.next++
	s.mu.Unlock()
	port, err := on.Port(ctx, 7000)
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(s.dir, nodeName(number))
	n := &shop{address: net.JoinHostPort(on.Addr().String(), strconv.Itoa(port))}
	stock := func(text string) error { return os.WriteFile(filepath.Join(dir, "stock"), []byte(text), 0o600) }
	n.Server = host.NewServer(context.Background(), number, on, dir, dir+".log", host.Program{
		Command: func(context.Context) (*exec.Cmd, error) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), shopVariable+"="+n.address+" "+dir)
			return cmd, nil
		},
		Ready:         n.ready,
		Join:          func(context.Context) error { return stock("joined") },
		Death:         syscall.SIGKILL,
		Shutdown:      syscall.SIGTERM,
		ShutdownLimit: 10 * time.Second,
	})
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	if err := stock("own"); err != nil {
		return 0, err
	}
	if err := n.Restart(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = append(s.nodes, n)
	return number, nil
}

func (s *shops) Remove(ctx context.Context, number int) error {
	s.mu.Lock()
	i := slices.IndexFunc(s.nodes, func(n *shop) bool { return n.Number() == number })
	n := s.nodes[i]
	s.nodes = slices.Delete(slices.Clone(s.nodes), i, i+1)
	s.mu.Unlock()
	return n.Kill(ctx)
}

func (s *shops) list() []*shop {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes
}

func (s *shops) Nodes() (list []cluster.Node) {
	for _, n := range s.list() {
		list = append(list, n)
	}
	return list
}

func (s *shops) URL() string             { return "" }
func (s *shops) NodeURL(int) string      { return "" }
func (s *shops) Network() *netem.Network { return s.network }

func (s *shops) Leader(ctx context.Context) (int, error) {
	s.mu.Lock()
	moved := s.moved
	s.mu.Unlock()
	for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		up := -1
		for _, n := range s.list() {
			if n.Running() && !n.Paused() && (up < 0 || n.Number() == moved) {
				up = n.Number()
			}
		}
		if up >= 0 {
			return up, nil
		}
	}
	return 0, ctx.Err()
}

func (s *shops) MoveLeader(_ context.Context, to int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = to
	return nil
}

func (s *shops) WaitHealthy(ctx context.Context) error {
	for _, n := range s.list() {
		if err := n.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *shops) Stop() (err error) {
	for _, n := range s.list() {
		if errKill := n.Kill(context.Background()); errKill != nil {
			err = errKill
		}
	}
	if errClose := s.network.Close(); errClose != nil {
		err = errClose
	}
	return err
}

// look checks from this program that all nodes answer, except for the nodes that hurt names.
func (s *shops) look(t *testing.T, what string, hurt func(name string) bool) {
	t.Helper()
	for _, n := range s.list() {
		if hurt(n.Name()) {
			if text, err := n.ask(t.Context()); err == nil {
				t.Errorf("%s: %s answers %q", what, n.Name(), text)
			}
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := n.ready(ctx); err != nil {
			t.Errorf("%s: %s does not answer: %v", what, n.Name(), err)
		}
		cancel()
	}
}

func nobody(string) bool { return false }

// TestFaultsOnRealProcesses checks the effect of each fault on real processes from outside. Faults that need a
// layer or a steered clock are left out.
func TestFaultsOnRealProcesses(t *testing.T) {
	s := openShops(t, 4, false)
	faults := []string{"kill leader", "stop follower", "pause random", "replace random", "kill all", "move leader", "move leader to n0",
		"rolling-restart", "add node", "remove follower", "exec 'echo hurt > " + s.dir + "/hurt' 'rm " + s.dir + "/hurt'"}
	links := []string{"partition leader", "partition minority", "partition halves", "partition ring", "partition bridge", "partition all", "partition n0 one-way", "partition n0 one-way in",
		"partition client from n1", "partition client from n1 one-way", "partition client from n1 one-way in",
		"slow n0 by 20ms varying 5ms", "lossy n1 by 20%", "limit all to 200kB/s"}
	if why := s.network.Loopback(); why != "" {
		t.Logf("without the faults of links: %s", why)
		links = nil
	}
	text := "cycle every 400ms for 200ms: " + strings.Join(append(links, faults...), " | ")
	var script Script
	script = append(script, must(t, text))
	n, err := New(s, s.network, script, 1)
	if err != nil {
		t.Fatal(err)
	}
	n.late = time.Hour // on a busy machine, too, each fault has its turn
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	var over []fault.Injection
	n.Run(ctx, func() time.Duration { return time.Since(began) }, func(i fault.Injection) {
		if !i.Over {
			checkReal(t, s, i)
			return
		}
		well(t, i)
		if i.InEffect == nil {
			return
		}
		t.Logf("%s: %s: %d µs late, seen after %d ms: %s", i.Fault, i.Target, (i.At-i.Scheduled)/1e3, (*i.InEffect-i.At)/1e6, i.Verified)
		s.look(t, i.Fault+", which is over", nobody)
		if strings.HasPrefix(i.Fault, "replace") {
			for _, n := range s.list() {
				if text, err := n.ask(t.Context()); err != nil || strings.Contains(i.Target, n.Name()) != (text == "joined\n") {
					t.Errorf("%s was replaced; the stock of %s is %q, %v", i.Target, n.Name(), text, err)
				}
			}
		}
		if over = append(over, i); len(over) == len(faults)+len(links) {
			cancel()
		}
	})
	if len(over) < len(faults)+len(links) {
		t.Errorf("%d of %d faults had their turn", len(over), len(faults)+len(links))
	}
	if err := n.Whole(t.Context()); err != nil {
		t.Error(err)
	}
}

// checkReal looks from outside whether a fault is in effect.
func checkReal(t *testing.T, s *shops, i fault.Injection) {
	t.Helper()
	word, _, _ := strings.Cut(i.Fault, " ")
	if strings.HasPrefix(i.Fault, "partition client") {
		word = "kill" // it looks the same from here
	}
	switch word {
	case "kill", "stop", "pause":
		s.look(t, i.Fault, func(name string) bool { return strings.Contains(i.Target, name) })
	case "partition", "slow", "limit":
		s.look(t, i.Fault, nobody)
	case "exec":
		if _, err := os.Stat(filepath.Join(s.dir, "hurt")); err != nil {
			t.Errorf("the command did nothing: %v", err)
		}
	}
}

// TestRealFaultsAreHealedAtEnd checks that several faults on one node are healed when the load phase ends.
func TestRealFaultsAreHealedAtEnd(t *testing.T) {
	s := openShops(t, 3, false)
	lines := []string{"pause n0 at 100ms", "kill n0 at 200ms", "kill n1 at 300ms", "exec 'sleep 100 & echo left' 'true' at 100ms", "stop n2 at 400ms"}
	if s.network.Loopback() == "" {
		lines = append(lines, "partition n1 at 150ms", "partition halves at 160ms", "slow n2 by 10ms at 250ms")
	}
	n, err := New(s, s.network, script(t, lines...), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	effective, over := 0, 0
	n.Run(ctx, func() time.Duration { return time.Since(began) }, func(i fault.Injection) {
		if i.Over {
			well(t, i)
			over++
		} else if effective++; effective == len(lines) {
			cancel()
		}
	})
	if over != len(lines) {
		t.Errorf("%d of %d injections are over", over, len(lines))
	}
	if err := n.Whole(t.Context()); err != nil {
		t.Error(err)
	}
	s.look(t, "after the heal", nobody)
}

// TestLoopbackRejectsLinkFaults checks that faults of links are rejected at once if the nodes share one address.
func TestLoopbackRejectsLinkFaults(t *testing.T) {
	s := openShops(t, 3, true)
	for _, line := range []string{"partition leader", "partition client from n0", "slow n0 by 10ms", "mix: kill n0 | lossy n1 by 5%"} {
		_, err := New(s, s.network, script(t, line), 1)
		if err == nil || !strings.Contains(err.Error(), "share one address") {
			t.Errorf("%s on loopback: %v", line, err)
		}
	}
	if _, err := New(s, s.network, script(t, "kill leader", "replace random"), 1); err != nil {
		t.Error(err)
	}
}

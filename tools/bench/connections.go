package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"stroppy/internal/cluster/pgbouncer"
	"stroppy/internal/cluster/postgres"
)

// connections is how many one process holds.
const connections = 10_000

// many measures what a connection costs the process that holds it: ours and pgbench's,
// each with all of them to a pooler, which has 20 sessions of the server.
func (s *suite) many() error {
	server, err := postgres.Start(s.ctx, postgres.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	pooler, err := pgbouncer.Start(s.ctx, pgbouncer.Options{
		Server: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(server.Port())), User: postgres.Superuser,
		Settings: map[string]string{
			"pool_mode": "transaction", "max_client_conn": strconv.Itoa(2 * connections), "listen_backlog": "4096",
		},
	})
	if err != nil {
		return err
	}
	defer func() { _ = pooler.Stop() }()
	pgbench, err := postgres.PGBin("pgbench")
	if err != nil {
		return err
	}
	if _, err := s.tpcbFresh(server.URL()); err != nil {
		return err
	}
	// So long that each connection has a transaction or two.
	long := max(s.seconds, 10*time.Second)
	count := strconv.Itoa(connections)
	ours, err := s.driveTPCB("--db="+pooler.URL(postgres.Superuser, postgres.Superuser, "prepare=false&answer_timeout=1m"),
		"--no-load", "--clients="+count, "--duration="+long.String())
	if err != nil {
		return err
	}
	peer := exec.CommandContext(s.ctx, pgbench, "-n", "-c", count, "-j", "2", "-M", "extended", "-T", strconv.Itoa(int(long.Seconds())),
		pooler.URL(postgres.Superuser, postgres.Superuser, ""))
	if _, err := run(peer); err != nil {
		return err
	}
	used, ok := peer.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return fmt.Errorf("this system does not say how much memory pgbench took")
	}
	const kib = 1 << 10
	a, b := float64(ours.Client.RSS)/connections/kib, float64(used.Maxrss)/connections
	s.row("connections: 10,000 in one process: memory of the process for each", fmt.Sprintf("%.1f KiB", a), fmt.Sprintf("%.1f KiB", b),
		fmt.Sprintf("%.2f", a/b), "< 30 kB")
	s.row("connections: transactions a second through the pooler", fmt.Sprintf("%.0f", ours.Drive.TPS.Mean), "", "", "")
	return nil
}

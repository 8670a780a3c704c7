package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/postgres/pgbouncer"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/tools/try"
)

const (
	manyConnections = 10_000
	// studyConnections is the number of connections of all load generators of the study.
	studyConnections = 100_800
	ownFiles         = 500 // that a process with many connections opens beside them, at most
)

// connections measures the cost of a connection in a process with 10,000 of them, for Stroppy and pgbench. They
// connect to a pooler, which has 20 sessions of the server. Then Stroppy opens as many as the study had, from several
// local addresses, within the process's limit of open files.
func (s *suite) connections() {
	s.serve(cluster.Alone(nil), func(s *server) {
		var limit syscall.Rlimit
		try.Check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
		most := min(studyConnections, int(limit.Max)-ownFiles)
		if most < manyConnections {
			try.Fail("a process may have %d open files here: raise the limit (ulimit -n) above %d", limit.Max, manyConnections+ownFiles)
		}
		address := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(s.Port()))
		limits := map[string]string{"max_client_conn": strconv.Itoa(most + 100), "listen_backlog": "4096"}
		pooler := try.Must(pgbouncer.Start(s.ctx, address, postgres.Superuser, limits))
		defer func() { _ = pooler.Stop() }()
		s.tpcbFresh()
		// So long that each connection has a transaction or two.
		long := max(s.seconds, 10*time.Second)
		ours := s.hold(pooler, "tpcb", manyConnections, long)
		peer := exec.CommandContext(s.ctx, s.pgbench, "-n", "-c", strconv.Itoa(manyConnections), "-j", "2", "-M", "extended", "-T", strconv.Itoa(int(long.Seconds())),
			pooler.URL(postgres.Superuser, postgres.Superuser, ""))
		try.Output(peer)
		s.row("connections: 10,000 in one process: memory of the process for each", "%.1f KiB",
			float64(ours.Client.RSS)/manyConnections/(1<<10), memoryOf(peer.ProcessState)/manyConnections/(1<<10), "≤ 1.00")
		s.row("connections: transactions a second through the pooler", "%.0f", ours.speed().rate, 0, "")
		scripts := s.hold(pooler, "script", manyConnections, long, "--builtin=tpcb-like", "--no-receipts")
		s.row("connections: 10,000 clients of script in one process: memory of the process for each", "%.1f KiB",
			float64(scripts.Client.RSS)/manyConnections/(1<<10), memoryOf(peer.ProcessState)/manyConnections/(1<<10), "≤ 1.00")
		all := s.hold(pooler, "tpcb", most, 3*long, "--local-address=127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5")
		s.row(fmt.Sprintf("connections: %d in one process: memory of the process for each", most), "%.1f KiB", float64(all.Client.RSS)/float64(most)/(1<<10), 0, "")
		s.row(fmt.Sprintf("connections: %d in one process: transactions a second", most), "%.0f", all.speed().rate, 0, "")
	})
}

// hold runs transactions of a workload from so many connections to the pooler.
func (s *server) hold(pooler *pgbouncer.Pooler, workload string, count int, long time.Duration, args ...string) *result {
	return s.runWorkload(workload, append(args, "--db="+pooler.URL(postgres.Superuser, postgres.Superuser, "prepare=false&answer_timeout=2m"),
		"--no-load", "--clients="+strconv.Itoa(count), "--duration="+long.String())...)
}

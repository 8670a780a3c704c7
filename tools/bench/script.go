package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"stroppy/internal/cluster"
	"stroppy/tools/try"
)

// script measures the workload script beside pgbench with the same script, protocol and clients, on the same tables.
// pgbench has one thread, and two for its best. Receipts and tracked tables are measured beside the same script without
// them.
func (s *suite) script() {
	s.serve(cluster.Alone(nil), func(s *server) {
		path := filepath.Join(s.dir, "pipeline.sql")
		try.Check(os.WriteFile(path, []byte(tpcbScripts["pipeline"]), 0o644))
		plain, scale := []string{"--no-receipts", "--retries=0", tpcbClients}, "scale="+strconv.Itoa(tpcbScale)
		receipts := []string{"--builtin=tpcb-like", "--retries=0", tpcbClients}
		tracked := append(slices.Clone(plain), "--builtin=tpcb-like", "--track=pgbench_accounts(aid)", "--track=pgbench_tellers(tid)",
			"--track=pgbench_branches(bid)", "--yes")
		all := []contender{
			s.ours("tpcb-like", "script", append(plain, "--builtin=tpcb-like")...),
			s.ours("receipts", "script", receipts...),
			s.ours("tracked", "script", tracked...),
			s.ours("pipeline", "script", append(plain, "--script="+path, "--define="+scale)...),
			s.theirs("pgbench", "-c", "8", "-M", "prepared"),
			s.theirs("pgbench -j 2", "-c", "8", "-M", "prepared", "-j", "2"),
			s.theirs("pgbench's pipeline", "-c", "8", "-M", "prepared", "-f", path, "-D", scale),
		}
		reached := contest(tpcbTurns, all, s.tpcbFresh, s.settle)
		for _, row := range []struct{ name, ours, peer, rate, cpu string }{
			{"tpcb-like (pgbench -M prepared)", "tpcb-like", "pgbench", "≥ 1.00", "≤ 1.00"},
			{"tpcb-like (pgbench -M prepared -j 2)", "tpcb-like", "pgbench -j 2", "≥ 1.00", "≤ 1.00"},
			{"tpcb-like in a pipeline (pgbench, the same)", "pipeline", "pgbench's pipeline", "≥ 1.00", ""},
			{"tpcb-like with receipts (without)", "receipts", "tpcb-like", "≥ 0.85", ""},
			{"tpcb-like with tracked tables (without)", "tracked", "tpcb-like", "≥ 0.75", ""},
		} {
			ours, peer := reached[row.ours], reached[row.peer]
			s.row("script: 8 clients, "+row.name+": transactions a second", "%.0f", ours.rate, peer.rate, row.rate)
			s.row("script: 8 clients, "+row.name+": client CPU a transaction", "%.1f µs", ours.cost, peer.cost, row.cpu)
		}
	})
}

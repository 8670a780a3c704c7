package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/cluster"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/tools/try"
)

// transfersOnly takes everything but plain transfers out of the mix, so that
// measurements are a transfer's.
var transfersOnly = []string{"--seed=1", "--payroll-share=0", "--two-account-share=0", "--read-only-share=0", "--audits=0", "--clients=16"}

// harness measures the tool itself: transactions against noop: with history and
// histograms on.
func (s *suite) harness() {
	r := s.drive("bank", append(transfersOnly, "--db=noop:")...)
	s.row("noop: transfers a second", "%.0f", r.speed().rate, 0, "≥ 1000000 on two cores")
	s.row("noop: CPU a transfer", "%.2f µs", r.speed().cost, 0, "")
}

// memory measures what 50 million accounts cost while transfers run on them.
func (s *suite) memory() {
	for _, zipfian := range []string{"--zipfian=false", "--zipfian=true"} {
		r := s.drive("bank", "--seed=1", "--db=noop:", "--accounts=50000000", "--clients=16", zipfian, "--audits=1", "--no-load")
		s.row("noop: memory with 50,000,000 accounts, "+zipfian[2:], "%.0f MB", float64(r.Client.RSS)/1e6, 0, "< 200 MB")
	}
}

// bank measures the load of a million accounts and transfers in each mode beside
// pgbench's TPC-B.
func (s *suite) bank() {
	s.serve(cluster.Alone(nil), func(s *server) {
		a, b := s.loads(s.timed(s.stroppy, "pop", "--db="+s.URL(), "--accounts=1000000", "--seed=1"),
			s.timed(s.pgbench, "-i", "-s", "10", "-q", s.URL()))
		s.row("postgres: load 1,000,000 accounts (pgbench -i -s 10)", "%.2f s", a, b, "≤ 0.90")
		all, modes := []contender{s.theirs("pgbench", "-c", "16", "-j", "2")}, []string{"pipelined", "interactive", "procedure"}
		for _, mode := range modes {
			all = append(all, s.ours(mode, "bank", append(slices.Clone(transfersOnly), "--mode="+mode)...))
		}
		reached := contest(1, all, nil, nil)
		for i, mode := range modes {
			ours, peer := reached[mode], reached["pgbench"]
			s.row("postgres: client CPU a transfer, 16 clients, "+mode, "%.1f µs", ours.cost, peer.cost, []string{"≤ 30 µs", "", ""}[i])
			s.row("postgres: transfers a second, "+mode+" (pgbench: TPC-B)", "%.0f", ours.rate, peer.rate, "")
		}
	})
}

// Both sides run on pgbench's ten branches, for which eight clients wait now and then.
const (
	tpcbScale   = 10
	tpcbRows    = tpcbScale * (1 + 10 + 100_000)
	tpcbClients = "--clients=8"
	tpcbTurns   = 5
)

// tpcbModes are the modes with what is wanted of them, and the way of pgbench that does the
// same. It has no procedure.
var tpcbModes = []struct{ name, peer, rate, cpu string }{
	{"pipelined", "pipeline", "≥ 1.00", "≤ 1.00"}, {"interactive", "joined", "≥ 1.00", "≤ 1.70"}, {"procedure", "none", "", ""},
}

// The transaction of pgbench's tpcb-like, in two parts for where its pipelines end.
const (
	tpcbBegin = `\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
\startpipeline
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
`
	tpcbRest = `SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
`
	pipelineEnds = "\\endpipeline\n"
)

// tpcbScripts do the same work as two of our modes: all statements in one round trip, or each
// in one of its own but BEGIN, which travels with the first.
var tpcbScripts = map[string]string{
	"pipeline": tpcbBegin + tpcbRest + pipelineEnds,
	"joined":   tpcbBegin + pipelineEnds + tpcbRest,
}

// tpcb measures the transaction of TPC-B beside pgbench on the same tables: the load, then each mode. On a disk both
// wait much of the time; in memory the cost of each side remains.
func (s *suite) tpcb() {
	s.serve(cluster.Alone(nil), func(s *server) {
		s.tpcbLoads()
		s.tpcbModes("disk")
	})
	inMemory := cluster.Alone(nil)
	inMemory.InMemory = true
	s.serve(inMemory, func(s *server) { s.tpcbModes("memory") })
}

// tpcbModes compares each mode with the same mode of pgbench, with one thread. It also prints the speed of pgbench's
// own transaction, whose BEGIN has a round trip of its own: with the simple protocol, which is pgbench's default, and
// prepared with one and two threads.
func (s *server) tpcbModes(medium string) {
	all := []contender{
		s.theirs("by default", "-c", "8", "-M", "simple"),
		s.theirs("-M prepared", "-c", "8"), s.theirs("-M prepared -j 2", "-c", "8", "-j", "2"),
	}
	printed := len(all)
	for name, text := range tpcbScripts {
		script := filepath.Join(s.dir, name+".sql")
		try.Check(os.WriteFile(script, []byte(text), 0o644))
		all = append(all, s.theirs(name, "-c", "8", "-f", script, "-D", "scale="+strconv.Itoa(tpcbScale)))
	}
	for _, mode := range tpcbModes {
		all = append(all, s.ours(mode.name, "tpcb", tpcbClients, "--mode="+mode.name))
	}
	reached := contest(tpcbTurns, all, s.tpcbFresh, s.settle)
	for _, mode := range tpcbModes {
		name, ours, peer := fmt.Sprintf("tpcb: %s, 8 clients, %s", medium, mode.name), reached[mode.name], reached[mode.peer]
		s.row(name+": transactions a second", "%.0f", ours.rate, peer.rate, mode.rate)
		s.row(name+": client CPU a transaction", "%.1f µs", ours.cost, peer.cost, mode.cpu)
	}
	for _, c := range all[:printed] {
		s.row(fmt.Sprintf("tpcb: %s: transactions a second of pgbench, its own transaction, %s", medium, c.name), "%.0f", 0, reached[c.name].rate, "")
	}
}

// tpcbLoad replaces the tables, runs one transaction on them, and returns the seconds
// that the load took.
func (s *server) tpcbLoad() float64 {
	r := s.runWorkload("tpcb", "--db="+s.URL(), tpcbClients, "--scale="+strconv.Itoa(tpcbScale), "--seed=1", "--count=1")
	return r.Load.Seconds
}

// tpcbFresh replaces the tables, with what is to be written to the disk written.
func (s *server) tpcbFresh() {
	s.tpcbLoad()
	s.settle()
}

// tpcbLoads measures both loads, each into a database of its own.
func (s *server) tpcbLoads() {
	s.sql("CREATE DATABASE pgbench")
	peer := s.URLFor(postgres.Superuser, "", "pgbench")
	a, b := s.loads(s.tpcbLoad, s.timed(s.pgbench, "-i", "-q", "-s", strconv.Itoa(tpcbScale), peer))
	s.row(fmt.Sprintf("tpcb: load, rows a second (pgbench -i -s %d)", tpcbScale), "%.0f", tpcbRows/a, tpcbRows/b, "≥ 0.90")
}

// kvTurns is how often each contender of kv is measured, a third as long as others: what the
// machine has for all changes more from one minute to the next than they differ.
const kvTurns = 21

// The records are copied under numeric keys, which pgbench can choose, with as many digits as a key has characters.
// So pgbench makes our statement and gets our answer, where pgbench -S reads one integer.
const (
	peerRecords = `
CREATE TABLE peer_records (record_key VARCHAR(16) COLLATE "C" NOT NULL, record_value VARCHAR(84) COLLATE "C" NOT NULL);
INSERT INTO peer_records SELECT 1000000000000000 + row_number() OVER (ORDER BY random()), record_value FROM stroppy_kv ORDER BY record_key;
ALTER TABLE peer_records ADD PRIMARY KEY (record_key);`
	peerReads = `\set k random(1000000000000001, 1000000001000000)
SELECT record_value FROM peer_records WHERE record_key = :k;
`
)

// kv measures the key-value workload alone, and reads of single rows beside pgbench, with as many rows of about the
// same length. It reads one after another on each connection, and with several in progress, which pgbench cannot do.
// The peers are pgbench -S and pgbench with our statement, with one thread. The speeds with two threads, and with one
// per connection as ours has, are printed.
func (s *suite) kv() {
	r := s.drive("kv", "--db=noop:", "--clients=2")
	s.row("kv: noop: operations a second, 90 % reads", "%.0f", r.speed().rate, 0, "≥ 1500000 on two cores")
	s.row("kv: noop: CPU an operation", "%.2f µs", r.speed().cost, 0, "")

	// All rows of both stay in memory, so that neither side reads more pages.
	s.serve(cluster.Alone(map[string]string{"shared_buffers": "640MB"}), func(s *server) {
		s.timed(s.pgbench, "-i", "-q", "-s", "10", s.URL())()
		s.runWorkload("kv", "--records=1000000", "--key-size=16", "--value-size=84", "--seed=1", "--db="+s.URL(), "--count=1")
		// pgbench -i has vacuumed its tables.
		for _, statement := range []string{peerRecords, "VACUUM ANALYZE stroppy_kv", "VACUUM ANALYZE peer_records"} {
			s.sql(statement)
		}
		s.settle()
		script := filepath.Join(s.dir, "reads.sql")
		try.Check(os.WriteFile(script, []byte(peerReads), 0o644))
		reads := func(name, inFlight string) contender {
			return s.ours(name, "kv", "--read-share=1", "--update-share=0", "--clients=8", "--in-flight="+inFlight)
		}
		names := []string{"", ", 16 in flight on each"}
		all := []contender{
			reads(names[0], "1"), s.theirs("1", "-S", "-c", "8", "-j", "1"), s.theirs("same", "-f", script, "-c", "8", "-j", "1"),
			reads(names[1], "16"), s.theirs("2", "-S", "-c", "8", "-j", "2"), s.theirs("8", "-S", "-c", "8", "-j", "8"),
		}
		defer func(whole time.Duration) { s.seconds = whole }(s.seconds)
		s.seconds = max(s.seconds/3, time.Second)
		rates, costs := inTurns(kvTurns, all, nil, nil)
		reached := medians(rates, costs)
		for _, side := range [][2]string{
			{"1", "pgbench -S"}, {"2", "pgbench -S -j 2"}, {"8", "pgbench -S -j 8"},
			{"same", "pgbench, the same statement on the same rows"},
		} {
			median, low, high := paired(rates[""], rates[side[0]])
			s.row("kv: postgres: 8 connections: reads a second, relative to "+side[1]+" in the same turn", fmt.Sprintf("%%.2f (%.2f to %.2f)", low, high), median, 0, "")
		}
		for _, name := range names {
			ours, peer := reached[name], reached["1"]
			s.row("kv: postgres: 8 connections"+name+": reads a second (pgbench -S)", "%.0f", ours.rate, peer.rate, "≥ 1.00")
			s.row("kv: postgres: 8 connections"+name+": client CPU a read", "%.1f µs", ours.cost, peer.cost, "")
		}
		ours, same := reached[names[0]], reached["same"]
		s.row("kv: postgres: 8 connections: reads a second (pgbench, the same statement on the same rows)", "%.0f", ours.rate, same.rate, "≥ 1.00")
		s.row("kv: postgres: 8 connections: client CPU a read (the same)", "%.1f µs", ours.cost, same.cost, "")
		for _, threads := range []string{"2", "8"} {
			s.row("kv: postgres: reads a second of pgbench -S -j "+threads, "%.0f", 0, reached[threads].rate, "")
		}
	})
}

// isolation measures how long the scripted schedules take at all levels of PostgreSQL:
// most of it is waiting for steps that another transaction holds up.
func (s *suite) isolation() {
	s.serve(cluster.Alone(nil), func(s *server) {
		began := time.Now()
		s.command("isolation", "--schedules-only", "--json", "--db="+s.URL())
		s.row("postgres: isolation, all levels, schedules alone", "%.1f s", time.Since(began).Seconds(), 0, "< 20 s")
	})
}

// livePairs is how many runs without and with --live-check alternate.
const livePairs = 5

// live measures what --live-check costs the bank in throughput on PostgreSQL, with the
// clients, the checks and the server on the same processors. Which of a pair is first
// changes from pair to pair, because the tables grow.
func (s *suite) live() {
	s.serve(cluster.Alone(nil), func(s *server) {
		s.command("pop", "--db="+s.URL(), "--seed=1")
		const without, with = "without", "with"
		reached := contest(livePairs, []contender{
			s.ours(without, "bank", "--clients=16"),
			s.ours(with, "bank", "--clients=16", "--live-check"),
		}, nil, s.settle)
		name := fmt.Sprintf("live: postgres: 16 clients, medians of %d runs of %v: ", livePairs, s.seconds)
		s.row(name+"transactions a second with --live-check (peer: without)", "%.0f", reached[with].rate, reached[without].rate, "")
		s.row(name+"client CPU a transaction with --live-check (peer: without)", "%.1f µs", reached[with].cost, reached[without].cost, "")
		// A cost of exactly 0 has a text, too: row leaves such a value out.
		fmt.Fprintf(s.out, "live: postgres: throughput that --live-check costs\t%.1f %%\t\t\t< 10 %%\n", 100*(1-reached[with].rate/reached[without].rate))
	})
}

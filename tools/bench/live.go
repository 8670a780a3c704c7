package main

import (
	"fmt"

	"stroppy/internal/cluster"
)

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

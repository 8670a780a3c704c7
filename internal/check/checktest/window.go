package checktest

import "math/rand/v2"

// Window returns a part of a history, as a check of a growing recording sees it. The transactions of each
// client are cut into blocks of up to most transactions. Some blocks are missing at the beginning and at the
// end, and the blocks of different clients are interleaved at random.
func Window[T any](rng *rand.Rand, list []T, client func(T) uint64, most int) []T {
	var clients []uint64
	of := map[uint64][]T{}
	for _, t := range list {
		c := client(t)
		if _, known := of[c]; !known {
			clients = append(clients, c)
		}
		of[c] = append(of[c], t)
	}
	blocks := map[uint64][][]T{}
	var order []uint64 // the client of each next block
	for _, c := range clients {
		var all [][]T
		for rest := of[c]; len(rest) > 0; {
			n := 1 + rng.IntN(min(most, len(rest)))
			all, rest = append(all, rest[:n]), rest[n:]
		}
		from := rng.IntN(len(all) + 1)
		if rng.IntN(2) == 0 { // usually little is missing
			from = min(from, rng.IntN(2))
		}
		to := from + rng.IntN(len(all)-from+1)
		if rng.IntN(2) == 0 {
			to = max(to, len(all)-rng.IntN(2))
		}
		for range max(to-from, 0) {
			order = append(order, c)
		}
		blocks[c] = all[from:max(from, to)]
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var window []T
	for _, c := range order {
		window = append(window, blocks[c][0]...)
		blocks[c] = blocks[c][1:]
	}
	return window
}

package checktest

import "math/rand/v2"

// Window returns what a look at a recording that goes on sees of a history: the transactions
// of each client are cut into blocks of up to so many, of which some are left out at the
// beginning and some at the end, and the blocks of the clients come in any order.
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
	var order []uint64 // whose block comes next
	for _, c := range clients {
		var all [][]T
		for rest := of[c]; len(rest) > 0; {
			n := 1 + rng.IntN(min(most, len(rest)))
			all, rest = append(all, rest[:n]), rest[n:]
		}
		from := rng.IntN(len(all) + 1)
		if rng.IntN(2) == 0 { // most of the time little is missing
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

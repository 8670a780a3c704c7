package lists

import (
	"math/rand/v2"
	"testing"
)

func TestColumnKeepsNumbers(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var c column
		var want []uint32
		number := func() uint32 {
			return []uint32{nowhere, 0, 254, 255, 256, 65534, 65535, 65536, rng.Uint32N(250), rng.Uint32()}[rng.IntN(1+rng.IntN(10))]
		}
		for range rng.IntN(100) {
			if v := number(); len(want) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(want))
				want[i] = v
				c.set(uint32(i), v)
			} else {
				want = append(want, v)
				c.add(v)
			}
			for i, v := range want {
				if got := c.at(uint32(i)); got != v {
					t.Fatalf("seed %d: number %d is %d, not %d", seed, i, got, v)
				}
			}
		}
	}
}

//go:build !race

package pgwire

// poolForgets: under the race detector a sync.Pool forgets a quarter of what is put into it.
const poolForgets = false

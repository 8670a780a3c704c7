//go:build race

package pgwire

// poolForgets reports whether sync.Pool drops a quarter of its content, as it does under the race detector.
const poolForgets = true

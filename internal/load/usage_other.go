//go:build !unix

package load

// Usage is not known on this platform.
func Usage() (cpuSeconds float64, maxRSSBytes int64) { return 0, 0 }

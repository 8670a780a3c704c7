//go:build !unix

package load

// Usage returns zeros because usage is not known on this platform.
func Usage() (cpuSeconds float64, maxRSSBytes int64) { return 0, 0 }

//go:build !unix

package load

// usage is not known on this platform.
func usage() (cpuSeconds float64, maxRSSBytes int64) { return 0, 0 }

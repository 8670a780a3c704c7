//go:build !linux

package resource

// blockDevice is not known on this system.
func blockDevice(string) (model string, rotating *bool) { return "", nil }

//go:build !linux

package server

// ReleaseMemory does nothing: only Linux is supported. On other systems the shared memory of a killed server stays.
func ReleaseMemory(string) error { return nil }

// ReleaseMemoryBelow does nothing.
func ReleaseMemoryBelow(string) error { return nil }

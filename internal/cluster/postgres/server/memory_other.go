//go:build !linux

package server

// ReleaseMemory does its work on Linux alone: elsewhere the System V shared
// memory of a server that was killed for good stays until somebody removes it.
func ReleaseMemory(string) error { return nil }

// ReleaseMemoryBelow does its work on Linux alone, too.
func ReleaseMemoryBelow(string) error { return nil }

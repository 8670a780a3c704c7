//go:build !linux

package run

func lowerPriority() {}

package cluster

import (
	"bytes"
	"fmt"
	"os"
)

// owner names the program that made a record, for ever and across machines'
// restarts and containers.
type owner struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // see processID
	Boot  string `json:"boot"`  // the kernel's id of the time since it was started
	Space string `json:"space"` // the namespace of process numbers
}

type life int

const (
	dead life = iota
	alive
	elsewhere // in a namespace of process numbers that is not ours
)

func thisProcess() (owner, error) {
	s, err := readStat(os.Getpid())
	if err != nil {
		return owner{}, fmt.Errorf("look at this process: %w", err)
	}
	boot, space, err := bootAndSpace()
	return owner{PID: os.Getpid(), Start: s.start, Boot: boot, Space: space}, err
}

// bootAndSpace reads random(4)'s boot_id and namespaces(7)'s link.
func bootAndSpace() (boot, space string, err error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", "", fmt.Errorf("look at when this machine was started: %w", err)
	}
	if space, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return "", "", fmt.Errorf("look at this process: %w", err)
	}
	return string(bytes.TrimSpace(id)), space, nil
}

func (o owner) life() (life, error) {
	boot, space, err := bootAndSpace()
	switch {
	case err != nil:
		return elsewhere, err
	case o.Boot != boot:
		return dead, nil
	case o.Space != space:
		return elsewhere, nil
	case processID{pid: o.PID, start: o.Start}.alive():
		return alive, nil
	}
	return dead, nil
}

// sameBoot tells that the machine was not started again since.
func (o owner) sameBoot() (bool, error) {
	boot, _, err := bootAndSpace()
	return boot == o.Boot, err
}

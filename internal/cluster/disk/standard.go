package disk

import (
	"errors"
	"os"
)

// Standard is this process's standard input and output as one connection, over
// which it receives what to serve.
type Standard struct{}

// Read reads standard input.
func (Standard) Read(b []byte) (int, error) { return os.Stdin.Read(b) }

// Write writes standard output.
func (Standard) Write(b []byte) (int, error) { return os.Stdout.Write(b) }

// Close closes both.
func (Standard) Close() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

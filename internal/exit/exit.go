// Package exit holds the exit codes of the program and the errors that carry them.
package exit

import "fmt"

// The exit codes.
const (
	Valid   = 0 // every check valid
	Invalid = 1 // a check found a violation
	Usage   = 2 // wrong usage or configuration
	Failed  = 3 // the run could not be carried out
	Unknown = 4 // a check or an objective could not be decided
	Missed  = 5 // every check valid, and an objective missed
)

// Error is an error with the exit code that it ends the program with.
type Error struct {
	Code int
	err  error
}

func (e *Error) Error() string { return e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

// With returns err as an error that ends the program with an exit code.
func With(code int, err error) error { return &Error{code, err} }

// Judged returns the error of a verdict with its reason; nil if the verdict is valid.
func Judged(verdict, reason string) error {
	switch verdict {
	case "valid":
		return nil
	case "invalid":
		return With(Invalid, fmt.Errorf("invalid: %s", reason))
	}
	return With(Unknown, fmt.Errorf("unknown: %s", reason))
}

// Usagef returns an error of wrong usage or configuration.
func Usagef(format string, args ...any) error {
	return With(Usage, fmt.Errorf(format, args...))
}

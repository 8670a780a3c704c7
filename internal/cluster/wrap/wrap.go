// Package wrap adds context to the error that a function returns.
package wrap

import "fmt"

// Error begins the error with a text and a colon, unless it is nil. It is called by defer in a function with a named
// error.
func Error(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

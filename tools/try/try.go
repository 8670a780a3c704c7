// Package try lets the programs below tools read as lists of steps: the first step that fails ends the program with
// its error.
package try

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// failure is the panic of a step that failed.
type failure struct{ error }

// Check ends the program with err, unless err is nil.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Fail ends the program with an error, as fmt.Errorf makes it.
func Fail(format string, args ...any) { Check(fmt.Errorf(format, args...)) }

// Must returns the value of a call that may have failed.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Attempt calls do and returns the error that ended it, or nil.
func Attempt(do func()) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		default:
			panic(f)
		}
	}()
	do()
	return nil
}

// Output runs a command and returns its standard output. The error has its standard error.
func Output(cmd *exec.Cmd) []byte {
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		Fail("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return out
}

// Main runs the program of that name. If it fails, Main prints the error and exits with the code.
func Main(name string, code int, do func()) {
	if err := Attempt(do); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(code)
	}
}

// JSON reads a value from a file. A missing file has the zero value.
func JSON[T any](file string) (value T) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return value
	}
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		Fail("read %s: %w", file, err)
	}
	return value
}

// Write writes a file.
func Write(file string, text []byte) { Check(os.WriteFile(file, text, 0o644)) }

// WriteJSON writes a value into a file, in lines that a person can compare.
func WriteJSON(file string, value any) {
	Write(file, append(Must(json.MarshalIndent(value, "", " ")), '\n'))
}

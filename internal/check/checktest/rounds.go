package checktest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// factor is the environment variable that asks for the full number of histories, times its
// value: 1, or 10 for whoever has changed a checker and can wait.
const factor = "STROPPY_TEST_ROUNDS"

// Rounds is how many histories a test draws: few between two edits (go test -short), a third of
// full in the run of all tests, whose time is bounded, and full times STROPPY_TEST_ROUNDS where
// that is set, as `make seeds` does.
func Rounds(few, full uint64) uint64 {
	times := Factor()
	switch {
	case testing.Short():
		return few
	case times == 0:
		return max(few, full/3)
	}
	return times * full
}

// Factor is the value of STROPPY_TEST_ROUNDS, 0 where it is not set.
func Factor() uint64 {
	text := os.Getenv(factor)
	if text == "" {
		return 0
	}
	times, err := strconv.ParseUint(text, 10, 32)
	if err != nil || times == 0 {
		panic(fmt.Sprintf("%s=%s: write a whole number from 1 on", factor, text))
	}
	return times
}

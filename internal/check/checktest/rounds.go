package checktest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// factor is the environment variable that requests the full number of histories, multiplied by its value. Use
// 1, or 10 after a change of a checker.
const factor = "STROPPY_TEST_ROUNDS"

// Rounds returns the number of histories that a test draws: few with go test -short, and a third of full in
// the run of all tests. If STROPPY_TEST_ROUNDS is set, as by `make seeds`, the number is full times its
// value.
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

// Factor returns the value of STROPPY_TEST_ROUNDS, and 0 if it is not set.
func Factor() uint64 {
	text := os.Getenv(factor)
	if text == "" {
		return 0
	}
	times, err := strconv.ParseUint(text, 10, 32)
	if err != nil || times == 0 {
		panic(fmt.Sprintf("%s=%s: want a whole number of at least 1", factor, text))
	}
	return times
}

package checktest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// factor is the environment variable by whose value the full number of histories is
// multiplied, such as 10, for whoever has changed a checker and can wait.
const factor = "STROPPY_TEST_ROUNDS"

// Rounds is how many histories a test draws: few between two edits (go test -short), else
// as many as the full run of the tests has time for, times STROPPY_TEST_ROUNDS.
func Rounds(few, full uint64) uint64 {
	if testing.Short() {
		return few
	}
	text := os.Getenv(factor)
	if text == "" {
		return full
	}
	times, err := strconv.ParseUint(text, 10, 32)
	if err != nil || times == 0 {
		panic(fmt.Sprintf("%s=%s: write a whole number from 1 on", factor, text))
	}
	return times * full
}

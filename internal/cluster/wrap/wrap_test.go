package wrap

import (
	"io"
	"testing"
)

func TestOnlyFailuresAreWrapped(t *testing.T) {
	do := func(result error) (err error) {
		defer Error(&err, "start %s", "n0")
		return result
	}
	if err := do(nil); err != nil {
		t.Errorf("a success became %v", err)
	}
	if err := do(io.EOF); err == nil || err.Error() != "start n0: EOF" {
		t.Errorf("the error is %v", err)
	}
}

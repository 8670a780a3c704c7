package run

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestRetryEndsWithSuccess checks that a call is repeated until it succeeds, as often as there are
// pauses, and not after the context has ended.
func TestRetryEndsWithSuccess(t *testing.T) {
	failure := errors.New("the server does not answer")
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx              context.Context
		failures, pauses int
		calls            int
		err              error
	}{
		"at once":           {t.Context(), 0, 2, 1, nil},
		"the third time":    {t.Context(), 2, 2, 3, nil},
		"too many failures": {t.Context(), 9, 2, 3, failure},
		"no pauses":         {t.Context(), 9, 0, 1, failure},
		"ended":             {ended, 9, 2, 1, failure},
	} {
		calls, failed := 0, 0
		err := retry(c.ctx, make([]time.Duration, c.pauses), func() error {
			if calls++; calls <= c.failures {
				return failure
			}
			return nil
		}, func(error, time.Duration) { failed++ })
		if calls != c.calls || failed != c.calls-1 || !errors.Is(err, c.err) {
			t.Errorf("%s: %d calls, %d notes, error %v", name, calls, failed, err)
		}
	}
}

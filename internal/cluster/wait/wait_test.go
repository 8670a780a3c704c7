package wait

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestRetryReportsCauseAndAnswer checks that the error contains the cause of the end of the context and the last
// answer before it.
func TestRetryReportsCauseAndAnswer(t *testing.T) {
	wrong, why := errors.New("wrong"), errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	tries := 0
	err := RetryEvery(ctx, time.Millisecond, func() error {
		if tries++; tries < 3 {
			return wrong
		}
		cancel(why)
		return context.Cause(ctx)
	})
	if err == nil || err.Error() != "enough; at last: wrong" || !errors.Is(err, why) || !errors.Is(err, wrong) || tries != 3 {
		t.Errorf("%d tries: %v", tries, err)
	}
	if err := Retry(ctx, func() error { return nil }); err != nil {
		t.Errorf("what succeeds at once: %v", err)
	}
}

// TestRetryKeepsAnswerBeforeTimeouts checks that an attempt without an answer does not hide the answer before it. A
// later answer replaces both.
func TestRetryKeepsAnswerBeforeTimeouts(t *testing.T) {
	old, wrong, silence := errors.New("old"), errors.New("wrong"), fmt.Errorf("INFO: %w", context.DeadlineExceeded)
	for want, said := range map[string][]error{
		"enough; at last: INFO: context deadline exceeded; before that: wrong": {old, silence, wrong, silence, silence},
		"enough; at last: wrong":                           {old, silence, wrong},
		"enough; at last: INFO: context deadline exceeded": {silence},
		"enough; at last: old":                             {silence, old},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		tries := 0
		err := RetryEvery(ctx, time.Millisecond, func() error {
			if tries++; tries > len(said) {
				cancel(errors.New("enough"))
				return context.Cause(ctx)
			}
			return said[tries-1]
		})
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRetryIntervalsGrowWithElapsedTime checks the interval of Retry: a tenth of the time since the start, from 10
// ms to 50 ms.
func TestRetryIntervalsGrowWithElapsedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var at []time.Duration
		began := time.Now()
		if err := Retry(ctx, func() error { at = append(at, time.Since(began)); return errors.New("wrong") }); err == nil {
			t.Error("what never succeeds did")
		}
		for i := range at[1:] {
			if rest, want := at[i+1]-at[i], min(max(at[i]/10, 10*time.Millisecond), 50*time.Millisecond); rest != want {
				t.Fatalf("%v after the beginning it rested for %v, not %v", at[i], rest, want)
			}
		}
		if n := len(at); n < 200 || n > 230 { // 10 + about 17 in the first half of a second, then 20 a second
			t.Errorf("%d tries in 10 s", n)
		}
	})
}

func TestLockAcquireEndsWithContext(t *testing.T) {
	l, why := NewLock(), errors.New("enough")
	if err := l.Acquire(t.Context()); err != nil || l.Try() {
		t.Fatalf("a free lock was not taken for good: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := l.Acquire(ctx); !errors.Is(err, why) {
		t.Errorf("a lock that somebody has: %v", err)
	}
	l.Release()
	if err := l.Acquire(ctx); !errors.Is(err, why) {
		t.Errorf("a free lock was taken although the context had ended: %v", err)
	}
	if !l.Try() {
		t.Error("a lock that was released is held")
	}
}

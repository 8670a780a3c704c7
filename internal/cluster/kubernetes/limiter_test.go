package kubernetes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"stroppy/internal/cluster/wait"
)

// TestLimiterKeepsTheReasonOfTheLastAnswer checks that a wait names what the server answered, and not only the request
// that could not be sent before the deadline.
func TestLimiterKeepsTheReasonOfTheLastAnswer(t *testing.T) {
	l := limiter{flowcontrol.NewTokenBucketRateLimiter(0.001, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := wait.RetryEvery(ctx, time.Millisecond, func() error {
		if err := l.Wait(ctx); err != nil {
			return err
		}
		return errors.New("no pod was chosen")
	})
	if err == nil || !strings.Contains(err.Error(), "no pod was chosen") {
		t.Errorf("the error %v lacks the last answer", err)
	}
	if err := l.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that has ended: %v", err)
	}
}

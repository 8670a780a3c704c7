package mysql

import (
	"context"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/nemesis"
)

// putClocks checks that Chaos Mesh moves the clock of a server in a pod forward and back, by the server's own answer.
// The clock must be right afterwards.
func putClocks(ctx context.Context, t *testing.T, node cluster.Node) {
	clock := node.(nemesis.Clock)
	if err := clock.Steered(); err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{time.Hour, -90 * time.Second} {
		e, err := clock.JumpClock(ctx, by)
		if err != nil {
			t.Fatalf("clock by %v: %v", by, err)
		}
		healed, err := e.Heal(ctx)
		if err != nil {
			t.Fatalf("heal a clock by %v: %v", by, err)
		}
		t.Logf("clock by %v: %s; %s", by, e.Seen, healed)
	}
}

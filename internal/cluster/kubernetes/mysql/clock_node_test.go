package mysql

import (
	"context"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/nemesis"
)

// putClocks holds that Chaos Mesh puts the clock of a server in a pod forward and back, as the
// server itself says, and that it is right again afterwards.
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

package check

import (
	"context"
	"errors"
	"testing"

	"stroppy/internal/history"
)

func TestMeterSeesEachTransactionOnce(t *testing.T) {
	r := recordIDs(t, []uint64{1, 2, 3}, []uint64{1, 2})
	var parts []*int
	m := &Meter{Worker: func() func(*history.Transaction) {
		part := new(int)
		parts = append(parts, part)
		return func(*history.Transaction) { *part++ }
	}}
	if err := m.Read(t.Context(), r); err != nil || !m.Whole {
		t.Fatalf("whole: %v, %v", m.Whole, err)
	}
	count := 0
	for _, part := range parts {
		count += *part
	}
	if count != 5 {
		t.Errorf("%d transactions, want 5", count)
	}
	ended := errors.New("ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if err := m.Read(ctx, r); err != ended || m.Whole {
		t.Errorf("whole: %v, %v", m.Whole, err)
	}
	var none *Meter
	none.End(nil)
	for _, measure := range none.Workers(2) {
		if measure != nil {
			t.Error("no meter measures")
		}
	}
}

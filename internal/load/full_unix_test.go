//go:build unix

package load

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/history"
)

// limitFiles limits the size of all files until the test ends, like a full disk.
func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ) // so that the write fails with EFBIG
	t.Cleanup(func() { signal.Reset(syscall.SIGXFSZ) })
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	now := before
	now.Cur = size
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	})
}

func TestFullDiskEndsTheLoadPhaseAndKeepsRecords(t *testing.T) {
	// The second client never returns by itself.
	stuck := &standIn{attempt: func(ctx context.Context, _ *history.Transaction) error {
		<-ctx.Done()
		return errUnknown
	}}
	d := newDrill(t, Options{Duration: time.Hour}, &standIn{}, stuck)
	limitFiles(t, 1<<20)
	r, err := d.driver.Run(t.Context())
	if !errors.Is(err, syscall.EFBIG) || r == nil || r.Interrupted {
		t.Fatalf("the drive ended with %v", err)
	}
	if d.options.History.Close() == nil {
		t.Error("the history says that it is complete")
	}
	recorded := d.read()
	if len(recorded) < 1000 {
		t.Errorf("%d transactions can be read of %d", len(recorded), r.Measurements.Latency.Count)
	}
	for i, tx := range recorded {
		if tx.ID.Sequence() != uint64(i)+1 {
			t.Fatalf("record %d is %s", i, tx.ID)
		}
	}
}

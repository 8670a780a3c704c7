package load

import (
	"context"
	"net"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// TestNewSessionsAreReported checks that the server of a new session is reported with its client and time,
// before the transaction ends for which it was opened.
func TestNewSessionsAreReported(t *testing.T) {
	lost := false
	c := &standIn{attempt: func(_ context.Context, tx *history.Transaction) error {
		if !lost {
			lost = true
			return errAway
		}
		tx.Outcome = history.Committed
		return nil
	}, reset: func(ctx context.Context) error {
		db.Connected(ctx, &net.UnixAddr{Name: "/tmp/socket"})
		db.Connected(ctx, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5432})
		return nil
	}}
	var reports []string
	options := Options{Count: 4}
	options.Connected = func(client int, at int64, server string) {
		if client != 1 || at <= 0 || at > int64(time.Minute) {
			t.Errorf("client %d at %d", client, at)
		}
		reports = append(reports, server)
	}
	if _, _, err := newDrill(t, options, &standIn{}, c).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || reports[0] != "127.0.0.1:5432" {
		t.Errorf("reported %v", reports)
	}
}

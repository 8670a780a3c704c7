package pgwire

import (
	"context"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// SurveyWith opens a connection, adds its protection and the clock of the server to a survey, and passes it to ask,
// which adds more.
func (d *Database) SurveyWith(ctx context.Context, ask func(context.Context, *Control, *db.Survey) error) (s db.Survey, err error) {
	err = d.Control(ctx, "ask "+d.Location()+" for its state", func(ctx context.Context, c *Control) error {
		settings := d.config.TLSConfig
		wire.EncryptionOf(c.Conn.Conn(), settings != nil && settings.VerifyPeerCertificate != nil).
			Judge(&s, wire.Elsewhere(strings.Split(d.where, ",")...), "sslmode=verify-full to the URL, and sslrootcert=FILE if its authority is private")
		s.Clock, err = db.ReadClock(func() (time.Time, error) {
			row, err := c.Row(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
			if err != nil {
				return time.Time{}, err
			}
			micros, err := strconv.ParseInt(row[0], 10, 64)
			return time.UnixMicro(micros), err
		})
		if err != nil && !Refused(err) {
			return err
		}
		return ask(ctx, c, &s)
	})
	return s, err
}

// Prepares reports whether the URL decides how statements are sent through a pooler.
func (d *Database) Prepares() bool { return d.chosen }

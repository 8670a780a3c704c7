package dataset

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// mostLooks is the number of looks at data whose parts do not agree.
const mostLooks = 10

// awaitLook waits between two looks at the data.
func awaitLook(ctx context.Context) error {
	select {
	case <-time.After(200 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Download takes the end state of the data. Its parts may be read one after the other, and a
// transaction with an unknown outcome may still commit between them. Then the parts do not
// agree. So Download calls take again, after restart, until the parts agree or two results are
// equal. It returns a *StateError if the data still change, or if another load has replaced
// them.
func Download[F comparable](ctx context.Context, s *Set, restart func() error, take func() (found F, agrees bool, err error)) error {
	if !s.found.Found {
		return fmt.Errorf("download the %s: it is not attached yet", s.kind.Noun)
	}
	var before F
	for try := 1; ; try++ {
		found, agrees, err := take()
		if err != nil {
			return cmp.Or(s.CheckUnchanged(ctx), err)
		}
		if err := s.unchanged(ctx); err != nil {
			return err
		}
		if agrees || try > 1 && found == before {
			return nil
		}
		if try == mostLooks {
			return StateErrorf("the %s was changed while it was downloaded, %d times in a row: stop the other programs that change it, then check again", s.kind.Noun, try)
		}
		before = found
		if err := awaitLook(ctx); err != nil {
			return err
		}
		if err := restart(); err != nil {
			return err
		}
	}
}

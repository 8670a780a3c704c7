package sqlite

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/db"
)

func TestQueueServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := make(queue, 1)
		if err := q.enter(t.Context(), stoppedTimer(), time.Second); err != nil {
			t.Fatal(err)
		}
		var order []int
		const writers = 20
		for i := range writers {
			go func() {
				if err := q.enter(t.Context(), stoppedTimer(), time.Hour); err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				q.leave()
			}()
			synctest.Wait()
		}
		q.leave()
		synctest.Wait()
		if len(order) != writers || !slices.IsSorted(order) {
			t.Errorf("the writers came in the order %v", order)
		}
	})
}

func TestWaitInQueueEndsWithContextAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := make(queue, 1)
		timer := stoppedTimer()
		if err := q.enter(t.Context(), timer, time.Second); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := q.enter(t.Context(), timer, 3*time.Second); !errors.Is(err, errQueue) || db.ClassOf(err) != db.Aborted {
			t.Errorf("got %v, want %v", err, errQueue)
		}
		if waited := time.Since(begin); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.enter(ctx, timer, time.Hour); !errors.Is(err, context.DeadlineExceeded) || db.ClassOf(err) != db.Aborted {
			t.Errorf("got %v, want the context's error", err)
		}
		q.leave()
		if err := q.enter(t.Context(), timer, time.Second); err != nil {
			t.Errorf("the place was lost: %v", err)
		}
	})
}

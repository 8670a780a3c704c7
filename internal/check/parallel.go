package check

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"stroppy/internal/history"
)

// Blocks is a Source, or a part of one, that several goroutines can read at the same time.
type Blocks interface {
	EachBlock(workers int, do func(worker int, c *history.Cursor) error) error
}

// EachTransaction calls do for every transaction of a source. It uses several workers if the source consists
// of blocks, and one worker otherwise.
//
// do receives the worker's number and the position of the block. Positions grow in the order of the file, and
// the transactions of one block arrive in order. The error comes from reading, or is the cause of the
// context's end.
func EachTransaction(ctx context.Context, source Source, workers int, do func(worker int, block int64, tx *history.Transaction)) error {
	blocks, ok := source.(Blocks)
	if !ok {
		w := Watch{Ctx: ctx}
		var problem error
		for rec := range Each(&w, "the history", source.Transactions(), &problem) {
			do(0, 0, rec.Transaction)
		}
		return problem
	}
	err := blocks.EachBlock(workers, func(worker int, c *history.Cursor) error {
		for c.Next() {
			do(worker, c.Block.Offset, &c.Transaction)
		}
		return context.Cause(ctx)
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the history could not be read: %w", err)
	}
	return nil
}

// EachObject calls do for every object of an end state. It uses several workers if the files consist of
// blocks, and one worker otherwise.
//
// do receives the worker's number and a slice of objects, which is valid until do returns and must not be
// modified. The error comes from do or from reading, or is the cause of the context's end.
func EachObject(ctx context.Context, end EndState, workers int, do func(worker int, objects []history.Object) error) error {
	var several func(workers int, do func(worker int, list []history.Object) error) error
	if e, ok := end.(interface {
		EachObject(workers int, do func(worker int, objects []history.Object) error) error
	}); ok {
		several = e.EachObject
	}
	return eachEntry(ctx, "the end state's objects", end.Objects(), several, workers, do)
}

// EachRow is like EachObject, for the rows of an end state's ledger.
func EachRow(ctx context.Context, end EndState, workers int, do func(worker int, rows []history.Row) error) error {
	var several func(workers int, do func(worker int, list []history.Row) error) error
	if e, ok := end.(interface {
		EachRow(workers int, do func(worker int, rows []history.Row) error) error
	}); ok {
		several = e.EachRow
	}
	return eachEntry(ctx, "the end state's ledger", end.Rows(), several, workers, do)
}

func eachEntry[T any](ctx context.Context, what string, all iter.Seq2[T, error],
	several func(workers int, do func(worker int, list []T) error) error, workers int, do func(worker int, list []T) error) error {
	if several == nil {
		w := Watch{Ctx: ctx}
		var problem error
		one := make([]T, 1)
		for one[0] = range Each(&w, what, all, &problem) {
			if err := do(0, one); err != nil {
				return err
			}
		}
		return problem
	}
	var refused atomic.Bool
	err := several(workers, func(worker int, list []T) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := do(worker, list)
		if err != nil {
			refused.Store(true)
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !refused.Load():
		return fmt.Errorf("%s could not be read: %w", what, err)
	}
	return err
}

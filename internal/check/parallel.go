package check

import (
	"context"
	"fmt"

	"stroppy/internal/history"
)

// Blocks is a Source, or a part of one, that several goroutines can read at once.
type Blocks interface {
	EachBlock(workers int, do func(worker int, c *history.Cursor) error) error
}

// EachTransaction has every transaction of a source read, by so many workers at once where
// it consists of blocks, else by one: do is called with the worker's number and the place
// of the block, which grows in the order of the file, those of one block in their order.
// The error is that of the reading, or the cause for which the context ended.
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

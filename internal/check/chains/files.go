package chains

import "stroppy/internal/history"

// client is the one whose transactions a block has.
func (f *feed) client(p place) history.ID {
	return history.NewID(f.in.History[p.file].Header().Run, uint64(p.block.Client), 0)
}

// places are the blocks of all recordings. Those of one stand in the order of its file; of
// two recordings the block comes first whose first transaction began earlier, so that what
// is decoded of one does not wait for all of the other.
func (f *feed) places(files []blocks) (list []place, err error) {
	queues := make([]queue, len(files))
	for i, file := range files {
		for b, err := range file.Blocks() {
			if err != nil {
				return nil, unproved("%v", err)
			}
			queues[i].blocks = append(queues[i].blocks, b)
		}
		queues[i].cursor, queues[i].zero = file.Cursor(), f.in.History[i].Zero
		if err := queues[i].look(len(files) > 1); err != nil {
			return nil, err
		}
	}
	for {
		first := -1
		for i := range queues {
			if q := &queues[i]; len(q.blocks) > 0 && (first < 0 || q.began < queues[first].began) {
				first = i
			}
		}
		if first < 0 {
			return list, nil
		}
		q := &queues[first]
		p := place{first, q.blocks[0]}
		list = append(list, p)
		if err := f.count(f.client(p), p.file); err != nil {
			return nil, err
		}
		q.blocks = q.blocks[1:]
		if err := q.look(len(files) > 1); err != nil {
			return nil, err
		}
	}
}

// queue are the blocks of a recording that have no place yet.
type queue struct {
	blocks []history.Block
	began  int64 // when the first transaction of the first of them began
	cursor *history.Cursor
	zero   int64
}

// look finds when the first block began, where there are others to compare it with.
func (q *queue) look(several bool) error {
	if !several || len(q.blocks) == 0 {
		return nil
	}
	q.cursor.Open(q.blocks[0])
	if !q.cursor.Next() {
		return unproved("a block has no transaction: %v", q.cursor.Err())
	}
	q.began = q.cursor.Transaction.Try + q.zero
	return nil
}

package chains

import "stroppy/internal/history"

// client returns the client whose transactions are in the block.
func (f *feed) client(p place) history.ID {
	return history.NewID(f.in.History[p.file].Header().Run, uint64(p.block.Client), 0)
}

// places returns the blocks of all recordings. Blocks of one recording stay in file order. Between
// recordings, the block whose first transaction began earlier comes first, so that decoded data does not
// accumulate.
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

// queue holds the blocks of a recording that have no position yet.
type queue struct {
	blocks []history.Block
	began  int64 // beginning of the first transaction of the first block
	cursor *history.Cursor
	zero   int64
}

// look determines the beginning of the first block. It does nothing unless several recordings must be
// compared.
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

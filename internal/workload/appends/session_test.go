package appends

import (
	"context"

	"stroppy/internal/db"
)

// keepsNothing is a key-value store, and a session of it, that answers at once, with lists of
// one element.
type keepsNothing struct{ db.KV }

func (s keepsNothing) KVSession(context.Context, db.SessionOptions) (db.KVSession, error) {
	return s, nil
}

var oneElement = appendText(nil, 1<<sequenceAt|9<<clientAt)

func (keepsNothing) Begin(context.Context, bool) error { return nil }
func (keepsNothing) Read(_ context.Context, keys [][]byte, out []db.Entry) error {
	for i := range keys {
		out[i] = db.Entry{Value: oneElement, Found: true}
	}
	return nil
}
func (keepsNothing) Set(_, _ []byte)              {}
func (keepsNothing) Delete([]byte)                {}
func (keepsNothing) Commit(context.Context) error { return nil }
func (keepsNothing) Rollback()                    {}
func (keepsNothing) Scan(context.Context, []byte, []byte, func(key, value []byte) error) error {
	return nil
}
func (keepsNothing) Reset(context.Context) error { return nil }
func (keepsNothing) Close() error                { return nil }

package redis

import (
	"context"
	"errors"
	"fmt"
	"net"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
	"stroppy/internal/db/wire"
)

// session is a db.KVSession, on its own connection or on a shared one. The next transaction uses all its memory again.
type session struct {
	optimistic.Session
	db     *Database
	of     *sharedConn
	handle *wire.Stream[*session]
	link   *link // the link that the session knows
	wrote  bool  // some of its commit may have been written

	watching bool // the server watches keys for this connection
	// unproved: a commit of this session may have been applied without reaching the replicas that wait requires. Then
	// reads are trusted only if their data have reached the replicas too. This ends when a later commit is known to
	// have reached them.
	unproved bool

	reads  []readKey
	values []byte // the bytes that Read has returned

	page int // entries of a scan's first page

	request     request
	words, more words
	lists       [4]words // for a transaction by MULTI: sets, index, deletes, index
}

// request holds the commands that a session sends at once, and the questions that follow them.
type request struct {
	ctx                context.Context
	err                error // why it was not sent to the connection that the session knows
	commands           []goredis.Cmder
	asksRole, asksWait bool
	role               *goredis.Cmd    // the answer, if it asked
	wait               *goredis.IntCmd // the answer, if it asked
}

type readKey struct {
	key, value []byte
	found      bool
}

// Begin starts a transaction. It sends nothing.
func (s *session) Begin(ctx context.Context, readOnly bool) error {
	s.clear()
	s.values = s.values[:0]
	return s.Start(ctx, readOnly)
}

func (s *session) clear() {
	s.Open = false
	s.reads = s.reads[:0]
	s.Writes.Clear()
}

// Read reads all keys by one MGET and thereby at one moment. A later Read of the same transaction also reads the
// earlier keys again. If one of them has changed meanwhile, both reads have no common snapshot, and the error's class
// is Aborted.
func (s *session) Read(ctx context.Context, keys [][]byte, out []db.Entry) error {
	if err := s.CheckRead(ctx, keys, out); err != nil || len(keys) == 0 {
		return err
	}
	values, err := s.fetch(ctx, keys)
	if err != nil {
		return err
	}
	earlier := len(s.reads)
	for i, r := range s.reads {
		if value, found := values[i].(string); found != r.found || value != string(r.value) {
			s.Open = false
			return errMoved
		}
	}
	for i, value := range values[earlier:] {
		text, found := value.(string)
		out[i] = db.Entry{Found: found}
		r := readKey{key: s.Writes.Copy(keys[i]), found: found}
		if found {
			start := len(s.values)
			s.values = append(s.values, text...)
			r.value = s.values[start:len(s.values):len(s.values)]
			out[i].Value = r.value
		}
		s.reads = append(s.reads, r)
	}
	return nil
}

// fetch reads the values of keys and of all keys that were read before. It also asks the server whether it still is the
// primary, because a replica would answer with older values. If commits are by WATCH and this transaction may commit,
// fetch watches the keys before it reads them.
func (s *session) fetch(ctx context.Context, keys [][]byte) ([]any, error) {
	const op = "read"
	q := s.ask(true, s.unproved)
	if s.watching && len(s.reads) == 0 { // an earlier transaction was abandoned
		q.commands = append(q.commands, goredis.NewStatusCmd(ctx, "unwatch"))
		s.watching = false
	}
	if s.db.config.watch && !s.ReadOnly {
		s.more.reset("watch")
		s.more.add(keys...)
		q.commands = append(q.commands, goredis.NewStatusCmd(ctx, s.more.all...))
		s.watching = true
	}
	s.words.reset("mget")
	for i := range s.reads {
		s.words.add(s.reads[i].key)
	}
	s.words.add(keys...)
	get := goredis.NewSliceCmd(ctx, s.words.all...)
	q.commands = append(q.commands, get)
	if s.unproved {
		// This write is needed because WAIT waits for the writes of its own connection. If it has reached the replicas,
		// all earlier writes have.
		q.commands = append(q.commands, goredis.NewIntCmd(ctx, "incr", countKey))
	}
	if err := s.run(ctx); err != nil {
		return nil, s.fail(op, err, optimistic.Reading)
	}
	for _, c := range q.commands {
		if err := c.Err(); err != nil {
			return nil, s.fail(op, err, optimistic.Reading)
		}
	}
	if err := s.still(op); err != nil {
		return nil, err
	}
	if s.unproved {
		if err := q.wait.Err(); err != nil {
			return nil, s.fail(op, err, optimistic.Reading)
		}
		if n := q.wait.Val(); n < int64(s.db.config.wait) {
			return nil, s.lose(unavailable(op, "after a commit of unknown outcome, %d of %d replicas of the Redis server %s have what is read now",
				n, s.db.config.wait, s.link.node))
		}
	}
	values := get.Val()
	if len(values) != len(s.reads)+len(keys) {
		return nil, s.fail(op, errors.New("the server answered with another number of values than there were keys"), optimistic.Reading)
	}
	return values, nil
}

// ask empties the request and sets its questions.
func (s *session) ask(role, wait bool) *request {
	s.request = request{commands: s.request.commands[:0], asksRole: role, asksWait: wait}
	return &s.request
}

// run sends the request together with the requests of other sessions of the connection. One of the sessions does this
// for all. It returns only errors of the connection. The server's answer to each command is in the command. A question
// may have no answer.
func (s *session) run(ctx context.Context) error {
	s.request.ctx = ctx
	s.handle.Send()
	if s.request.err != nil {
		return s.request.err
	}
	for _, c := range s.request.commands {
		if err := c.Err(); !answered(err) {
			return err
		}
	}
	return nil
}

// still returns an error unless the answer to ROLE shows that the server may still be read.
func (s *session) still(op string) error {
	if err := s.request.role.Err(); err != nil {
		return s.fail(op, err, optimistic.Reading)
	}
	if !s.db.config.stays(s.request.role) {
		return s.lose(unavailable(op, "the Redis server %s is no primary any more", s.link.node))
	}
	return nil
}

// fail ends the transaction because of an error of the connection or an answer.
func (s *session) fail(op string, err error, at optimistic.Phase) error {
	if s.db.sentinels != nil && errors.Is(err, net.ErrClosed) {
		err = fmt.Errorf("the Sentinels name another primary: %w", err)
	}
	return s.lose(failure(op, s.link.node, err, at))
}

// lose ends the transaction. It also ends the session if its connection cannot be used any more.
func (s *session) lose(e *db.Error) error {
	s.unproved = s.unproved || e.Class == db.Unknown && s.db.config.wait > 0
	return s.Lose(e)
}

// Rollback forgets the transaction. The next Read forgets the keys that are watched for it.
func (s *session) Rollback() { s.clear() }

// words are the words of one command. The library gets added words as pointers, which are used again. A slice in an
// interface would be allocated for each word.
type words struct {
	all   []any
	bytes []*word
	used  int
}

type word struct{ text []byte }

// MarshalBinary implements encoding.BinaryMarshaler, with which the library reads a word.
func (w *word) MarshalBinary() ([]byte, error) { return w.text, nil }

func (w *words) reset(first ...any) {
	w.all, w.used = append(w.all[:0], first...), 0
}

// add adds words. They must not change until the command was sent.
func (w *words) add(texts ...[]byte) {
	for _, text := range texts {
		if w.used == len(w.bytes) {
			w.bytes = append(w.bytes, new(word))
		}
		w.bytes[w.used].text = text
		w.all = append(w.all, w.bytes[w.used])
		w.used++
	}
}

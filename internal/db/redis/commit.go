package redis

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

//go:embed commit.lua
var commitSource string

//go:embed scan.lua
var scanSource string

// script is a Lua script and the digest under which the server caches it.
type script struct{ source, digest string }

// Commit compares and writes in one step, once. A key may have been changed and hold again the value that was read. For
// a script such a key has not changed, as if the whole transaction happened now. WATCH reports it as a change. A
// transaction that wrote nothing sends nothing. All its reads are of one moment within its time.
func (s *session) Commit(ctx context.Context) error {
	const op = "commit"
	writes := len(s.Writes.All())
	if err := s.CheckCommit(ctx, writes, maxWrites); err != nil || writes == 0 {
		return err
	}
	if s.db.config.any {
		return db.Fatalf(op, "the URL says read=any, which is for reading only: take read=any out to write to the primary")
	}
	for _, w := range s.Writes.All() {
		if key := string(w.Key); key == indexKey || key == countKey {
			return db.Fatalf(op, "the driver needs the key %s for itself", key)
		}
	}
	s.wrote = false
	if s.db.config.watch {
		return s.commitWatched(ctx)
	}
	return s.commitScript(ctx)
}

// phase returns how far a commit had come when its connection failed.
func (s *session) phase() optimistic.Phase {
	if s.wrote {
		return optimistic.Sent
	}
	return optimistic.Unsent
}

// known reports whether key is in the index if the transaction's comparisons hold.
func (s *session) known(key []byte) bool {
	const few = 32
	i := slices.IndexFunc(s.reads[:min(few, len(s.reads))], func(r readKey) bool { return bytes.Equal(r.key, key) })
	return i >= 0 && s.reads[i].found
}

// commitScript commits by commit.lua. The arguments are described there.
func (s *session) commitScript(ctx context.Context) error {
	const op = "commit"
	fill := func(w *words) {
		w.all = append(w.all, 2+len(s.reads)+len(s.Writes.All()), indexKey, countKey)
		for _, read := range s.reads {
			w.add(read.key)
		}
		for _, write := range s.Writes.All() {
			w.add(write.Key)
		}
		w.all = append(w.all, len(s.reads))
		for _, read := range s.reads {
			if read.found {
				w.add(s.Writes.Copy(same, read.value))
			} else {
				w.add(absent)
			}
		}
		for _, write := range s.Writes.All() {
			switch {
			case write.Remove:
				w.add(absent)
			case s.known(write.Key):
				w.add(s.Writes.Copy(same, write.Value))
			default:
				w.add(s.Writes.Copy(added, write.Value))
			}
		}
	}
	applied, err := s.eval(ctx, s.db.commit, fill, false, s.db.config.wait > 0)
	if err != nil {
		return s.fail(op, err, s.phase())
	}
	switch answer := applied.Val(); answer {
	case int64(1):
		return s.acknowledged(s.request.wait)
	case int64(0):
		return optimistic.ErrConflict
	default:
		return s.uncertain("", "the commit script answered %v", answer)
	}
}

// uncertain ends a commit whose writes may have been applied, all or in part.
func (s *session) uncertain(code, format string, args ...any) error {
	return s.lose(&db.Error{
		Class: db.Unknown, Code: code, Op: "commit",
		Err: fmt.Errorf("the Redis server %s: %w", s.link.node, fmt.Errorf(format, args...)),
	})
}

// The marks in front of a value for commit.lua: no value, the value of a key that is in the index, and the value of a
// key that may not be in the index.
var (
	absent = []byte{'-'}
	same   = []byte{'='}
	added  = []byte{'+'}
)

// eval runs a script by its digest, followed by the questions. A server that does not know the digest refuses it before
// it executes anything. Then eval sends the text of the script.
func (s *session) eval(ctx context.Context, sc script, fill func(*words), role, wait bool) (*goredis.Cmd, error) {
	for name, script := "evalsha", sc.digest; ; name, script = "eval", sc.source {
		s.words.reset(name, script)
		fill(&s.words)
		answer := goredis.NewCmd(ctx, s.words.all...)
		q := s.ask(role, wait)
		q.commands = append(q.commands, answer)
		if err := s.run(ctx); err != nil {
			return nil, err
		}
		if err := answer.Err(); err == nil || name == "eval" || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
			return answer, err
		}
	}
}

// commitWatched commits by MULTI … EXEC, which fails if a watched key was written.
func (s *session) commitWatched(ctx context.Context) error {
	const op = "commit"
	q := s.ask(false, s.db.config.wait > 0)
	if s.watching && len(s.reads) == 0 { // for an earlier transaction, which was abandoned
		q.commands = append(q.commands, goredis.NewStatusCmd(ctx, "unwatch"))
	}
	first := len(q.commands)
	q.commands = s.queue(ctx, append(q.commands, goredis.NewStatusCmd(ctx, "multi")))
	exec := goredis.NewCmd(ctx, "exec")
	q.commands = append(q.commands, exec)
	s.watching = false
	if err := s.run(ctx); err != nil {
		return s.fail(op, err, s.phase())
	}
	if err := q.commands[first].Err(); err != nil {
		// No transaction was begun, and the server has executed the commands that follow.
		return s.uncertain("MULTI", "it refused to begin the transaction: %w", err)
	}
	queued := q.commands[first+1 : len(q.commands)-1]
	switch err := exec.Err(); {
	case errors.Is(err, goredis.Nil):
		return optimistic.ErrConflict
	case err != nil && strings.HasPrefix(err.Error(), "EXECABORT"):
		for _, c := range queued { // EXEC does not repeat the error of a command that was not queued
			if c.Err() != nil {
				return s.fail(op, c.Err(), optimistic.Unsent)
			}
		}
		return s.fail(op, err, optimistic.Unsent)
	case err != nil:
		// Only EXECABORT refuses EXEC as a whole. The library returns some errors of single commands as the error of
		// EXEC.
		return s.torn(err)
	}
	// EXEC returns one answer for each command. An error among them is of one command alone, and the other commands
	// were executed: https://redis.io/docs/latest/develop/using-commands/transactions/.
	answers, _ := exec.Val().([]any)
	for _, answer := range answers {
		if err, failed := answer.(error); failed {
			return s.torn(err)
		}
	}
	if len(answers) != len(queued) {
		return s.uncertain("EXEC", "EXEC answered %d of %d commands", len(answers), len(queued))
	}
	return s.acknowledged(q.wait)
}

func (s *session) torn(err error) error {
	return s.uncertain("EXEC", "a command failed in the middle of the transaction, which Redis does not take back: %w", err)
}

// queue adds the commands of the transaction. The first command counts the commit.
func (s *session) queue(ctx context.Context, commands []goredis.Cmder) []goredis.Cmder {
	commands = append(commands, goredis.NewStatusCmd(ctx, "incr", countKey))
	sets, adds, deletes, removes := &s.lists[0], &s.lists[1], &s.lists[2], &s.lists[3]
	sets.reset("mset")
	adds.reset("zadd", indexKey)
	deletes.reset("del")
	removes.reset("zrem", indexKey)
	for _, w := range s.Writes.All() {
		if w.Remove {
			deletes.add(w.Key)
			removes.add(w.Key)
			continue
		}
		sets.add(w.Key, w.Value)
		if !s.known(w.Key) {
			adds.all = append(adds.all, "0")
			adds.add(w.Key)
		}
	}
	for i := range s.lists {
		if w := &s.lists[i]; w.used > 0 {
			commands = append(commands, goredis.NewStatusCmd(ctx, w.all...))
		}
	}
	return commands
}

// acknowledged ends a commit that the primary has applied. If too few replicas have acknowledged it, its outcome is
// unknown: it stands unless the primary is lost.
func (s *session) acknowledged(wait *goredis.IntCmd) error {
	if wait == nil {
		return nil
	}
	if err := wait.Err(); err != nil {
		return s.uncertain("replicas", "it has applied the commit, and did not say which replicas have it: %w", err)
	}
	if n := wait.Val(); n < int64(s.db.config.wait) {
		return s.uncertain("replicas", "it has applied the commit, and %d of %d replicas acknowledged it in %v", n, s.db.config.wait, s.db.config.waitFor)
	}
	s.unproved = false
	return nil
}

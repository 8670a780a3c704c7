package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
	"stroppy/internal/db/wire"
)

// refusal is an answer which says for sure that a command, script or transaction was not begun.
type refusal struct {
	begins string // of the answer
	class  db.Class
	advice string
	denial wire.Refusal // of the user of the URL; 0: it is none
}

const (
	noCluster      = "this driver's transactions touch keys of any slot, which a Redis Cluster refuses: name a single server, or a primary and its replicas"
	number         = "the number after its last /, below the server's setting databases"
	attachReplicas = "start replicas of it (replicaof in their redis.conf)"
	grant          = "~* +@read +@write +@transaction +@scripting +@connection +role"
)

// refusals is the whole list of answers that are believed to mean "not applied". Each is
// given before anything is executed: by processCommand of Redis's src/server.c, which
// says it of EXEC as EXECABORT, or by scriptPrepareForRun of src/script.c, versions 7.0
// to 8.2, of a script that declares its flags; that is why ours do. commit.lua adds one of
// its own, and hands on what its first write was refused with.
var refusals = []refusal{
	// The server is a replica, now or still: look for the primary.
	{"READONLY ", db.Unavailable, "", 0},
	{"ERR Can not run script with write flag on readonly replica", db.Unavailable, "", 0}, // 7.0.0
	{"MASTERDOWN ", db.Unavailable, "", 0},
	// It reads its files after a start.
	{"LOADING ", db.Unavailable, "", 0},
	// Fewer replicas than min-replicas-to-write are connected and not late.
	{"NOREPLICAS ", db.Unavailable, attachReplicas + ", or lower its min-replicas-to-write", 0},
	// networking.c, instead of taking the connection.
	{"ERR max number of clients", db.Unavailable, "raise the server's maxclients", 0},
	// Somebody else's script runs longer than busy-reply-threshold.
	{"BUSY ", db.Aborted, "", 0},
	// The script is not in the server's cache, and was not when it was loaded.
	{"NOSCRIPT ", db.Aborted, "", 0},

	{"OOM ", db.Fatal, "raise the server's maxmemory", 0},
	{"MISCONF ", db.Fatal, "let the server write its files again, and see its log", 0},
	{"NOAUTH ", db.Fatal, "redis://:password@… or redis://user:password@…", wire.NoUser},
	{"WRONGPASS ", db.Fatal, "", wire.WrongUser},
	{"ERR AUTH ", db.Fatal, "the server has no password", wire.WrongUser},
	{"NOPERM ", db.Fatal, grant, wire.NoRight},
	{"ERR The user executing the script can't", db.Fatal, grant, wire.NoRight}, // to the script's first write
	{"DENIED ", db.Fatal, "", 0},                                               // protected mode, which says itself what to do
	{"ERR DB index ", db.Fatal, number, wire.NoDatabase},
	{"ERR invalid DB index", db.Fatal, number, wire.NoDatabase},
	{"ERR SELECT is not allowed", db.Fatal, noCluster, 0},
	{"ERR unknown command", db.Fatal, "the driver needs Redis 7.0 or later with all its commands", 0},
	{"ERR Can not run script on cluster", db.Fatal, noCluster, 0},
	{"MOVED ", db.Fatal, noCluster, 0},
	{"ASK ", db.Fatal, noCluster, 0},
	{"TRYAGAIN ", db.Fatal, noCluster, 0},
	{"CROSSSLOT ", db.Fatal, noCluster, 0},
	{"CLUSTERDOWN ", db.Fatal, noCluster, 0},

	// commit.lua, and the count of commits that is no number.
	{"FOREIGN ", db.Fatal, foreign, 0},
	{"ERR value is not an integer or out of range", db.Fatal, foreign, 0},
	{"WRONGTYPE ", db.Fatal, foreign, 0},
}

const foreign = "another program uses the names " + indexKey + " and " + countKey + " in this database: take another number after the last / of the URL"

// raised marks an error that ended a script in its middle, as Redis writes it:
// "… script: <digest>, on @user_script:12." (script_lua.c, luaCallFunction). What
// the script wrote before is not taken back:
// https://redis.io/docs/latest/develop/programmability/eval-intro/.
const raised = "@user_script"

// discarded begins what EXEC answers when a command before it was refused, or it was
// itself: then nothing of the transaction is executed (multi.c, execCommandAbort).
const discarded = "EXECABORT Transaction discarded because of: "

// classify returns the class of err, for the transaction that it ended and for a
// person. What is not in the table of refusals could be anything: a deadline, a
// connection that broke, an error of a command in the middle of a script or a
// transaction, which Redis does not roll back. Such an error ends a read for
// sure, and leaves a commit unknown once it was sent.
func classify(err error, at optimistic.Phase) (class db.Class, code, text string) {
	class = at.Class()
	answer, ok := errors.AsType[goredis.Error](err)
	if !ok || errors.Is(err, goredis.Nil) {
		network, ok := errors.AsType[net.Error](err)
		switch {
		case errors.Is(err, context.Canceled):
			return class, "cancelled", fmt.Sprintf("no connection: %v", err)
		case errors.Is(err, context.DeadlineExceeded), ok && network.Timeout():
			return class, "timeout", fmt.Sprintf("no answer in time: %v", err)
		}
		return class, "connection", fmt.Sprintf("no connection: %v", err)
	}
	text = answer.Error()
	code, _, _ = strings.Cut(text, " ")
	if at == optimistic.Sent && strings.Contains(text, raised) {
		return db.Unknown, code, text + ": Redis does not take back what the script had written"
	}
	reason := strings.TrimPrefix(text, discarded)
	for _, r := range refusals {
		if strings.HasPrefix(reason, r.begins) {
			if r.denial != 0 {
				text = r.denial.Text(text, r.advice)
			} else if r.advice != "" {
				text += ": " + r.advice
			}
			code, _, _ = strings.Cut(reason, " ")
			return r.class, code, text
		}
	}
	if strings.HasPrefix(text, "EXECABORT ") {
		class = db.Aborted
	}
	return class, code, text
}

// failure makes the error of a call to a server.
func failure(op, node string, err error, at optimistic.Phase) *db.Error {
	class, code, text := classify(err, at)
	return &db.Error{
		Class: class, Code: code, Op: op,
		Err: db.MessageError{Text: fmt.Sprintf("the Redis server %s: %s", node, text), Cause: err},
	}
}

// unreachable makes the error of a server to which no connection was made.
func unreachable(node string, err error) *db.Error {
	e := failure(opConnect, node, err, optimistic.Reading)
	if _, said := errors.AsType[goredis.Error](err); !said && e.Class == db.Unavailable && !errors.Is(err, context.Canceled) {
		text := e.Err.Error()
		if reason := wire.Reason(err); reason != "" {
			text = fmt.Sprintf("the Redis server %s: %s", node, reason)
		}
		e.Code, e.Err = "", db.MessageError{Text: text + ": " + db.CheckServer, Cause: err} // the code was ours
	}
	return e
}

// unavailable makes the error of a server that is not the one to ask.
func unavailable(op, format string, args ...any) *db.Error {
	return &db.Error{Class: db.Unavailable, Op: op, Err: fmt.Errorf(format, args...)}
}

// errMoved is one value because it is frequent and each would be allocated.
var errMoved error = &db.Error{
	Class: db.Aborted, Op: "read",
	Err: errors.New("a key was changed by another transaction between two reads of this one"),
}

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

// refusal is an answer which proves that a command, script or transaction was not begun.
type refusal struct {
	begins string // of the answer
	class  db.Class
	advice string
	denial wire.Refusal // why the URL's user was refused; 0: another reason
}

const (
	noCluster      = "this driver's transactions touch keys of any slot, which a Redis Cluster refuses: name a single server, or a primary and its replicas"
	number         = "the number after its last /, below the server's setting databases"
	attachReplicas = "start replicas of it (replicaof in their redis.conf)"
	grant          = "~* +@read +@write +@transaction +@scripting +@connection +role"
)

// refusals lists all answers that are taken to mean "not applied". Redis returns each before it executes anything. One
// source is processCommand of Redis's src/server.c, whose refusal of EXEC begins with EXECABORT. The other source is
// scriptPrepareForRun of src/script.c, versions 7.0 to 8.2, for scripts that declare their flags. Our scripts declare
// them for this reason. commit.lua adds one answer of its own, and returns the refusal of its first write.
var refusals = []refusal{
	// The server is a replica, now or still. The driver looks for the primary.
	{"READONLY ", db.Unavailable, "", 0},
	{"ERR Can not run script with write flag on readonly replica", db.Unavailable, "", 0}, // 7.0.0
	{"MASTERDOWN ", db.Unavailable, "", 0},
	// The server reads its files after a start.
	{"LOADING ", db.Unavailable, "", 0},
	// Fewer replicas than min-replicas-to-write are connected and not late.
	{"NOREPLICAS ", db.Unavailable, attachReplicas + ", or lower its min-replicas-to-write", 0},
	// networking.c, instead of accepting the connection.
	{"ERR max number of clients", db.Unavailable, "raise the server's maxclients", 0},
	// A script of another client runs longer than busy-reply-threshold.
	{"BUSY ", db.Aborted, "", 0},
	// The script is not in the server's cache, and was not there when it was loaded.
	{"NOSCRIPT ", db.Aborted, "", 0},

	{"OOM ", db.Fatal, "raise the server's maxmemory", 0},
	{"MISCONF ", db.Fatal, "let the server write its files again, and see its log", 0},
	{"NOAUTH ", db.Fatal, "redis://:password@… or redis://user:password@…", wire.NoUser},
	{"WRONGPASS ", db.Fatal, "", wire.WrongUser},
	{"ERR AUTH ", db.Fatal, "the server has no password", wire.WrongUser},
	{"NOPERM ", db.Fatal, grant, wire.NoRight},
	{"ERR The user executing the script can't", db.Fatal, grant, wire.NoRight}, // for the script's first write
	{"DENIED ", db.Fatal, "", 0},                                               // protected mode; the error has the advice
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

	// FOREIGN is from commit.lua. The next error means that the count of commits is not a number.
	{"FOREIGN ", db.Fatal, foreign, 0},
	{"ERR value is not an integer or out of range", db.Fatal, foreign, 0},
	{"WRONGTYPE ", db.Fatal, foreign, 0},
}

const foreign = "another program uses the names " + indexKey + " and " + countKey + " in this database: take another number after the last / of the URL"

// raised marks an error that ended a script in the middle. Redis writes it as "… script: <digest>, on @user_script:12."
// (script_lua.c, luaCallFunction). The earlier writes of the script are not undone:
// https://redis.io/docs/latest/develop/programmability/eval-intro/.
const raised = "@user_script"

// discarded is the beginning of EXEC's answer if EXEC or a command before it was refused. Nothing of the transaction is
// executed then (multi.c, execCommandAbort).
const discarded = "EXECABORT Transaction discarded because of: "

// classify returns the class of err for the transaction that it ended, and the text for a person. An error that is not
// in the table of refusals proves nothing. Examples are a deadline, a broken connection, or an error of a command in
// the middle of a script or transaction. Redis does not roll back such a command. Such an error makes a read fail. If a
// commit was sent, its outcome is unknown.
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

// failure returns the error of a call to a server.
func failure(op, node string, err error, at optimistic.Phase) *db.Error {
	class, code, text := classify(err, at)
	return &db.Error{
		Class: class, Code: code, Op: op,
		Err: db.MessageError{Text: fmt.Sprintf("the Redis server %s: %s", node, text), Cause: err},
	}
}

// unreachable returns the error of a server to which no connection was made.
func unreachable(node string, err error) *db.Error {
	if refused, why := wire.CertificateRefusal(err); refused != 0 {
		return db.Fatalf(opConnect, "%w", db.MessageError{Text: "the Redis server " + node + ": " + refused.Text(why, inURL[refused]), Cause: err})
	}
	e := failure(opConnect, node, err, optimistic.Reading)
	if _, said := errors.AsType[goredis.Error](err); !said && e.Class == db.Unavailable && !errors.Is(err, context.Canceled) {
		text := e.Err.Error()
		if reason := wire.Reason(err); reason != "" {
			text = fmt.Sprintf("the Redis server %s: %s", node, reason)
		}
		e.Code, e.Err = "", db.MessageError{Text: text + ": " + db.CheckServer, Cause: err} // the code came from our side
	}
	return e
}

// unavailable returns the error of a server that is the wrong one to ask.
func unavailable(op, format string, args ...any) *db.Error {
	return &db.Error{Class: db.Unavailable, Op: op, Err: fmt.Errorf(format, args...)}
}

// errMoved is one value because it is frequent and a new value would be allocated each time.
var errMoved error = &db.Error{
	Class: db.Aborted, Op: "read",
	Err: errors.New("a key was changed by another transaction between two reads of this one"),
}

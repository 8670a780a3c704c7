package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// answer is an error reply of the server in the form in which the library returns it.
type answer string

func (a answer) Error() string { return string(a) }
func (a answer) RedisError()   {}

// TestErrorRepliesAreClassified checks the class of each error reply. The texts are from Redis 7.0.15 and from Valkey,
// either observed or from their sources.
func TestErrorRepliesAreClassified(t *testing.T) {
	for _, test := range []struct {
		text string
		sent db.Class // of a commit; a read is never unknown
		code string
	}{
		{"READONLY You can't write against a read only replica.", db.Unavailable, "READONLY"},
		{"READONLY Can not run script with write flag on readonly replica", db.Unavailable, "READONLY"},
		{"ERR Can not run script with write flag on readonly replica", db.Unavailable, "ERR"},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", db.Unavailable, "MASTERDOWN"},
		{"LOADING Redis is loading the dataset in memory", db.Unavailable, "LOADING"},
		{"NOREPLICAS Not enough good replicas to write.", db.Unavailable, "NOREPLICAS"},
		{"ERR max number of clients reached", db.Unavailable, "ERR"},
		{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", db.Aborted, "BUSY"},
		{"NOSCRIPT No matching script. Please use EVAL.", db.Aborted, "NOSCRIPT"},
		{"OOM command not allowed when used memory > 'maxmemory'.", db.Fatal, "OOM"},
		{"OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'", db.Fatal, "OOM"},
		{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", db.Fatal, "MISCONF"},
		{"MISCONF Errors writing to the AOF file: No space left on device", db.Fatal, "MISCONF"},
		{"NOAUTH Authentication required.", db.Fatal, "NOAUTH"},
		{"WRONGPASS invalid username-password pair or user is disabled.", db.Fatal, "WRONGPASS"},
		{"NOPERM User teller has no permissions to run the 'evalsha' command", db.Fatal, "NOPERM"},
		{"ERR The user executing the script can't run this command or subcommand", db.Fatal, "ERR"},
		{"ERR The user executing the script can't run this command or subcommand script: 0123, on @user_script:51.", db.Unknown, "ERR"},
		{"DENIED Redis is running in protected mode because protected mode is enabled", db.Fatal, "DENIED"},
		{"ERR DB index is out of range", db.Fatal, "ERR"},
		{"ERR unknown command 'HELLO', with args beginning with: ", db.Fatal, "ERR"},
		{"ERR Can not run script on cluster, 'no-cluster' flag is set.", db.Fatal, "ERR"},
		{"MOVED 3999 127.0.0.1:6381", db.Fatal, "MOVED"},
		{"CROSSSLOT Keys in request don't hash to the same slot", db.Fatal, "CROSSSLOT"},
		{"CLUSTERDOWN The cluster is down", db.Fatal, "CLUSTERDOWN"},
		{"FOREIGN the key stroppy:index is a list", db.Fatal, "FOREIGN"},
		{"EXECABORT Transaction discarded because of previous errors.", db.Aborted, "EXECABORT"},
		{"EXECABORT Transaction discarded because of: READONLY You can't write against a read only replica.", db.Unavailable, "READONLY"},
		{"EXECABORT Transaction discarded because of: NOREPLICAS Not enough good replicas to write.", db.Unavailable, "NOREPLICAS"},

		// In the middle of a script no error proves anything, whatever its words.
		{"NOPERM The user executing the script can't run this command or subcommand script: 0123, on @user_script:50.", db.Unknown, "NOPERM"},
		{"OOM command not allowed when used memory > 'maxmemory'. script: 0123, on @user_script:50.", db.Unknown, "OOM"},
		{"ERR Error running script: @user_script:3: Script killed by user with SCRIPT KILL...", db.Unknown, "ERR"},
		// An answer that is not in the table proves nothing.
		{"ERR something else", db.Unknown, "ERR"},
		{"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", db.Unknown, "UNBLOCKED"},
		{"ERR EXEC without MULTI", db.Unknown, "ERR"},
	} {
		for _, err := range []error{answer(test.text), fmt.Errorf("failed to authenticate: %w", answer(test.text))} {
			class, code, text := classify(err, optimistic.Sent)
			if class != test.sent || code != test.code || !strings.Contains(text, strings.TrimSuffix(test.text, ".")) {
				t.Errorf("%s: class %v, code %s, text %q, want %v and %s", test.text, class, code, text, test.sent, test.code)
			}
		}
		if class, _, _ := classify(answer(test.text), optimistic.Reading); class == db.Unknown || test.sent != db.Unknown && class != test.sent {
			t.Errorf("%s: class %v for what only reads", test.text, class)
		}
	}
	for err, code := range map[error]string{
		io.EOF: "connection", errors.New("redis: Conn is in a bad state"): "connection",
		os.ErrDeadlineExceeded: "timeout", context.DeadlineExceeded: "timeout", context.Canceled: "cancelled",
	} {
		for at, want := range map[optimistic.Phase]db.Class{optimistic.Reading: db.Unavailable, optimistic.Unsent: db.Unavailable, optimistic.Sent: db.Unknown} {
			if class, got, _ := classify(err, at); class != want || got != code {
				t.Errorf("%v at phase %d: class %v, code %s, want %v and %s", err, at, class, got, want, code)
			}
		}
	}
}

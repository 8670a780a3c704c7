package mongodb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// phase is the progress of a transaction at the time of an error. The class of an error depends on it and on the
// server's code. Labels are not enough, because most network errors at a commit have none.
type phase uint8

const (
	before     phase = iota // no commit was sent
	committing              // a commit was sent, or may have been
)

// failure returns the error of a call to the server.
func (d *Database) failure(op string, err error, at phase) *db.Error {
	e := &db.Error{Op: op, Err: db.MessageError{Text: "MongoDB " + d.config.name() + ": " + d.sentence(err), Cause: err}}
	code, _, answered := answerOf(err)
	if answered {
		e.Code = strconv.Itoa(int(code))
	}
	switch {
	case at == committing:
		e.Class = commitRefusals[code] // Unknown, the zero class, if it is not listed
	case answered:
		e.Class = db.Aborted
		if class, known := refusals[code]; known {
			e.Class = class
		}
		e.Constraint = constraints[code]
	default:
		e.Class = db.Unavailable
	}
	return e
}

// answerOf returns the server's code and its text, or false if the error is not an answer of a server.
func answerOf(err error) (code int32, text string, answered bool) {
	if write, ok := errors.AsType[mongo.WriteException](err); ok {
		for _, e := range write.WriteErrors {
			return int32(e.Code), e.Message, true
		}
		if write.WriteConcernError != nil {
			return int32(write.WriteConcernError.Code), "", true
		}
		return 0, "", false
	}
	if command, ok := errors.AsType[mongo.CommandError](err); ok && command.Code != 0 {
		return command.Code, command.Message, true
	}
	if inner, ok := errors.AsType[driver.Error](err); ok && inner.Code != 0 { // of a handshake
		return inner.Code, inner.Message, true
	}
	return 0, "", false
}

// sentence returns a short description of an error.
func (d *Database) sentence(err error) string {
	code, text, _ := answerOf(err)
	if text != "" {
		text, _, _ = strings.Cut(text, " to execute command") // it repeats the command
		text = strings.TrimSuffix(text, ".")
		switch {
		case code == codeAuthentication, code == codeUserNotFound:
			return wire.WrongUser.Text(text, "authSource is the database that has the user")
		case code == codeUnauthorized && d.config.user == "":
			return wire.NoUser.Text(text, "mongodb://USER:PASSWORD@…")
		case code == codeUnauthorized:
			return wire.NoRight.Text(text, "the role readWrite")
		case advices[code] != "":
			return text + ": " + advices[code]
		}
		return text
	}
	if selection, ok := errors.AsType[topology.ServerSelectionError](err); ok {
		return d.unselected(selection)
	}
	cleared := driver.RetryablePoolError(nil)
	switch {
	case errors.Is(err, context.DeadlineExceeded) || mongo.IsTimeout(err):
		return fmt.Sprintf("no answer within %v", d.config.timeout)
	case ended(err):
		return "the connection ended"
	case errors.As(err, &cleared): // the library cleared its pool, and then looks for the primary again
		return "the connections were given up after another call had failed"
	}
	return err.Error()
}

// ended reports whether the other side has ended the connection.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// unselected returns why no server can be asked.
func (d *Database) unselected(err topology.ServerSelectionError) string {
	var whys []string
	members, ghosts := 0, 0
	for _, server := range err.Desc.Servers {
		switch {
		case server.Kind == description.ServerKindRSGhost:
			ghosts++
		case server.LastError == nil:
			members++
		default:
			if why := unanswered(server.LastError); !slices.Contains(whys, why) {
				whys = append(whys, why)
			}
		}
	}
	slices.Sort(whys)
	switch reason := sameReason(err.Desc.Servers); {
	case members > 0:
		return fmt.Sprintf("no primary within %v (members that answer: %d): a majority of the replica set must run and reach each other%s",
			d.config.timeout, members, parenthesis(whys))
	case ghosts > 0:
		return "it is of a replica set that was not initiated, or that does not have it any more: call replSetInitiate once, or name other members"
	case reason != "":
		return reason + ": " + db.CheckServer
	case len(err.Desc.Servers) == 0: // those that answered were given up
		return fmt.Sprintf("no member of the replica set %s answers within %v: check its name, and the addresses", d.config.replicaSet, d.config.timeout)
	}
	return fmt.Sprintf("no server answers within %v%s: %s", d.config.timeout, parenthesis(whys), db.CheckServer)
}

// sameReason returns why no connection to any of the servers was made, if all have the same reason, and otherwise "".
func sameReason(servers []description.Server) string {
	same := ""
	for _, server := range servers {
		reason := ""
		if server.LastError != nil {
			reason = wire.Reason(server.LastError)
		}
		if reason != wire.RefusedReason && reason != wire.NoHostReason && reason != wire.NoNameReason || same != "" && reason != same {
			return ""
		}
		same = reason
	}
	return same
}

// inURL states how a URL avoids a refusal.
var inURL = map[wire.Refusal]string{
	wire.Untrusted: "tlsCAFile=FILE", wire.WrongHost: "or write tlsInsecure=true", wire.NeedsCertificate: certificateFile + "=FILE",
}

// unanswered returns a short reason why a server has not answered.
func unanswered(err error) string {
	if refused, why := wire.CertificateRefusal(err); refused != 0 {
		return refused.Text(why, inURL[refused])
	}
	if wire.AnswersPlain(err) {
		return wire.LacksTLS.Text("", "tls=false")
	}
	text := err.Error()
	if at := strings.LastIndex(text, "dial tcp "); at >= 0 {
		return strings.Replace(text[at+len("dial tcp "):], ": connect: ", ": ", 1)
	}
	if reason := wire.TextReason(text); reason != "" { // of a name without an address
		return reason
	}
	switch {
	case ended(err):
		return "it ends the connection"
	case errors.Is(err, context.DeadlineExceeded) || mongo.IsTimeout(err):
		return "it says nothing"
	case strings.Contains(text, "malformed message length") || strings.Contains(text, "length of read message too large"):
		return "it does not speak MongoDB's protocol"
	}
	return text
}

func parenthesis(whys []string) string {
	if len(whys) == 0 {
		return ""
	}
	return " (" + strings.Join(whys, "; ") + ")"
}

// name names the servers in errors.
func (c *config) name() string { return strings.Join(c.servers, ",") }

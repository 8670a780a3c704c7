package voltdb

import (
	"errors"
	"regexp"
	"strings"

	"stroppy/internal/db"
)

// statuses holds the name of a status and the class of a call that failed with it: org.voltdb.client.ClientResponse of VoltDB 10.0, and
// https://docs.voltdb.com/UsingVoltDB/DesignAppErrHandling.php.
//
// If a node ends, or no longer decides for a partition, it answers its open calls with RESPONSE_UNKNOWN: they may have
// been applied. A call with a status that is not known may have been applied too. The first two statuses mean that the
// transaction was rolled back.
var statuses = map[status]struct {
	name  string
	class db.Class
}{
	userAbort:          {"USER_ABORT", db.Aborted},
	gracefulFailure:    {"GRACEFUL_FAILURE", db.Aborted},
	unexpectedFailure:  {"UNEXPECTED_FAILURE", db.Unknown},
	connectionLost:     {"CONNECTION_LOST", db.Unknown},
	serverUnavailable:  {"SERVER_UNAVAILABLE", db.Unavailable},
	connectionTimeout:  {"CONNECTION_TIMEOUT", db.Unknown},
	responseUnknown:    {"RESPONSE_UNKNOWN", db.Unknown},
	txnRestart:         {"TXN_RESTART", db.Unknown},
	operationalFailure: {"OPERATIONAL_FAILURE", db.Unknown},
}

// absentProcedure ends the text about a procedure that does not exist.
const absentProcedure = " was not found"

// meaning is the class of an error by its text. It is used if the status is not exact.
type meaning struct {
	pattern    *regexp.Regexp
	class      db.Class
	constraint db.ConstraintKind
}

// meanings are the texts of VoltDB 10.0, seen on the server; the first match counts.
//
// VoltDB has no CHECK, and a procedure without Java has no conditions. So a procedure fails by computing an impossible
// number. A number out of its type's range is a check that failed. A division of 1 by 0 is a record that is not there.
// A division of 2 by 0 is a record that was changed since it was read. A division of 3 by 0 is an id that is there
// already.
var meanings = []meaning{
	{regexp.MustCompile(`It is possible the transaction was committed|dropped during fault recovery`), db.Unknown, 0}, // ClientResponse.DROP_TXN_MASTERSHIP, DROP_TXN_RECOVERY
	{regexp.MustCompile(`^Constraint Type (PRIMARY_KEY|UNIQUE),`), db.Constraint, db.UniqueKey},
	{regexp.MustCompile(`^Constraint Type NOT_NULL,`), db.Constraint, db.NotNull},
	{regexp.MustCompile(`^SQL ERROR .* will overflow `), db.Constraint, db.CheckFailed},
	{regexp.MustCompile(`^SQL ERROR Attempted to divide 2 by 0`), db.Aborted, 0},               // changed
	{regexp.MustCompile(`^SQL ERROR Attempted to divide 3 by 0`), db.Constraint, db.UniqueKey}, // taken
	{regexp.MustCompile(`^SQL ERROR Attempted to divide .* by 0`), db.Constraint, db.ForeignKey},
	// A lost cluster starts again without its schema. A call of a client is then surely not applied, and is not the
	// client's mistake.
	{regexp.MustCompile(`^Procedure .*` + absentProcedure + `$|object not found`), db.Aborted, 0},
	{regexp.MustCompile(`while compiling query|^\[Ad Hoc DDL Input|^PROCEDURE .* EXPECTS|^Failed to plan|does not have .* permission`), db.Fatal, 0},
}

// failed returns the error of a call that the server reports as failed.
func failed(op string, a *answer) *db.Error {
	text := oneLine(string(a.text))
	e := &db.Error{Class: statuses[a.status].class, Code: statuses[a.status].name, Op: op, Err: errors.New(text)}
	for _, m := range meanings {
		if m.pattern.MatchString(text) {
			e.Class, e.Constraint = m.class, m.constraint
			break
		}
	}
	return e
}

// oneLine makes one sentence of a server's text, without the places in the server's program.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n    at ")
	text = strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "VOLTDB ERROR: ")
	// The list of rows that violate a constraint is longer than a sentence, and is data.
	if violated, _, found := strings.Cut(text, " Relevant Tuples:"); found {
		text = strings.TrimPrefix(violated, "CONSTRAINT VIOLATION Attempted violation of constraint ")
	}
	const most = 400
	if len(text) > most {
		text = text[:most] + " …"
	}
	return text
}

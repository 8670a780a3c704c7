package voltdb

import (
	"errors"
	"regexp"
	"strings"

	"stroppy/internal/db"
)

// How a call that was no success ended: org.voltdb.client.ClientResponse of VoltDB 10.0,
// and https://docs.voltdb.com/UsingVoltDB/DesignAppErrHandling.php.
//
// A node that ends, or that is no longer the one that decides of a partition, answers what
// it had under way with RESPONSE_UNKNOWN: it may have been applied. So may what a node
// says of no known status. The first two statuses are those of a transaction that was
// rolled back.
var classes = map[status]db.Class{
	userAbort:          db.Aborted,
	gracefulFailure:    db.Aborted,
	unexpectedFailure:  db.Unknown,
	connectionLost:     db.Unknown,
	serverUnavailable:  db.Unavailable,
	connectionTimeout:  db.Unknown,
	responseUnknown:    db.Unknown,
	txnRestart:         db.Unknown,
	operationalFailure: db.Unknown,
}

var statusNames = map[status]string{
	userAbort: "USER_ABORT", gracefulFailure: "GRACEFUL_FAILURE", unexpectedFailure: "UNEXPECTED_FAILURE",
	connectionLost: "CONNECTION_LOST", serverUnavailable: "SERVER_UNAVAILABLE", connectionTimeout: "CONNECTION_TIMEOUT",
	responseUnknown: "RESPONSE_UNKNOWN", txnRestart: "TXN_RESTART", operationalFailure: "OPERATIONAL_FAILURE",
}

// absentProcedure ends the text about a procedure that is not there.
const absentProcedure = " was not found"

// meaning is the class of an error by its text, where the status is not exact.
type meaning struct {
	pattern    *regexp.Regexp
	class      db.Class
	constraint db.ConstraintKind
}

// meanings are of VoltDB 10.0, seen on the server; the first that fits counts.
//
// VoltDB has no CHECK, and a procedure without Java has no conditions. So a procedure computes what
// cannot be computed: a number out of its type's range for a check that failed, a division of 1 by 0
// for a record that is not there, of 2 by 0 for one that was changed since it was read, and of 3 by 0 for
// an id that is there.
var meanings = []meaning{
	{regexp.MustCompile(`It is possible the transaction was committed|dropped during fault recovery`), db.Unknown, 0}, // ClientResponse.DROP_TXN_MASTERSHIP, DROP_TXN_RECOVERY
	{regexp.MustCompile(`^Constraint Type (PRIMARY_KEY|UNIQUE),`), db.Constraint, db.UniqueKey},
	{regexp.MustCompile(`^Constraint Type NOT_NULL,`), db.Constraint, db.NotNull},
	{regexp.MustCompile(`^SQL ERROR .* will overflow `), db.Constraint, db.CheckFailed},
	{regexp.MustCompile(`^SQL ERROR Attempted to divide 2 by 0`), db.Aborted, 0},               // changed
	{regexp.MustCompile(`^SQL ERROR Attempted to divide 3 by 0`), db.Constraint, db.UniqueKey}, // taken
	{regexp.MustCompile(`^SQL ERROR Attempted to divide .* by 0`), db.Constraint, db.ForeignKey},
	// A cluster that was lost begins anew without its schema: what a client then asks for
	// is surely not applied, and is no mistake of its own.
	{regexp.MustCompile(`^Procedure .*` + absentProcedure + `$|object not found`), db.Aborted, 0},
	{regexp.MustCompile(`while compiling query|^\[Ad Hoc DDL Input|^PROCEDURE .* EXPECTS|^Failed to plan|does not have .* permission`), db.Fatal, 0},
}

// failed is the error of a call that the server says is no success.
func failed(op string, a *answer) *db.Error {
	text := oneLine(string(a.text))
	e := &db.Error{Class: classes[a.status], Code: statusNames[a.status], Op: op, Err: errors.New(text)}
	for _, m := range meanings {
		if m.pattern.MatchString(text) {
			e.Class, e.Constraint = m.class, m.constraint
			break
		}
	}
	return e
}

// oneLine makes a sentence of a text of the server's, without the places in its program.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n    at ")
	text = strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "VOLTDB ERROR: ")
	// Which rows violate a constraint is longer than a sentence, and data.
	if violated, _, found := strings.Cut(text, " Relevant Tuples:"); found {
		text = strings.TrimPrefix(violated, "CONSTRAINT VIOLATION Attempted violation of constraint ")
	}
	const most = 400
	if len(text) > most {
		text = text[:most] + " …"
	}
	return text
}

package wire

import (
	"errors"

	"stroppy/internal/db"
)

// State is the state of a session's transaction.
type State uint8

const (
	Idle   State = iota
	Queued       // begun for the caller, and the server knows nothing of it
	Open         // begun at the server
)

// Phase is the progress of a transaction at the time of an error.
type Phase uint8

const (
	Connecting Phase = iota + 1
	Before           // in a session, and no commit was sent
	Committing       // COMMIT, or what ends with it, was sent
)

// Lost returns the error for a connection that ended or did not answer.
func Lost(op string, err error, at Phase) *db.Error {
	class := db.Unavailable
	if at == Committing {
		class = db.Unknown
	}
	return &db.Error{Class: class, Op: op, Err: err}
}

// Broken returns the error for a call of a session that was not Reset.
func Broken(op string) *db.Error {
	return Lost(op, errors.New("the connection is gone: the session must be reset"), Before)
}

// Misuse returns the error for a call that the state of the session, which may be broken, does not allow.
func Misuse(op string, broken bool, state State) *db.Error {
	switch {
	case broken:
		return Broken(op)
	case state == Idle:
		return db.Fatalf(op, "the session has no transaction")
	}
	return db.Fatalf(op, "the session has a transaction already")
}

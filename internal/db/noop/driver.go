package noop

import (
	"context"
	"errors"

	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"noop"}, Embedded: true,
	About: "noop:  answers at once and keeps nothing; measures stroppy itself",
	Open:  db.Opener(open),
}

func open(_ context.Context, url string) (*Database, error) {
	if url != "noop:" {
		return nil, &db.Error{Class: db.Fatal, Op: "open noop", Err: errors.New("the address is noop: with nothing behind it")}
	}
	return Open(), nil
}

package memory

import (
	"context"

	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"memory"}, Embedded: true, InMemory: true,
	About: "memory:[?mutant=NAME&rate=R]  the strictly serializable reference in this process, with a bug planted if asked",
	Open:  db.Opener(func(_ context.Context, url string) (*Database, error) { return Open(url) }),
}

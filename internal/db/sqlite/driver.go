package sqlite

import (
	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"sqlite"}, Embedded: true, File: true,
	About: "sqlite:PATH  embedded, durable; the default, in the run's own directory",
	Place: Place, Open: db.Opener(Open), Claim: Claim,
}

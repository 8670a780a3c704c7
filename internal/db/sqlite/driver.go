package sqlite

import (
	"stroppy/internal/db"
)

// Driver is what a registry needs of this database.
var Driver = db.Driver{
	Schemes: []string{"sqlite"}, Embedded: true, File: true,
	About: "sqlite:PATH  embedded, durable; the default, in the run's own directory",
	Place: Place, Open: db.Opener(Open), Claim: Claim,
}

package sqlite

import (
	"regexp"

	"stroppy/internal/db"
)

// Scheme is the scheme of its URL.
const Scheme = "sqlite"

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{Scheme}, Embedded: true, File: true,
	Also:    []string{"sqlite3", "file"},
	Foreign: regexp.MustCompile(`(?i)^jdbc:sqlite:|^[^:@]*\.(db|sqlite3?)$|^[.~]{0,2}/[^:@]*$`),
	About:   "sqlite:PATH  embedded, durable; the default, in the run's own directory",
	Place:   Place, Open: db.Opener(Open), Look: Look, Claim: Claim,
}

package db

import (
	"context"
	"net/url"
	"regexp"
)

// Driver describes a database for the registry. A registry lists one Driver for each database.
type Driver struct {
	Schemes []string // of its URL; the first is the one to use
	Also    []string // other names that people write, in lower case
	// Foreign matches an address of the database in the form of libraries and other tools; nil: no such form is known.
	Foreign *regexp.Regexp
	// About is the form of the URL, two spaces, and a description of the database.
	About    string
	Port     string // of a server whose address has none
	Embedded bool   // it runs in this process
	InMemory bool   // its data are only in the memory of this process
	File     bool   // its URL is the path of a file, which may be shown
	// Place returns an error if a run cannot make the file of the URL; nil: the database has no such file.
	Place func(url string) error
	Open  func(ctx context.Context, url string) (Database, error)
	// Look opens a database that is there and changes nothing; nil: Open changes nothing either.
	Look func(ctx context.Context, url string) (Database, error)
	// Check returns the errors of Open that need no connection; nil: Open makes no connection.
	Check func(url string) error
	// Isolations lists the isolations that every server of this database has; empty: they are not known. KeyValue is a
	// key-value store that is not open. A workload can be bound to it, because that needs only capabilities, limits and
	// a claim. A run uses both to refuse, before it connects, the settings that every server would refuse.
	Isolations Isolations
	KeyValue   KV
	Bindable   bool // connections to it can be made from a local address
	// Alone changes the query of a URL of several servers so that one of them can be read, whatever its role is. It
	// returns false if the servers hold no data. Nil: no server can be read alone.
	Alone func(query url.Values) bool
	// Primary does the same for one server that answers only if it takes writes; nil: several servers may take writes.
	Primary func(query url.Values) bool
	// OwnState is a parameter of the URL of one node. It makes the node answer from its own data, even if they are old.
	// Empty: the node does so anyway, or cannot.
	OwnState string
	// Claim returns the promise at an isolation without a database; nil: opening the database creates nothing.
	Claim func(isolation string) (Claim, error)
}

// Opener returns a function that opens a concrete type as a Database.
func Opener[D Database](open func(context.Context, string) (D, error)) func(context.Context, string) (Database, error) {
	return func(ctx context.Context, url string) (Database, error) { return open(ctx, url) }
}

// Parameter returns a function for Driver.Alone or Driver.Primary that sets a parameter of the
// URL. If name is empty, the URL is enough.
func Parameter(name, value string) func(url.Values) bool {
	return func(query url.Values) bool {
		if name != "" {
			query.Set(name, value)
		}
		return true
	}
}

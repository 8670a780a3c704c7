package db

import (
	"context"
	"net/url"
	"regexp"
)

// Driver holds what a database's folder says of it. A registry lists one Driver for each database.
type Driver struct {
	Schemes []string // of its URL; the first is the one to use
	Also    []string // other names that people write, in lower case
	// Foreign matches an address of the database as libraries and other tools write it; nil: none is known.
	Foreign *regexp.Regexp
	// About is the form of the URL, two spaces, and what the database is.
	About    string
	Port     string // of a server whose address has none
	Embedded bool   // it runs in this process
	InMemory bool   // what it holds is in the memory of this process alone
	File     bool   // its URL is the path of a file, which may be shown
	// Place returns an error for a file that a run cannot make; nil: there is none.
	Place func(url string) error
	Open  func(ctx context.Context, url string) (Database, error)
	// Check returns what Open would refuse without a connection; nil: Open makes none.
	Check func(url string) error
	// Isolations are those that any such server has; none: it is not known. KeyValue is a
	// key-value store that is not open. By these a dry run refuses what a server would.
	Isolations Isolations
	KeyValue   KV
	Bindable   bool // connections to it can be made from a local address
	// Alone sets in the query of a URL of several servers what reads one of them, whatever
	// its role is; false: they hold no data. Nil: none can be read alone.
	Alone func(query url.Values) bool
	// Primary does the same for one server that answers only if it takes writes; nil: there
	// may be several such servers.
	Primary func(query url.Values) bool
	// OwnState, in the URL of one node, has the node answer from what it has, whether that is
	// old or not; empty: it does anyway, or cannot.
	OwnState string
	// Claim claims an isolation without a database; nil: opening makes no database.
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

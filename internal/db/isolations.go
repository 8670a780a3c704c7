package db

import (
	"strings"

	"stroppy/internal/isolation"
)

// Isolations lists the isolations of a database by its own names, in lower case, and its promise at
// each. The first is the default.
type Isolations struct {
	Product string // the product, for errors
	Source  string // where the promises are written
	Levels  []NamedLevel
}

// NamedLevel is the promise of a database at the isolation of this name.
type NamedLevel struct {
	Name  string
	Level isolation.Level
}

// Isolated is implemented by a database that lists its isolations, so that each of them can be tried.
type Isolated interface {
	// IsolationNames returns all names that Claim accepts, as the database writes them.
	IsolationNames() []string
}

// IsolationNames implements Isolated.
func (i Isolations) IsolationNames() (names []string) {
	for _, l := range i.Levels {
		names = append(names, l.Name)
	}
	return names
}

// Name returns the database's own form of a name that Claim accepts.
func (i Isolations) Name(name string) (string, error) {
	c, err := i.Claim(name)
	return c.Isolation, err
}

// Claim returns the promise at the isolation of this name. The name may be in upper case, and may have - or _ between
// its words. The empty name is the default.
func (i Isolations) Claim(name string) (Claim, error) {
	own := strings.NewReplacer("-", " ", "_", " ").Replace(strings.ToLower(name))
	own = strings.Join(strings.Fields(own), " ")
	for _, l := range i.Levels {
		if name == "" || l.Name == own {
			return Claim{Isolation: l.Name, Level: l.Level, Source: i.Source}, nil
		}
	}
	return Claim{}, Fatalf("choose the isolation", "%s has no isolation %q: it has %s", i.Product, name, strings.Join(i.IsolationNames(), ", "))
}

package db

import (
	"testing"

	"stroppy/internal/isolation"
)

func TestClaimAcceptsAnySpellingOfIsolation(t *testing.T) {
	isolations := Isolations{Product: "the product", Levels: []NamedLevel{
		{Name: "read committed", Level: isolation.ReadCommitted}, {Name: "repeatable read", Level: isolation.SnapshotIsolation},
	}}
	for name, want := range map[string]string{
		"": "read committed", "repeatable read": "repeatable read", "REPEATABLE READ": "repeatable read",
		"repeatable-read": "repeatable read", "repeatable_read": "repeatable read", "Repeatable  Read": "repeatable read",
	} {
		if got, err := isolations.Name(name); err != nil || got != want {
			t.Errorf("%q is %q (%v), want %q", name, got, err, want)
		}
	}
	if _, err := isolations.Claim("repeatableread"); err == nil {
		t.Error("a name without its space was accepted")
	}
}

package tpcb

import (
	"embed"

	"stroppy/internal/db"
)

//go:embed profile.*.sql
var profileTexts embed.FS

// newProcedure returns the procedure that is the transaction, with its row of the
// history or without.
func newProcedure(d *db.Dialect, keeps bool) *db.Procedure {
	variant := ""
	if keeps {
		variant = "history"
	}
	return db.ReadProcedure(profileTexts, "profile", "stroppy_tpcb", d, variant,
		[]db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Text}, []db.Type{db.Integer})
}

package db

import "strings"

// StatementWriter builds one statement in a dialect: every parameter gets the next
// placeholder, so that one used twice is given twice, as dialects without numbers
// need it.
type StatementWriter struct {
	dialect *Dialect
	sql     strings.Builder
	params  []Type
}

// Write begins a statement.
func (d *Dialect) Write(parts ...string) *StatementWriter {
	return (&StatementWriter{dialect: d}).Text(parts...)
}

// Text adds SQL as it stands.
func (w *StatementWriter) Text(parts ...string) *StatementWriter {
	for _, p := range parts {
		w.sql.WriteString(p)
	}
	return w
}

// Param adds the next parameter.
func (w *StatementWriter) Param(t Type) *StatementWriter {
	w.params = append(w.params, t)
	w.sql.WriteString(w.dialect.Placeholder(len(w.params)))
	return w
}

// Params adds the next parameters as a list.
func (w *StatementWriter) Params(list ...Type) *StatementWriter {
	for i, t := range list {
		if i > 0 {
			w.Text(", ")
		}
		w.Param(t)
	}
	return w
}

// End returns the statement; columns are those of the rows it returns.
func (w *StatementWriter) End(columns ...Type) *Statement {
	return &Statement{SQL: w.sql.String(), Params: w.params, Columns: columns}
}

package db

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
)

// Procedures is implemented by a database without sessions of SQL that runs stored procedures, which are defined from a
// text and called by name. One call is one transaction.
type Procedures interface {
	Database
	// Define makes a procedure, unless it is there.
	Define(ctx context.Context, p *Procedure) error

	// ProcedureSession opens a session.
	ProcedureSession(ctx context.Context, options SessionOptions) (ProcedureSession, error)
}

// ProcedureSession is one client of the Procedures model, used by one goroutine at a
// time. Its errors are *Error. If the class is Unknown or Unavailable the session must
// be Reset before anything else.
type ProcedureSession interface {
	// Call runs the procedure as one transaction. Only a nil error means that it is
	// committed. args are copied; the result is valid until the next Call. After an
	// error the transaction has ended.
	Call(ctx context.Context, procedure *Procedure, args []Value) (*Result, error)

	// Reset drops the connection and opens a new one, once: the caller backs off and
	// calls again.
	Reset(ctx context.Context) error

	Close() error
}

// Language is the language of the text of a stored procedure.
type Language string

// The languages that databases have in common.
const (
	PLpgSQL Language = "plpgsql" // its result comes from RETURNS TABLE or is one scalar
	PSM     Language = "sql/psm" // ISO/IEC 9075-4; the result has the rows of all its SELECTs without INTO
	// Library is the language of a procedure that the server loads from a library of its own. The text
	// has the statements that the library calls, one a line: a name, a space, and SQL in which :0 is
	// the first argument. A call with zeros changes nothing.
	Library Language = "library"
)

// Procedure is a stored procedure. It is made by NewProcedure once and never changed:
// a session may keep it prepared, keyed by its address.
type Procedure struct {
	Name    string
	Params  []Type
	Columns []Type // of the rows it returns
	Texts   map[Language]string
}

// NewProcedure returns a procedure. Its name is prefix and a digest of its texts. So another version of this program
// can use its own procedure at the same time. PROCEDURE_NAME in a text stands for the name.
func NewProcedure(prefix string, params, columns []Type, texts map[Language]string) *Procedure {
	digest := fnv.New32a()
	for _, language := range slices.Sorted(maps.Keys(texts)) {
		digest.Write([]byte(texts[language])) // which never fails
	}
	p := &Procedure{Name: fmt.Sprintf("%s_%08x", prefix, digest.Sum32()), Params: params, Columns: columns, Texts: map[Language]string{}}
	for language, text := range texts {
		p.Texts[language] = strings.ReplaceAll(text, "PROCEDURE_NAME", p.Name)
	}
	return p
}

// ReadProcedure is NewProcedure with the texts in the files NAME.plpgsql.sql and NAME.psm.sql. These files are
// templates (package text/template) of the dialect and of a variant of the procedure. They are part of the program, so
// ReadProcedure panics if it cannot read a file.
func ReadProcedure(files fs.FS, name, prefix string, d *Dialect, variant string, params, columns []Type) *Procedure {
	texts := map[Language]string{}
	for _, language := range []Language{PLpgSQL, PSM} {
		var text strings.Builder
		err := template.Must(template.ParseFS(files, fmt.Sprintf("%s.%s.sql", name, path.Base(string(language))))).Execute(&text, struct {
			*Dialect
			Variant string
		}{d, variant})
		if err != nil {
			panic(err)
		}
		texts[language] = strings.TrimSpace(text.String())
	}
	return NewProcedure(prefix, params, columns, texts)
}

// ProcedureText returns the text of a procedure in the language of the database. The error names the languages of the
// procedure if the database has none of them.
func (d *Dialect) ProcedureText(p *Procedure) (string, error) {
	if d.Procedures != nil && p.Texts[d.Procedures.Language] != "" {
		return p.Texts[d.Procedures.Language], nil
	}
	var names []string
	for _, language := range slices.Sorted(maps.Keys(p.Texts)) {
		names = append(names, string(language))
	}
	return "", fmt.Errorf("it needs stored procedures in %s, which this database does not have", strings.Join(names, " or "))
}

// DefineProcedure makes a procedure in a SQL database, unless it is there. The name of a procedure has a digest of its
// text, so a procedure with the same name is the same.
func DefineProcedure(ctx context.Context, d SQL, p *Procedure) error {
	text, err := d.Dialect().ProcedureText(p)
	if err == nil {
		err = d.Exec(ctx, text)
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Code != "" && e.Code == d.Dialect().Procedures.Exists {
		return nil
	}
	return err
}

// ProcedureDialect holds the syntax of stored procedures in a SQL database.
type ProcedureDialect struct {
	Language Language
	Call     string // before the name, such as "CALL "
	Exists   string // the code of the error that a procedure with this name exists; empty: the texts replace it
}

// SQLCaller calls stored procedures on a SQL session, whose other statements may run
// between the calls.
type SQLCaller struct {
	SQLSession
	dialect *Dialect
	calls   map[*Procedure]*Statement
}

// NewCaller returns a caller on a session of a database whose dialect has procedures.
func (d *Dialect) NewCaller(session SQLSession) *SQLCaller {
	return &SQLCaller{SQLSession: session, dialect: d, calls: map[*Procedure]*Statement{}}
}

func (c *SQLCaller) Call(ctx context.Context, procedure *Procedure, args []Value) (*Result, error) {
	statement := c.calls[procedure]
	if statement == nil {
		statement = c.dialect.Statement(c.dialect.Procedures.Call+procedure.Name+Row(procedure.Params...), procedure.Columns...)
		c.calls[procedure] = statement
	}
	if err := c.Begin(ctx, false); err != nil {
		return nil, err
	}
	result, err := c.Do(ctx, statement, args)
	if err != nil {
		return nil, err
	}
	if err := c.Commit(ctx); err != nil {
		return nil, err
	}
	return c.Result(result), nil
}

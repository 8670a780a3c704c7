package infinisql

import (
	"context"
	"errors"
	"path"
	"strconv"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// The administrator of all domains, and the user that makes the schema of a domain before
// anybody else can log in there.
const (
	globalDomain, globalUser = "_global", "admin"
	schemaUser               = "stroppy_schema"
)

// ensureDomain makes the domain with its schema and its user, unless the user can log in.
func (c *config) ensureDomain(ctx context.Context) error {
	a, err := c.login(ctx, c.domain, c.user)
	if err == nil {
		a.close()
		return nil
	}
	if !errors.Is(err, errRefused) {
		return err
	}
	return c.makeDomain(ctx, false)
}

// makeDomain makes the domain, which anew takes away before. The user comes last, because
// BEGIN in a domain without a schema ends the server.
func (c *config) makeDomain(ctx context.Context, anew bool) error {
	op := "make the domain " + c.domain + " on InfiniSQL at " + c.admin
	global, err := c.login(ctx, globalDomain, globalUser)
	if errors.Is(err, errRefused) {
		return db.Fatalf(op, "%s", wire.WrongUser.Text("the password is neither that of the user "+c.user+" nor that of the global administrator", ""))
	}
	if err != nil {
		return err
	}
	defer global.close()
	steps := [][]string{{"createdomain", c.domain}, {"createuser", c.domain, schemaUser, c.password}}
	if anew {
		steps = append([][]string{{"deletedomain", c.domain}}, steps...)
	}
	for _, step := range steps {
		if _, err := global.call(ctx, step[0], step[1:]...); err != nil {
			return refusedStep(op, step[0], err)
		}
	}
	schema, err := c.login(ctx, c.domain, schemaUser)
	if err != nil {
		return refusedStep(op, "login", err)
	}
	defer schema.close()
	if _, err := schema.call(ctx, "createschema"); err != nil {
		return refusedStep(op, "createschema", err)
	}
	_, err = global.call(ctx, "createuser", c.domain, c.user, c.password)
	return refusedStep(op, "createuser", err)
}

// refusedStep is the error of a step that the server refused, and any other as it is.
func refusedStep(op, step string, err error) error {
	if errors.Is(err, errRefused) {
		return db.Fatalf(op, "%s: %w", step, err)
	}
	return err
}

// Exists implements db.TableStore.
func (d *Database) Exists(ctx context.Context, t *db.Table) (there bool, err error) {
	s, err := d.session(ctx, "")
	if err != nil {
		return false, err
	}
	defer s.Close()
	key := t.Columns[0]
	find := &db.Statement{SQL: "SELECT " + key.Name + " FROM " + t.Name + " WHERE " + key.Name + " = $1", Params: []db.Type{key.Type}, Columns: []db.Type{key.Type}}
	err = s.Query(ctx, find, []db.Value{{}}, func([]db.Value) error { return nil })
	var e *db.Error
	if errors.As(err, &e) && e.Code == "42704" {
		return false, nil
	}
	return err == nil, err
}

// MakeTables implements db.TableStore. Where one of them is there already, the domain is made
// anew: InfiniSQL drops no table.
func (d *Database) MakeTables(ctx context.Context, tables ...*db.Table) error {
	for _, t := range tables {
		there, err := d.Exists(ctx, t)
		if err != nil {
			return err
		}
		if there {
			if err := d.config.makeDomain(ctx, true); err != nil {
				return err
			}
			break
		}
	}
	a, err := d.config.login(ctx, d.config.domain, d.config.user)
	if err != nil {
		return refusedStep("make tables on InfiniSQL", "login", err)
	}
	defer a.close()
	for _, t := range tables {
		if err := a.makeTable(ctx, t); err != nil {
			return refusedStep("make the table "+t.Name+" on InfiniSQL", "createtable", err)
		}
	}
	return nil
}

// makeTable makes a table, whose number the server returns, and its columns.
func (a *admin) makeTable(ctx context.Context, t *db.Table) error {
	said, err := a.call(ctx, "createtable", t.Name)
	if err != nil {
		return err
	}
	if len(said) != 1 {
		return db.Fatalf("make the table "+t.Name+" on InfiniSQL", "the server returned %d numbers of the table, and it has one", len(said))
	}
	for i, c := range t.Columns {
		kind, index := "int", "none"
		if c.Type == db.Text {
			kind = "charx"
		}
		if i == 0 {
			index = "uniquenotnull"
		}
		if _, err := a.call(ctx, "addcolumn", said[0], kind, strconv.Itoa(c.Length), c.Name, index); err != nil {
			return err
		}
	}
	return nil
}

// Define implements db.TableStore: unless the procedure can be called already, it compiles the
// statements and loads the library that has it, NAMEProc.so.
func (d *Database) Define(ctx context.Context, p *db.OwnProcedure) error {
	op := "load the procedure " + p.Name + " into InfiniSQL"
	s, err := d.session(ctx, "")
	if err != nil {
		return err
	}
	defer s.Close()
	zeros := make([]db.Value, len(p.Params))
	if _, err := s.Call(ctx, p, zeros); db.ClassOf(err) != db.Aborted || err == nil {
		return err
	}
	if d.config.procedures == "" {
		return db.Fatalf(op, "name the folder on the server that has %s by procedures=FOLDER in the URL", library(p))
	}
	file := path.Join(d.config.procedures, library(p))
	if err := d.load(ctx, op, file, p); err != nil {
		return err
	}
	// The server answers before it has loaded the library, and says nothing of one that it
	// cannot load.
	for limit := time.Now().Add(loadLimit); ; time.Sleep(10 * time.Millisecond) {
		_, err := s.Call(ctx, p, zeros)
		switch {
		case err == nil || db.ClassOf(err) != db.Aborted:
			return err
		case time.Now().After(limit):
			return db.Fatalf(op, "the server cannot load %s: check the folder, and whether the library was made for the domain %s, and load the data anew", file, d.config.domain)
		}
	}
}

// load compiles the statements of a procedure and has its library loaded.
func (d *Database) load(ctx context.Context, op, file string, p *db.OwnProcedure) error {
	a, err := d.config.login(ctx, d.config.domain, d.config.user)
	if err != nil {
		return refusedStep(op, "login", err)
	}
	defer a.close()
	for _, s := range p.Statements {
		if _, err := a.call(ctx, "compile", s[0], s[1]); err != nil {
			return refusedStep(op, "compile "+s[0], err)
		}
	}
	_, err = a.call(ctx, "loadprocedure", file, p.Name)
	return refusedStep(op, "loadprocedure", err)
}

// loadLimit bounds the wait for a library.
const loadLimit = 3 * time.Second

func library(p *db.OwnProcedure) string { return p.Name + "Proc.so" }

// calling is the statement that calls a procedure.
func calling(p *db.OwnProcedure) *db.Statement {
	return dialect.Statement("SELECT "+p.Name+" "+db.Row(p.Params...), p.Columns...)
}

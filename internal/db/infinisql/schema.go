package infinisql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// The administrator of all domains, and the user that makes the schema of a domain before any other user can log in
// there.
const (
	globalDomain, globalUser = "_global", "admin"
	schemaUser               = "stroppy_schema"
)

// ensureDomain makes the domain with its schema and its user, unless the user can log in.
func (c *config) ensureDomain(ctx context.Context) error {
	a, err := c.login(ctx, "make the domain "+c.domain, c.domain, c.user)
	if errors.Is(err, errRefused) {
		return c.makeDomain(ctx, false)
	}
	if err == nil {
		a.close()
	}
	return err
}

// makeDomain makes the domain. With anew it removes the domain first. It makes the user last, because BEGIN in a domain
// without a schema ends the server.
func (c *config) makeDomain(ctx context.Context, anew bool) error {
	op := "make the domain " + c.domain + " on InfiniSQL at " + c.admin
	global, err := c.login(ctx, op, globalDomain, globalUser)
	if errors.Is(err, errRefused) {
		return db.Fatalf(op, "%s", wire.WrongUser.Text("neither the user "+c.user+" nor the global administrator has this password", ""))
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
			return err
		}
	}
	schema, err := c.login(ctx, op, c.domain, schemaUser)
	if err != nil {
		return err
	}
	defer schema.close()
	if _, err := schema.call(ctx, "createschema"); err != nil {
		return err
	}
	_, err = global.call(ctx, "createuser", c.domain, c.user, c.password)
	return err
}

// The lengths of the text columns: of an id or a field, and of a list.
const (
	textLength = 32
	listLength = 160
)

// column is a column of the table of a collection.
type column struct {
	name   string
	kind   db.Type
	length int
}

// columnsOf returns the columns of the table of a collection. A list is one column.
func columnsOf(c *db.Collection) []column {
	list := []column{{"id", c.ID, cmp.Or(c.Length, textLength)}}
	for _, f := range c.Fields {
		list = append(list, column{columnName(f), f.Type, textLength})
	}
	if c.List != "" {
		list = append(list, column{c.List, db.Text, listLength})
	}
	return list
}

// columnName returns the name of the column of a field. The name VALUE is too similar to a keyword of SQL.
func columnName(f db.Field) string {
	if f.Name == "value" {
		return "content"
	}
	return f.Name
}

// Exists implements db.Records.
func (d *Database) Exists(ctx context.Context, c *db.Collection) (there bool, err error) {
	s, err := d.session(ctx, "")
	if err != nil {
		return false, err
	}
	defer s.Close()
	err = s.find(ctx, c, db.Value{}, func([]db.Value) error { return nil })
	if e, ok := errors.AsType[*db.Error](err); ok && e.Code == "42704" {
		return false, nil
	}
	return err == nil, err
}

// Drop implements db.Records. It creates the domain anew, without any collection, because InfiniSQL drops no table.
func (d *Database) Drop(ctx context.Context, c *db.Collection) error {
	if there, err := d.Exists(ctx, c); err != nil || !there {
		return err
	}
	return d.config.makeDomain(ctx, true)
}

// Create implements db.Records.
func (d *Database) Create(ctx context.Context, c *db.Collection) error {
	if there, err := d.Exists(ctx, c); err != nil || there {
		return err
	}
	a, err := d.config.login(ctx, "make the table "+c.Name+" on InfiniSQL", d.config.domain, d.config.user)
	if err != nil {
		return err
	}
	defer a.close()
	return a.makeTable(ctx, c)
}

// makeTable makes a table and its columns. The server returns the table's number.
func (a *admin) makeTable(ctx context.Context, c *db.Collection) error {
	said, err := a.call(ctx, "createtable", c.Name)
	if err != nil {
		return err
	}
	if len(said) != 1 {
		return db.Fatalf(a.op, "the server returned %d numbers of the table instead of one", len(said))
	}
	for i, c := range columnsOf(c) {
		kind, index, length := "int", "none", 0
		if c.kind == db.Text {
			kind, length = "charx", c.length
		}
		if i == 0 {
			index = "uniquenotnull"
		}
		if _, err := a.call(ctx, "addcolumn", said[0], kind, strconv.Itoa(length), c.name, index); err != nil {
			return err
		}
	}
	return nil
}

// Define implements db.Procedures. Unless the procedure can be called already, Define compiles its
// statements and loads its library, NAMEProc.so.
func (d *Database) Define(ctx context.Context, p *db.Procedure) error {
	op, library := "load the procedure "+p.Name+" into InfiniSQL", p.Name+"Proc.so"
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
		return db.Fatalf(op, "name the folder on the server that has %s by procedures=FOLDER in the URL", library)
	}
	file := path.Join(d.config.procedures, library)
	if err := d.load(ctx, op, file, p); err != nil {
		return err
	}
	// The server answers before it has loaded the library. It reports no error of the library.
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
func (d *Database) load(ctx context.Context, op, file string, p *db.Procedure) error {
	a, err := d.config.login(ctx, op, d.config.domain, d.config.user)
	if err != nil {
		return err
	}
	defer a.close()
	for line := range strings.Lines(p.Texts[db.Library]) {
		name, statement, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := a.call(ctx, "compile", name, statement); err != nil {
			return fmt.Errorf("the statement %s: %w", name, err)
		}
	}
	_, err = a.call(ctx, "loadprocedure", file, p.Name)
	return err
}

// loadLimit bounds the wait for a library.
const loadLimit = 3 * time.Second

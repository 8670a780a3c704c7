package voltdb

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/db"
)

// kind is the kind of a step of a call.
type kind uint8

// The kinds of steps. Each is one statement, or a few.
const (
	find      kind = iota + 1 // a record, with its list
	findAll                   // several records
	scan                      // records from an id on
	scanEmpty                 // the records without a list from one id to another
	guard                     // fails unless a record is as it was read
	look                      // a record before it is changed, which fails unless it may be changed
	change                    // changes a record
	put                       // writes a record, whatever is there
	add                       // inserts a record
)

var kindNames = [...]string{
	find: "find", findAll: "find_all", scan: "scan", scanEmpty: "scan_empty", guard: "guard", look: "look", change: "change", put: "put", add: "add",
}

// step is a part of a call. Calls with equal steps use the same procedure.
type step struct {
	kind  kind
	c     *db.Collection
	u     *db.Update
	nulls uint64 // guard: the fields that are compared with NULL
	items int    // add: how many records the list has
}

// shape is shared by all calls with equal steps. It is a procedure. For collections that are not declared, it is a list
// of statements with the arguments in their text.
type shape struct {
	steps      []step
	alone      bool
	types      []db.Type
	name       string // empty: statements
	create     string
	statements string
}

// mostWrites bounds the records of one call. Each record takes two statements of a procedure.
const mostWrites = 200

// listOf in a type is a list of all arguments.
const listOf db.Type = 1 << 6

// plan begins a call.
func (s *recordSession) plan() {
	s.steps, s.args, s.alone = s.steps[:0], s.args[:0], true
}

// step adds a step. id names the partition of the step; nil: all partitions.
func (s *recordSession) step(of step, id *db.Value) {
	s.steps = append(s.steps, of)
	if id == nil {
		s.alone = false
		return
	}
	at := partition(of.c, id)
	if len(s.steps) == 1 {
		s.home = at
	}
	s.alone = s.alone && at.Int == s.home.Int && string(at.Text) == string(s.home.Text)
}

// partition returns the value that the partition of a record depends on.
func partition(c *db.Collection, id *db.Value) db.Value {
	if c.Group > 0 {
		n, _ := strconv.ParseInt(string(id.Text[:min(c.Group, len(id.Text))]), 16, 64) // 0 of an id of another form
		return db.Value{Int: n}
	}
	return *id
}

// key adds the arguments for the key of a record.
func (s *recordSession) key(c *db.Collection, id *db.Value) {
	if c.Group > 0 {
		s.args = append(s.args, partition(c, id))
	}
	s.args = append(s.args, *id)
}

// compare adds the step that compares a record with its values when it was read.
func (s *recordSession) compare(h *held) {
	of := step{kind: guard, c: h.c}
	found := db.Value{}
	if h.there && len(h.now) == h.c.Width() { // a record with a list is its items
		found.Int = 1
	}
	s.args = append(s.args, found)
	s.key(h.c, &h.was[db.ID])
	s.args = append(s.args, found)
	for i, f := range h.c.Fields {
		switch {
		case !h.there && f.Type == db.Text:
			s.args = append(s.args, db.Value{Text: []byte{}})
		case !h.there:
			s.args = append(s.args, db.Value{})
		case h.was[1+i].Null:
			of.nulls |= 1 << i
		default:
			s.args = append(s.args, h.was[1+i])
		}
	}
	s.step(of, &h.was[db.ID])
	if h.c.List != "" {
		s.alone = false
		items := db.Value{}
		if h.there {
			items.Int = int64(len(h.now)-1) / int64(len(h.c.Items))
		}
		s.args = append(s.args, items, h.was[db.ID])
	}
}

// look adds the step that reads a record before it is changed unseen.
func (s *recordSession) look(l *late) {
	args := l.args
	if l.u.AtLeast != 0 {
		s.args = append(s.args, args[0])
		args = args[1:]
	}
	for i, field := range l.u.Add {
		if l.u.Collection.Fields[field-1].NonNegative {
			s.args = append(s.args, args[i])
		}
	}
	s.key(l.u.Collection, &l.id)
	s.step(step{kind: look, c: l.u.Collection, u: l.u}, &l.id)
}

// put adds the step that writes a record.
func (s *recordSession) put(c *db.Collection, values []db.Value) {
	s.step(step{kind: put, c: c}, &values[db.ID])
	if c.Group > 0 {
		s.args = append(s.args, partition(c, &values[db.ID]))
	}
	s.args = append(s.args, values...)
}

// insert adds the step that inserts a record, with its list.
func (s *recordSession) insert(in *insert) {
	c, id := in.c, &in.values[db.ID]
	of := step{kind: add, c: c}
	if c.List != "" {
		of.items = (len(in.values) - c.Width()) / len(c.Items)
	}
	s.step(of, id)
	if c.List != "" {
		s.alone = false // each item is in the partition of the record that it names
	}
	if of.items == 0 {
		if c.Group > 0 {
			s.args = append(s.args, partition(c, id))
		}
		if s.args = append(s.args, in.values...); c.List != "" {
			s.args = append(s.args, *id)
		}
		return
	}
	for n := range of.items {
		item := in.values[1+n*len(c.Items):][:len(c.Items)]
		s.args = append(append(s.args, *id), item[1:len(item)-1]...)
		if n == 0 {
			s.args = append(s.args, *id)
		}
		s.args = append(s.args, item[0])
	}
}

// ask makes the planned call. A rehearsal gets an answer without tables.
func (s *recordSession) ask(ctx context.Context) (answer, error) {
	of, err := s.shape(ctx)
	if err != nil || s.rehearsal {
		return answer{}, err
	}
	s.calls++
	if of.name == "" {
		return s.session.ask(ctx, "@AdHoc", []db.Type{db.Text}, []db.Value{{Text: []byte(of.literal(s.args))}})
	}
	a, err := s.session.ask(ctx, of.name, of.types, s.args)
	if err != nil && strings.Contains(err.Error(), absentProcedure) { // its cluster was lost, or its collections were dropped
		s.shapes = s.shapes[:0]
		s.db.forget()
	}
	return a, err
}

// shape returns the shape of the steps. Its procedure exists.
func (s *recordSession) shape(ctx context.Context) (*shape, error) {
	for i, known := range s.shapes {
		if known.alone == s.alone && slices.Equal(known.steps, s.steps) {
			if i > 0 { // so that the frequent ones come first
				s.shapes[i-1], s.shapes[i] = known, s.shapes[i-1]
			}
			return known, nil
		}
	}
	made := s.db.shape(slices.Clone(s.steps), s.alone)
	if !s.rehearsal {
		if err := s.db.define(ctx, made); err != nil {
			return nil, err
		}
	}
	s.shapes = append(s.shapes, made)
	return made, nil
}

// shape makes a shape from steps.
func (d *Database) shape(steps []step, alone bool) *shape {
	var list statements
	list.home = -1
	declared := true
	for _, of := range steps {
		list.add(of)
		declared = declared && d.isDeclared(of.c)
	}
	s := &shape{steps: steps, alone: alone, types: list.types}
	body := strings.Join(list.texts, "; ")
	if !declared {
		s.statements = body
		return s
	}
	first := steps[0].c
	text := "CREATE PROCEDURE PROCEDURE_NAME"
	if alone {
		text += fmt.Sprintf(" PARTITION ON TABLE %s COLUMN %s PARAMETER %d", first.Name, keys(first)[0], list.home)
	}
	if len(list.texts) > 1 {
		body = "BEGIN " + body + "; END"
	}
	text += " AS " + body
	digest := fnv.New64a()
	digest.Write([]byte(text)) // never fails
	s.name = fmt.Sprintf("%s%s%016x", procedurePrefix(first), summary(steps), digest.Sum64())
	s.create = strings.Replace(text, "PROCEDURE_NAME", s.name, 1)
	return s
}

// procedurePrefix returns the beginning of the names of the procedures whose first step is on a collection. The kinds
// of steps and a digest of the text follow. So a procedure of another version of this program never has the same name.
func procedurePrefix(c *db.Collection) string { return strings.ToLower(c.Name) + "_p_" }

// summary returns the number of steps of each kind, such as look2_change2_add1_.
func summary(steps []step) (text string) {
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[n].kind == steps[0].kind {
			n++
		}
		text += fmt.Sprintf("%s%d_", kindNames[steps[0].kind], n)
		steps = steps[n:]
	}
	return text
}

// literal returns the statements with the arguments in place of their parameters.
func (s *shape) literal(args []db.Value) string {
	var b strings.Builder
	write := func(v *db.Value, of db.Type) {
		switch {
		case v.Null:
			b.WriteString("NULL")
		case of == db.Text:
			b.WriteString("'" + strings.ReplaceAll(string(v.Text), "'", "''") + "'")
		case of == db.Decimal:
			whole, cents := v.Int/100, v.Int%100
			fmt.Fprintf(&b, "%d.%02d", whole, max(cents, -cents)) // no collection that is not declared has such a field
		default:
			b.WriteString(strconv.FormatInt(v.Int, 10))
		}
	}
	n := 0
	for i := range len(s.statements) {
		switch {
		case s.statements[i] != '?':
			b.WriteByte(s.statements[i])
		case s.types[n]&listOf != 0:
			b.WriteByte('(')
			for j := range args {
				if j > 0 {
					b.WriteByte(',')
				}
				write(&args[j], s.types[n]&^listOf)
			}
			b.WriteByte(')')
		default:
			write(&args[n], s.types[n])
			n++
		}
	}
	return b.String()
}

// statements are the texts of steps and the types of their parameters. The types are in the order in which the session
// adds the arguments.
type statements struct {
	texts []string
	types []db.Type
	home  int // the parameter of the first step's partition
}

// columnTypes are the types of VoltDB.
var columnTypes = map[db.Type]string{db.Integer: "BIGINT", db.Decimal: "DECIMAL", db.Text: "VARCHAR"}

// keys returns the columns of the primary key.
func keys(c *db.Collection) []string {
	if c.Group > 0 {
		return []string{"part", "id"}
	}
	return []string{"id"}
}

func namesOf(fields []db.Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// listTable returns the name of the table with the lists of a collection.
func listTable(c *db.Collection) string { return c.Name + "_" + c.List }

// key adds the parameters for the key of a record.
func (l *statements) key(c *db.Collection) {
	if l.home < 0 {
		l.home = len(l.types)
	}
	if c.Group > 0 {
		l.types = append(l.types, db.Integer)
	}
	l.types = append(l.types, c.ID)
}

// where returns the condition for a record, whose key is a parameter.
func (l *statements) where(c *db.Collection) string {
	l.key(c)
	return strings.Join(keys(c), " = ? AND ") + " = ?"
}

// cast returns a parameter of a type.
func (l *statements) cast(of db.Type) string {
	l.types = append(l.types, of)
	return "CAST(? AS " + columnTypes[of] + ")"
}

// insert returns a statement that writes a record. All values are parameters.
func (l *statements) insert(verb string, c *db.Collection) string {
	l.key(c)
	for _, f := range c.Fields {
		l.types = append(l.types, f.Type)
	}
	names := append(keys(c), namesOf(c.Fields)...)
	return fmt.Sprintf("%s INTO %s (%s) VALUES (?%s)", verb, c.Name, strings.Join(names, ", "), strings.Repeat(", ?", len(names)-1))
}

func (l *statements) add(of step) {
	c := of.c
	text := func(format string, args ...any) { l.texts = append(l.texts, fmt.Sprintf(format, args...)) }
	all := strings.Join(append([]string{"id"}, namesOf(c.Fields)...), ", ")
	switch of.kind {
	case find:
		columns := cmp.Or(strings.Join(namesOf(c.Fields), ", "), "id")
		text("SELECT %s FROM %s WHERE %s", columns, c.Name, l.where(c))
		if c.List != "" {
			l.types = append(l.types, c.ID)
			text("SELECT %s FROM %s WHERE id = ? ORDER BY n", strings.Join(namesOf(c.Items), ", "), listTable(c))
		}
	case findAll:
		l.types = append(l.types, c.ID|listOf)
		text("SELECT %s FROM %s WHERE id IN ?", all, c.Name)
	case scan:
		condition := "id >= ?"
		if c.Group > 0 {
			l.types = append(l.types, db.Integer)
			condition = "part >= ? AND id >= ?" // the number is the beginning of the id
		}
		l.types = append(l.types, c.ID, db.Integer)
		if c.List != "" {
			text("SELECT id, %s FROM %s WHERE id >= ? ORDER BY id, n LIMIT ?", strings.Join(namesOf(c.Items), ", "), listTable(c))
			return
		}
		text("SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT ?", all, c.Name, condition, strings.Join(keys(c), ", "))
	case scanEmpty:
		l.types = append(l.types, c.ID, c.ID)
		text("SELECT id FROM %s WHERE id >= ? AND id <= ? ORDER BY id", c.Name)
	case guard:
		l.guard(of)
	case look:
		l.look(of)
	case change:
		l.change(of)
	case put:
		text("%s", l.insert("UPSERT", c))
	case add:
		if of.items == 0 {
			text("%s", l.insert("INSERT", c))
			if c.List != "" {
				l.types = append(l.types, c.ID)
				text("SELECT %d / CASE WHEN COUNT(*) = 0 THEN 1 ELSE 0 END FROM %s WHERE id = ?", taken, listTable(c))
			}
		}
		for n := range of.items {
			l.item(c, n)
		}
	}
}

// These numbers are divided by 0 if a record has changed since it was read, and if an id is taken.
const changed, taken = 2, 3

func (l *statements) guard(of step) {
	count := l.cast(db.Integer)
	where := l.where(of.c)
	same := l.cast(db.Integer) + " = 0"
	var equal []string
	for i, f := range of.c.Fields {
		if of.nulls&(1<<i) != 0 {
			equal = append(equal, f.Name+" IS NULL")
			continue
		}
		l.types = append(l.types, f.Type)
		equal = append(equal, f.Name+" = ?")
	}
	if len(equal) > 0 {
		where += " AND (" + same + " OR (" + strings.Join(equal, " AND ") + "))"
	} else {
		where += " AND " + strings.Replace(same, "= 0", ">= 0", 1)
	}
	l.texts = append(l.texts, fmt.Sprintf("SELECT %d / CASE WHEN COUNT(*) = %s THEN 1 ELSE 0 END FROM %s WHERE %s", changed, count, of.c.Name, where))
	if of.c.List != "" {
		items := l.cast(db.Integer)
		l.types = append(l.types, of.c.ID)
		l.texts = append(l.texts, fmt.Sprintf("SELECT %d / CASE WHEN COUNT(*) = %s THEN 1 ELSE 0 END FROM %s WHERE id = ?", changed, items, listTable(of.c)))
	}
}

func (l *statements) look(of step) {
	c := of.c
	var columns, broken []string
	for _, name := range namesOf(c.Fields) {
		columns = append(columns, "MAX("+name+")")
	}
	if least := of.u.AtLeast; least != 0 {
		broken = append(broken, columns[least-1]+" < "+l.cast(c.Fields[least-1].Type))
	}
	for _, field := range of.u.Add {
		if f := c.Fields[field-1]; f.NonNegative {
			broken = append(broken, columns[field-1]+" + "+l.cast(f.Type)+" < 0")
		}
	}
	if of.u.Arguments() > 0 {
		columns = append(columns, "1 / COUNT(*)")
	}
	if len(broken) > 0 {
		columns = append(columns, "9223372036854775807 + CASE WHEN "+strings.Join(broken, " OR ")+" THEN 1 ELSE 0 END")
	}
	l.texts = append(l.texts, fmt.Sprintf("SELECT %s FROM %s WHERE %s", strings.Join(columns, ", "), c.Name, l.where(c)))
}

func (l *statements) change(of step) {
	var sets []string
	for _, field := range of.u.Add {
		f := of.c.Fields[field-1]
		sets = append(sets, f.Name+" = "+f.Name+" + "+l.cast(f.Type))
	}
	for _, field := range of.u.Append {
		name := of.c.Fields[field-1].Name
		sets = append(sets, name+" = "+name+" || "+l.cast(db.Text))
	}
	for _, field := range of.u.Set {
		f := of.c.Fields[field-1]
		l.types = append(l.types, f.Type)
		sets = append(sets, f.Name+" = ?")
	}
	l.texts = append(l.texts, fmt.Sprintf("UPDATE %s SET %s WHERE %s", of.c.Name, strings.Join(sets, ", "), l.where(of.c)))
}

// item inserts record n of a list into the partition of the record that it names, because the copied field can be read
// only there. A record with a list is stored as its items alone. Each partition has the records without a list, and the
// first item must find none of them with its id.
func (l *statements) item(c *db.Collection, n int) {
	of, id := c.From.Name, l.cast(c.ID)
	values, from := []string{id, strconv.Itoa(n), of + ".id"}, of
	if n == 0 {
		values[1] = fmt.Sprintf("%d / CASE WHEN %s.id IS NULL THEN %[1]d ELSE 0 END - 1", taken, c.Name)
	}
	for _, f := range c.Items[1 : len(c.Items)-1] {
		values = append(values, l.cast(f.Type))
	}
	if n == 0 {
		from += " LEFT JOIN " + c.Name + " ON " + c.Name + ".id = ?"
		l.types = append(l.types, c.ID)
	}
	values = append(values, of+"."+c.From.Fields[c.Copied-1].Name)
	l.types = append(l.types, c.Items[0].Type)
	l.texts = append(l.texts, fmt.Sprintf("INSERT INTO %s (id, n, %s) SELECT %s FROM %s WHERE %s.id = ?",
		listTable(c), strings.Join(namesOf(c.Items), ", "), strings.Join(values, ", "), from, of))
}

// column returns the definition of a column.
func column(name string, of db.Type, bytes int) string {
	if of == db.Text {
		return fmt.Sprintf("%s VARCHAR(%d BYTES)", name, bytes)
	}
	return name + " " + columnTypes[of]
}

// idLength returns the most bytes of an id. The row itself holds up to 63 bytes.
func idLength(c *db.Collection) int { return cmp.Or(c.Length, 1024) }

// createTable returns the statements that make a collection. A collection that is not declared is small, and each
// partition has a copy of it.
func createTable(c *db.Collection, parted bool) (list []string) {
	table := func(name, key, home string, columns []string) {
		list = append(list, fmt.Sprintf("CREATE TABLE %s (%s, PRIMARY KEY (%s))", name, strings.Join(columns, ", "), key))
		if home != "" {
			list = append(list, fmt.Sprintf("PARTITION TABLE %s ON COLUMN %s", name, home))
		}
	}
	columns, home := []string{column("id", c.ID, idLength(c)) + " NOT NULL"}, ""
	if c.Group > 0 {
		columns = append(columns, "part BIGINT NOT NULL")
	}
	for _, f := range c.Fields {
		columns = append(columns, column(f.Name, f.Type, mostText))
	}
	if parted && c.List == "" {
		home = keys(c)[0]
	}
	table(c.Name, strings.Join(keys(c), ", "), home, columns)
	if c.List == "" {
		return list
	}
	home = c.Items[0].Name
	columns = []string{column("id", c.ID, idLength(c)) + " NOT NULL", "n BIGINT NOT NULL", column(home, c.From.ID, idLength(c.From)) + " NOT NULL"}
	for _, f := range c.Items[1:] {
		columns = append(columns, column(f.Name, f.Type, mostText))
	}
	table(listTable(c), "id, n, "+home, home, columns)
	return list
}

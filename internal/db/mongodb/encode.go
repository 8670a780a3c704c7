package mongodb

import (
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"stroppy/internal/db"
)

// command builds one command in a buffer that is reused.
type command struct{ b []byte }

// MarshalBSON implements bson.Marshaler. The library sends the command unchanged.
func (c *command) MarshalBSON() ([]byte, error) { return c.b, nil }

const idName = "_id"

func (c *command) begin(name, value string) {
	_, c.b = bsoncore.AppendDocumentStart(c.b[:0])
	c.b = bsoncore.AppendStringElement(c.b, name, value)
}

func (c *command) open(name string) (at int32) {
	at, c.b = bsoncore.AppendDocumentElementStart(c.b, name)
	return at
}

func (c *command) openArray(name string) (at int32) {
	at, c.b = bsoncore.AppendArrayElementStart(c.b, name)
	return at
}

// end ends the document or array that begins at a position; the command begins at 0.
func (c *command) end(at int32) {
	c.b = append(c.b, 0)
	c.b = bsoncore.UpdateLength(c.b, at, int32(len(c.b))-at)
}

func (c *command) int(name string, n int) { c.b = bsoncore.AppendInt32Element(c.b, name, int32(n)) }

func (c *command) text(name, value string) { c.b = bsoncore.AppendStringElement(c.b, name, value) }

// value appends a value of a type, without converting text to a string.
func (c *command) value(name string, t db.Type, v db.Value) {
	switch {
	case v.Null:
		c.b = bsoncore.AppendNullElement(c.b, name)
	case t == db.Integer:
		c.b = bsoncore.AppendInt64Element(c.b, name, v.Int)
	case t == db.Decimal:
		high, low := decimalOf(v.Int)
		c.b = bsoncore.AppendDecimal128Element(c.b, name, high, low)
	default:
		c.b = bsoncore.AppendHeader(c.b, bsoncore.TypeString, name)
		c.b = append(append(appendInt32(c.b, len(v.Text)+1), v.Text...), 0)
	}
}

func appendInt32(b []byte, n int) []byte {
	return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
}

// numbers are the names of an array's first elements.
var numbers = func() (names [1024]string) {
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}()

func number(i int) string {
	if i < len(numbers) {
		return numbers[i]
	}
	return strconv.Itoa(i)
}

// field returns the field for an index of a document's values.
func field(c *db.Collection, place int) db.Field {
	if place == db.ID {
		return db.Field{Name: idName, Type: c.ID}
	}
	return c.Fields[place-1]
}

// document appends a document with its values. Null fields are omitted.
func (c *command) document(name string, of *db.Collection, values []db.Value) error {
	width := of.Width()
	if len(values) < width || (len(values)-width)%max(len(of.Items), 1) != 0 {
		return fmt.Errorf("a document of %s has %d values", of.Name, len(values))
	}
	at := c.open(name)
	c.fields(idName, of.ID, of.Fields, values[:width])
	if of.List != "" {
		list := c.openArray(of.List)
		for i, rest := 0, values[width:]; len(rest) > 0; i, rest = i+1, rest[len(of.Items):] {
			item := c.open(number(i))
			c.fields("", 0, of.Items, rest[:len(of.Items)])
			c.end(item)
		}
		c.end(list)
	}
	c.end(at)
	return nil
}

// fields appends fields with their values, the id first if there is one.
func (c *command) fields(id string, t db.Type, fields []db.Field, values []db.Value) {
	if id != "" {
		c.value(id, t, values[db.ID])
		values = values[1:]
	}
	for i := range fields {
		if !values[i].Null {
			c.value(fields[i].Name, fields[i].Type, values[i])
		}
	}
}

// find builds a find of the documents with these ids, all in one answer.
func (c *command) find(of *db.Collection, ids []db.Value) {
	c.begin("find", of.Name)
	filter := c.open("filter")
	if len(ids) == 1 {
		c.value(idName, of.ID, ids[0])
	} else {
		id := c.open(idName)
		in := c.openArray("$in")
		for i := range ids {
			c.value(number(i), of.ID, ids[i])
		}
		c.end(in)
		c.end(id)
	}
	c.end(filter)
	c.int("batchSize", len(ids)+1)
	c.end(0)
}

func (c *command) insert(into *db.Collection, documents [][]db.Value) error {
	c.begin("insert", into.Name)
	list := c.openArray("documents")
	for i, values := range documents {
		if err := c.document(number(i), into, values); err != nil {
			return err
		}
	}
	c.end(list)
	c.end(0)
	return nil
}

// update builds an update of several documents, whose arguments follow each other.
func (c *command) update(u *db.Update, ids, args []db.Value) {
	c.begin("update", u.Collection.Name)
	list, each := c.openArray("updates"), u.Arguments()
	for i, id := range ids {
		at := c.open(number(i))
		c.change("q", "u", u, id, args[i*each:(i+1)*each])
		c.end(at)
	}
	c.end(list)
	c.end(0)
}

func (c *command) findAndUpdate(u *db.Update, id db.Value, args []db.Value) {
	c.begin("findAndModify", u.Collection.Name)
	c.change("query", "update", u, id, args)
	c.end(0)
}

// change appends the changed document's id and the change.
func (c *command) change(query, update string, u *db.Update, id db.Value, args []db.Value) {
	at := c.open(query)
	c.value(idName, u.Collection.ID, id)
	if u.AtLeast != 0 {
		f := field(u.Collection, u.AtLeast)
		least := c.open(f.Name)
		c.value("$gte", f.Type, args[0])
		c.end(least)
		args = args[1:]
	}
	c.end(at)
	at = c.open(update)
	c.assign("$inc", u, u.Add, args)
	c.assign("$set", u, u.Set, args[len(u.Add):])
	c.end(at)
}

func (c *command) assign(operator string, u *db.Update, places []int, args []db.Value) {
	if len(places) == 0 {
		return
	}
	at := c.open(operator)
	for i, place := range places {
		f := field(u.Collection, place)
		c.value(f.Name, f.Type, args[i])
	}
	c.end(at)
}

// concerned adds a read concern to a complete command, and the server time that it must have reached; nil: none.
func (c *command) concerned(level string, after *bson.Timestamp) {
	c.b = c.b[:len(c.b)-1] // without its end
	at := c.open("readConcern")
	c.text("level", level)
	if after != nil {
		c.b = bsoncore.AppendTimestampElement(c.b, "afterClusterTime", after.T, after.I)
	}
	c.end(at)
	c.end(0)
}

// delete builds a removal of the documents with these ids.
func (c *command) delete(of *db.Collection, ids []db.Value) {
	c.begin("delete", of.Name)
	list := c.openArray("deletes")
	for i := range ids {
		at := c.open(number(i))
		q := c.open("q")
		c.value(idName, of.ID, ids[i])
		c.end(q)
		c.int("limit", 1)
		c.end(at)
	}
	c.end(list)
	c.end(0)
}

// filter builds the condition of a scan. A Null bound of the ids does not limit it.
func (c *command) filter(of *db.Collection, r db.RecordRange) {
	_, c.b = bsoncore.AppendDocumentStart(c.b[:0])
	if !r.From.Null || !r.To.Null {
		at := c.open(idName)
		if !r.From.Null {
			c.value("$gte", of.ID, r.From)
		}
		if !r.To.Null {
			c.value("$lt", of.ID, r.To)
		}
		c.end(at)
	}
	if r.Field != 0 {
		f := field(of, r.Field)
		at := c.open(f.Name)
		c.value("$lt", f.Type, r.Below)
		c.end(at)
	}
	c.end(0)
}

// sortByID is {_id: 1}.
var sortByID = bson.D{{Key: idName, Value: 1}}

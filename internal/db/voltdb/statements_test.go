package voltdb

import (
	"context"
	"strings"
	"testing"

	"stroppy/internal/db"
)

// TestCallHasArgumentForEachParameter checks that a call has an argument for each parameter, and that a call for
// one record names its partition.
func TestCallHasArgumentForEachParameter(t *testing.T) {
	objects := &db.Collection{Name: "objects", ID: db.Text, Fields: []db.Field{
		{Name: "balance", Type: db.Decimal, NonNegative: true}, {Name: "version", Type: db.Integer}, {Name: "note", Type: db.Text},
	}}
	entries := &db.Collection{Name: "entries", ID: db.Integer, List: "legs", From: objects, Copied: 2, Items: []db.Field{
		{Name: "object", Type: db.Text}, {Name: "amount", Type: db.Decimal}, {Name: "version", Type: db.Integer},
	}}
	streams := &db.Collection{Name: "streams", ID: db.Integer, Fields: []db.Field{{Name: "place", Type: db.Integer}}}
	pieces := &db.Collection{Name: "pieces", ID: db.Text, Group: 2, Fields: []db.Field{{Name: "body", Type: db.Text}}}
	add := &db.Update{Collection: objects, AtLeast: 1, Add: []int{1, 2}}
	set, behind, view := &db.Update{Collection: objects, Set: []int{3}}, &db.Update{Collection: objects, Append: []int{3}}, &db.Update{Collection: objects}
	d := &Database{schema: schema{procedures: map[string]bool{}}}
	if err := d.Declare(objects, entries, streams, pieces); err != nil {
		t.Fatal(err)
	}
	s := &recordSession{session: &session{db: d}, rehearsal: true}
	ctx := context.Background()
	text := func(s string) db.Value { return db.Value{Text: []byte(s)} }
	find := func(c *db.Collection, ids ...db.Value) func() error {
		return func() error { return s.Find(ctx, c, ids, make([]db.Record, len(ids))) }
	}
	insert := func(c *db.Collection, values ...db.Value) func() error {
		return func() error { return s.Insert(ctx, c, values) }
	}
	change := func(u *db.Update, id db.Value, args ...db.Value) func() error {
		return func() error {
			_, err := s.FindAndUpdate(ctx, u, id, args)
			return err
		}
	}
	assume := func(values ...db.Value) func() error {
		return func() error { s.Assume(streams, values); return nil }
	}
	one, minus := db.Value{Int: 1}, db.Value{Int: -1}
	for name, test := range map[string]struct {
		alone bool
		steps []func() error
	}{
		"find1_":                   {true, []func() error{find(objects, text("a"))}},
		"find_all1_":               {false, []func() error{find(objects, text("a"), text("b"))}},
		"look1_change1_":           {true, []func() error{change(add, text("a"), one, minus, one)}},
		"look2_change2_":           {false, []func() error{change(add, text("a"), one, minus, one), change(set, text("b"), text("x"))}},
		"look2_change1_":           {false, []func() error{change(behind, text("a"), text("x")), change(view, text("b"))}},
		"look1_":                   {true, []func() error{change(view, text("a"))}},
		"guard1_put1_":             {true, []func() error{find(objects, text("a")), change(set, text("a"), text("x"))}},
		"guard2_put1_":             {false, []func() error{find(objects, text("a"), text("b")), change(set, text("a"), text("x"))}},
		"guard1_put1_add1_":        {true, []func() error{assume(one, one), insert(streams, one, one), insert(pieces, text("01/5"), text("x"))}},
		"add1_":                    {false, []func() error{insert(entries, one)}},
		"look1_change1_add1_":      {false, []func() error{change(add, text("a"), one, minus, one), insert(entries, one, text("a"), minus, one, text("b"), one, one)}},
		"guard4_put4_":             {false, []func() error{find(objects, text("a"), text("b"), text("c")), insert(objects, text("a"), one, one, text("")), insert(objects, text("b"), one, one, text("")), insert(objects, text("c"), one, one, text(""))}},
		"add1_ of one with a home": {true, []func() error{insert(pieces, text("ff/1"), text("x"))}},
	} {
		s.shapes = nil
		err := s.Begin(ctx, false)
		for _, step := range test.steps {
			if err == nil {
				err = step()
			}
		}
		if err == nil {
			err = s.Commit(ctx)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		made := s.shapes[len(s.shapes)-1]
		wanted, _, _ := strings.Cut(name, " ")
		if !strings.Contains(made.name, "_p_"+wanted) || strings.Contains(made.create, " PARTITION ON ") != test.alone {
			t.Errorf("%s is %s", name, made.create)
		}
		args := len(s.args)
		if made.types[0]&listOf != 0 {
			args = 1
		}
		if parameters := strings.Count(made.create, "?"); parameters != len(made.types) || parameters != args {
			t.Errorf("%s has %d parameters, %d types and %d arguments", made.create, parameters, len(made.types), args)
		}
	}
}

// TestTextLiteralsAreQuoted checks that a text in a statement stays one text.
func TestTextLiteralsAreQuoted(t *testing.T) {
	facts := &db.Collection{Name: "facts", ID: db.Text, Fields: []db.Field{{Name: "value", Type: db.Text}}}
	d := &Database{}
	made := d.shape([]step{{kind: put, c: facts}}, true)
	args := []db.Value{{Text: []byte("it's ?")}, {Null: true}}
	if got, want := made.literal(args), "UPSERT INTO facts (id, value) VALUES ('it''s ?', NULL)"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	all := d.shape([]step{{kind: findAll, c: facts}}, false)
	args[1] = db.Value{Text: []byte("b")}
	if got, want := all.literal(args), "SELECT id, value FROM facts WHERE id IN ('it''s ?','b')"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

package script

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/check/rows"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload/script/track"
)

// trackedTable lists the tables that have the columns of tracking, so that a cleanup finds them.
const trackedTable = "stroppy_tracked"

// mostTracked is the number of tables that the numbers of rows can tell apart.
const mostTracked = 15

// tracked describes a table in the header of a history.
type tracked struct {
	track.Table
	Deletes  bool `json:"deletes,omitempty"`  // a script may delete rows, if only by a cascade
	Inserts  bool `json:"inserts,omitempty"`  // a statement that is not tracked may insert rows
	Computes bool `json:"computes,omitempty"` // a script writes what it computed from the table
}

// tables are the tracked tables of a run. They number the rows: a whole number is the key itself, and any other key is
// a hash.
type tables []tracked

const (
	hashed    = 1 << 63 // of the number of a row with a hash
	tableBits = 4       // below it
	hashBits  = 63 - tableBits
	wholeKeys = 1 << 58 // the keys whose numbers have room
)

// object returns the number of a row.
func (t tables) object(table int, key []byte) uint64 {
	if n, ok := track.Integer(key); ok && -wholeKeys < n && n < wholeKeys {
		return rows.First + (uint64(n)<<1^uint64(n>>63))*uint64(len(t)) + uint64(table)
	}
	h := fnv.New64a()
	h.Write(key)
	return hashed | uint64(table)<<hashBits | h.Sum64()>>(64-hashBits)
}

// table returns the table of a row.
func (t tables) table(object uint64) int {
	if object&hashed != 0 {
		return int(object >> hashBits & (1<<tableBits - 1))
	}
	return int((object - rows.First) % uint64(len(t)))
}

// Name returns the name of an object that belongs to no invariant.
func (t tables) Name(object uint64) string {
	switch {
	case object == 0:
		return receiptTable
	case object == rows.OtherReads:
		return "reads that are not tracked"
	case object == rows.OtherWrites:
		return "writes that are not tracked"
	case object == rows.Unversioned:
		return "writes without a version"
	case object < rows.First || len(t) == 0 || t.table(object) >= len(t):
		return fmt.Sprintf("object %d", object)
	case object&hashed != 0:
		return fmt.Sprintf("%s key-hash-%015x", t[t.table(object)].Name, object&(1<<hashBits-1))
	}
	n := (object - rows.First) / uint64(len(t))
	return fmt.Sprintf("%s %d", t[t.table(object)].Name, int64(n>>1)^-int64(n&1))
}

// number returns the number of the row that has a name.
func (t tables) number(name string) (n uint64, ok bool) {
	for i := range t {
		key, ok := strings.CutPrefix(name, t[i].Name+" ")
		if !ok {
			continue
		}
		hex, hash := strings.CutPrefix(key, "key-hash-")
		if n, err := strconv.ParseUint(hex, 16, hashBits); hash && err == nil {
			return hashed | uint64(i)<<hashBits | n, true
		}
		return t.object(i, []byte(key)), true
	}
	return 0, false
}

// restarts reports whether a row may be deleted and inserted again unseen.
func (t tables) restarts(object uint64) bool {
	table := &t[t.table(object)]
	return table.Deletes && table.Inserts
}

func (t tables) vanishes(object uint64) bool { return t[t.table(object)].Deletes }

// computing reports whether a script writes what it computed.
func (t tables) computing() bool {
	return slices.ContainsFunc(t, func(one tracked) bool { return one.Computes })
}

// trackedIn returns the tables of a recording; nil: nothing was tracked.
func trackedIn(h history.Header) (t tables) {
	if text := h.Keys[keyTracked]; text != "" && json.Unmarshal([]byte(text), &t) != nil {
		return nil
	}
	return t
}

func (t tables) text() string {
	text, _ := json.Marshal(t) // strings and numbers alone
	return string(text)
}

// track reports what is not tracked, and adds the columns that are missing.
func (w *Script) track(ctx context.Context) error {
	var notes []string
	for i := range w.texts {
		notes = append(notes, w.texts[i].plan.notes...)
	}
	for i, note := range notes {
		if i == mostNotes {
			w.report(fmt.Sprintf("%d more statements are not tracked.", len(notes)-i))
			break
		}
		w.report(note + ".")
	}
	if len(w.tracked) == 0 {
		return nil
	}
	return w.columns().add(ctx, w.tracked, w.report)
}

// mostNotes is the number of statements that a run names before it starts.
const mostNotes = 20

// columns are the statements about the columns and the list of tracked tables.
type columns struct {
	d *db.Dialect
	w *Script
}

func (w *Script) columns() *columns { return &columns{w.dialect, w} }

// find reports whether the database can run a query. If it refuses the query but answers, the answer is no.
func (c *columns) find(ctx context.Context, sql string) (bool, error) {
	err := query(ctx, c.w.database, &db.Statement{SQL: sql, Free: true}, nil, ignore)
	if db.ClassOf(err) == db.Fatal {
		_, err := c.w.database.Info(ctx)
		return false, err
	}
	return err == nil, err
}

func (c *columns) has(ctx context.Context, table, column string) (bool, error) {
	return c.find(ctx, "SELECT "+column+" FROM "+table+" WHERE 1 = 0")
}

// verify returns an error if a table or its key cannot be tracked. It changes nothing.
func (c *columns) verify(ctx context.Context, t tables) error {
	for i := range t {
		one, shared := &t[i], int64(0)
		there, err := c.has(ctx, one.Name, one.Key)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("track %s: the database has no such table, or no such column in it: "+
				"name a table and the column that is its key", &one.Table)
		}
		count := &db.Statement{
			SQL:     "SELECT count(*) - count(DISTINCT " + one.Key + ") FROM " + one.Name,
			Columns: []db.Type{db.Integer},
		}
		err = query(ctx, c.w.database, count, nil, func(row []db.Value) error {
			shared = row[0].Int
			return nil
		})
		if err != nil {
			return fmt.Errorf("track %s: %w", &one.Table, err)
		}
		if shared != 0 {
			return fmt.Errorf("track %s: %d rows have no value of their own in this column: name the key of the table",
				&one.Table, shared)
		}
	}
	return nil
}

// add adds the columns that are missing. It reports them before it adds the first one.
func (c *columns) add(ctx context.Context, t tables, report func(string)) error {
	listed, err := c.has(ctx, trackedTable, "name")
	if err != nil {
		return err
	}
	var what, altered, changes []string
	if !listed {
		what = append(what, "the table "+trackedTable)
		changes = append(changes,
			c.d.CreateTable(trackedTable, "name "+c.d.TextType(maxName)+" NOT NULL", "PRIMARY KEY (name)"))
	}
	for i := range t {
		missing := []string(nil)
		for _, column := range []string{track.Version, track.Writer} {
			there, err := c.has(ctx, t[i].Name, column)
			if err != nil {
				return err
			}
			if !there {
				missing = append(missing, column)
			}
		}
		if len(missing) == 0 {
			continue
		}
		altered = append(altered, t[i].Name)
		literal := "'" + strings.ReplaceAll(t[i].Name, "'", "''") + "'"
		changes = append(changes, "DELETE FROM "+trackedTable+" WHERE name = "+literal,
			"INSERT INTO "+trackedTable+" (name) VALUES ("+literal+")")
		for _, column := range missing {
			what = append(what, "the column "+t[i].Name+"."+column)
			changes = append(changes, "ALTER TABLE "+t[i].Name+" ADD COLUMN "+column+" "+c.d.IntegerType+" DEFAULT 0 NOT NULL")
		}
	}
	if len(what) > 0 {
		report("The run adds " + joined(what) + " to the database. `stroppy cleanup` removes them.")
	}
	if len(altered) > 0 && !c.w.made && c.w.agree != nil {
		if err := c.w.agree(joined(altered)); err != nil {
			return err
		}
	}
	for _, change := range changes {
		if err := c.w.database.Exec(ctx, change); err != nil {
			return fmt.Errorf("track the tables: %w", err)
		}
	}
	return nil
}

// maxName is the length of a table's name in trackedTable.
const maxName = 200

func joined(list []string) string {
	if n := len(list) - 1; n > 0 {
		return strings.Join(list[:n], ", ") + " and " + list[n]
	}
	return strings.Join(list, "")
}

// remove removes the columns and the list of tracked tables. It returns what is gone.
func (c *columns) remove(ctx context.Context) (removed []string, err error) {
	listed, err := c.has(ctx, trackedTable, "name")
	if err != nil || !listed {
		return nil, err
	}
	var names []string
	list := &db.Statement{SQL: "SELECT name FROM " + trackedTable + " ORDER BY name", Columns: []db.Type{db.Text}}
	err = query(ctx, c.w.database, list, nil, func(row []db.Value) error {
		names = append(names, string(row[0].Text))
		return nil
	})
	for _, name := range names {
		for _, column := range []string{track.Version, track.Writer} {
			there, asking := c.has(ctx, name, column)
			if err == nil {
				err = asking
			}
			if err != nil || !there {
				continue
			}
			if err = c.w.database.Exec(ctx, "ALTER TABLE "+name+" DROP COLUMN "+column); err == nil {
				removed = append(removed, "column "+name+"."+column)
			}
		}
	}
	if err == nil {
		removed = append(removed, "table "+trackedTable)
		err = c.w.database.Exec(ctx, "DROP TABLE "+trackedTable)
	}
	return removed, err
}

// download writes the rows that have been written into the end state.
func (c *columns) download(ctx context.Context, t tables, end *history.EndWriter) error {
	for i := range t {
		list := &db.Statement{
			SQL: "SELECT " + t[i].Key + ", " + track.Version + ", " + track.Writer + " FROM " + t[i].Name +
				" WHERE " + track.Version + " > 0",
			Free: true,
		}
		err := query(ctx, c.w.database, list, nil, func(row []db.Value) error {
			version, _ := track.Integer(row[1].Text)
			writer, _ := track.Integer(row[2].Text)
			return end.Object(history.Object{
				N: t.object(i, row[0].Text), Version: uint64(version), Writer: history.ID(writer),
			})
		})
		if err != nil {
			return fmt.Errorf("download the tracked table %s: %w", t[i].Name, err)
		}
	}
	return nil
}

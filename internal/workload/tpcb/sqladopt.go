package tpcb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// adopt writes the metadata of pgbench's tables that are there without: how many
// rows they have, and what those held beyond what the history says. Tables of
// another form stay without, and then there is nothing to attach to.
func (m *sqlModel) adopt(ctx context.Context, seed uint64) error {
	n, err := m.Read(ctx)
	if again := n.State == dataset.StateLoading && n.Facts[factAdopted] == "true"; err != nil || n.Found && !again {
		return err
	}
	return m.takeUp(ctx, facts{adopted: true}, seed, 0)
}

// adoptAnew writes the metadata anew for tables of pgbench that were changed since. It is false
// if the tables have another form now, or none.
func (m *sqlModel) adoptAnew(ctx context.Context, seed uint64) (bool, error) {
	n, err := m.Read(ctx)
	if err != nil {
		return false, err
	}
	was, err := factsOf(n.Facts, n.Size)
	if err != nil {
		return false, err
	}
	err = m.takeUp(ctx, was, cmp.Or(seed, n.Seed), n.Run)
	if errors.As(err, new(*dataset.StateError)) {
		return false, nil
	}
	now, reading := m.Read(ctx)
	return now.Load != n.Load, cmp.Or(err, reading)
}

// takeUp is adopt for tables on which so many runs have begun, and which somebody else made
// if was says so. Without tables it writes nothing.
func (m *sqlModel) takeUp(ctx context.Context, was facts, seed, runs uint64) error {
	own := m.newTexts(false)
	s, err := m.measure(ctx, own)
	if err != nil || s.rows() == 0 {
		return err
	}
	unexpected, last, err := m.postings(ctx, own)
	if err != nil {
		return err
	}
	f := facts{size: s, unexpected: unexpected, adopted: was.adopted}
	f.scale, f.ratio = s.ratioOf()
	n := dataKind.NewLoad(seed, s.rows(), f.metadata())
	n.Begun(max(last, runs)) // those whose rows are in the history must not come again
	if err := m.Begin(ctx, n); err != nil {
		return fmt.Errorf("write metadata next to the tables of pgbench: %w", err)
	}
	for _, statement := range []string{"DROP TABLE IF EXISTS " + tableOpening, own.createOpening(), takeOpenings(own, s)} {
		if err := m.Database.Exec(ctx, statement); err != nil {
			return fmt.Errorf("record the contents of pgbench's rows: %w", err)
		}
	}
	return dataKind.Finish(ctx, m, n)
}

// measure counts pgbench's rows. None at all are those that are not there or are
// not of pgbench's form: ids that follow each other from 1.
func (m *sqlModel) measure(ctx context.Context, own *texts) (size, error) {
	var s size
	err := m.With(ctx, func(session db.SQLSession) error {
		for k := range s {
			c := columns[k]
			count := &db.Statement{
				SQL: fmt.Sprintf("SELECT COUNT(*), COALESCE(MIN(%s), 0), COALESCE(MAX(%s), 0), COUNT(%s) FROM %s",
					c.id, c.id, c.balance, own.of[k].name),
				Columns: []db.Type{db.Integer, db.Integer, db.Integer, db.Integer},
			}
			err := session.Query(ctx, count, nil, func(row []db.Value) error {
				rows, first, last, balances := row[0].Int, row[1].Int, row[2].Int, row[3].Int
				if rows < 1 || first != 1 || last != rows || balances != rows {
					return dataset.StateErrorf("the table %s has %d rows with ids from %d to %d, of which %d have a balance: pgbench makes such a table with consecutive ids from 1",
						own.of[k].name, rows, first, last, balances)
				}
				s[k] = uint64(rows)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if db.ClassOf(err) == db.Fatal && !errors.As(err, new(*dataset.StateError)) {
		_, err = m.Database.Info(ctx) // whether the server can be reached
		return size{}, err            // there are no such tables, and attaching says so
	}
	return s, err
}

// postings counts the rows of the history that are somebody else's, and finds the
// last run of this program that left rows there.
func (m *sqlModel) postings(ctx context.Context, own *texts) (unexpected, last uint64, err error) {
	query := &db.Statement{
		SQL:     "SELECT COUNT(*), COUNT(filler), MAX(filler) FROM " + own.history,
		Columns: []db.Type{db.Integer, db.Integer, db.Text},
	}
	err = m.With(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, query, nil, func(row []db.Value) error {
			unexpected = uint64(row[0].Int - row[1].Int)
			if id, ok := parseFiller(row[2].Text); ok && !row[2].Null {
				last = id.Run()
			}
			return nil
		})
	})
	return unexpected, last, err
}

// takeOpenings returns one statement, which therefore reads one snapshot at any isolation. It computes what each row
// holds beyond its entries in the history.
func takeOpenings(own *texts, s size) string {
	part := func(k kind, first uint64, value, where, table string) string {
		return "SELECT " + columns[k].id + " + " + strconv.FormatInt(int64(first)-1, 10) + " AS place, " + value + " AS balance FROM " + table + where
	}
	text, union := "", ""
	first := uint64(0)
	for k, rows := range s {
		balance := columns[k].balance
		text += union + part(kind(k), first, balance, " WHERE "+balance+" <> 0", own.of[k].name) +
			" UNION ALL " + part(kind(k), first, "-delta", "", own.history)
		union = " UNION ALL "
		first += rows
	}
	return "INSERT INTO " + tableOpening + " (place, balance) SELECT place, SUM(balance) FROM (" + text + ") AS moved GROUP BY place HAVING SUM(balance) <> 0"
}

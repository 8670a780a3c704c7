package bank

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/money"
)

func (m *sqlModel) readMeta(ctx context.Context) (meta, error) {
	values := map[string]string{}
	err := m.with(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, m.texts.readMeta, nil, func(row []db.Value) error {
			values[string(row[0].Text)] = string(row[1].Text)
			return nil
		})
	})
	var e *db.Error
	if errors.As(err, &e) && e.Class == db.Fatal && m.answers(ctx) {
		// A statement that the server refuses although it answers: there is no
		// such table, or it may not be read, and then making it will say so.
		return meta{unread: err}, nil
	}
	return parseMeta(values), err
}

// answers says whether the server can be reached with these credentials.
func (m *sqlModel) answers(ctx context.Context) bool {
	_, err := m.database.Info(ctx)
	return err == nil
}

func (m *sqlModel) foreign(ctx context.Context) (string, error) {
	err := m.with(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, m.texts.probe, nil, func([]db.Value) error { return nil })
	})
	switch {
	case err == nil:
		return "this database has a table " + tableAccount, nil
	case db.ClassOf(err) == db.Fatal:
		return "", nil // there is none
	}
	return "", err
}

// begin marks the bank as loading first, so that a crash at any later moment
// leaves a bank that says so.
func (m *sqlModel) begin(ctx context.Context, n meta) error {
	if err := m.database.Exec(ctx, m.texts.createMeta); err != nil {
		return err
	}
	return m.with(ctx, func(s db.SQLSession) error {
		return transact(ctx, s, func() error { return m.writeMeta(ctx, s, n) })
	})
}

// writeMeta adds the statements that write the meta data of a load that starts.
func (m *sqlModel) writeMeta(ctx context.Context, s db.SQLSession, n meta) error {
	if _, err := s.Do(ctx, m.texts.clearMeta, nil); err != nil {
		return err
	}
	for _, row := range startingMeta(n) {
		args := []db.Value{{Text: []byte(row[0])}, {Text: []byte(row[1])}}
		if _, err := s.Do(ctx, m.texts.insertMeta, args); err != nil {
			return err
		}
	}
	return nil
}

// startingMeta returns names and values of the meta data of a load that starts.
func startingMeta(n meta) [][2]string {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	return [][2]string{
		{metaSchema, number(n.schema)}, {metaLoad, n.load}, {metaState, n.state}, {metaSeed, number(n.seed)},
		{metaAccounts, number(n.accounts)}, {metaRun, "0"}, {metaRows, "0"}, {metaTotal, "0"},
	}
}

// resumable trusts the count that was committed with the rows, and only if it
// is the number of rows. A bulk load is all or nothing, so it leaves none.
func (m *sqlModel) resumable(ctx context.Context, n meta) (uint64, error) {
	if n.rows == 0 {
		return 0, nil
	}
	var rows uint64
	err := m.with(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, m.texts.countRows, nil, func(row []db.Value) error {
			rows = uint64(row[0].Int)
			return nil
		})
	})
	if err != nil || rows != n.rows || rows > n.accounts {
		return 0, err
	}
	return rows, nil
}

// fill clears away what an earlier bank has left, unless it goes on with it, and
// makes the accounts and an empty ledger.
func (m *sqlModel) fill(ctx context.Context, f *formula, n meta, progress func(done uint64)) error {
	if bulk, ok := m.database.(db.BulkLoader); ok && n.rows == 0 {
		return m.bulk(ctx, bulk, f, n.accounts, progress)
	}
	before := []string{m.texts.dropLedger, m.texts.dropAccount, m.texts.createAccount}
	if n.rows > 0 {
		before = before[:1] // an interrupted load may have come as far as the ledger
	}
	if err := m.each(ctx, before...); err != nil {
		return err
	}
	if err := m.batches(ctx, f, n, progress); err != nil {
		return err
	}
	return m.each(ctx, m.texts.createLedger)
}

func (m *sqlModel) each(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if err := m.database.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (m *sqlModel) bulk(ctx context.Context, bulk db.BulkLoader, f *formula, accounts uint64, progress func(done uint64)) error {
	after := []string{m.texts.createLedger}
	if m.texts.primaryKey != "" {
		after = []string{m.texts.primaryKey, m.texts.createLedger}
	}
	order, done := keyOrder{formula: f, accounts: accounts}, uint64(0)
	drawn := make(chan struct{})
	go func() { // while the database makes the tables
		defer close(drawn)
		order.window()
	}()
	defer func() { <-drawn }()
	var bic [bicLength]byte
	rows, err := bulk.BulkLoad(ctx, db.BulkLoad{
		Before:  []string{m.texts.dropLedger, m.texts.dropAccount, m.texts.createKeyless},
		Table:   tableAccount,
		Columns: []string{"bic", "ban", "balance"},
		Types:   []db.Type{db.Text, db.Integer, db.Decimal},
		Next: func(row []db.Value) bool {
			<-drawn
			n, key, ok := order.take()
			if !ok {
				return false
			}
			putBIC(&bic, key)
			row[0].Text, row[1].Int, row[2].Int = bic[:], int64(ban(key)), f.opening(n)
			if done++; done%progressRows == 0 {
				progress(done)
			}
			return true
		},
		After: after,
	})
	if err != nil {
		return err
	}
	if uint64(rows) != accounts {
		return fmt.Errorf("the database took %d rows of %d", rows, accounts)
	}
	progress(accounts)
	return nil
}

// batchRows is how many accounts one transaction of a load without BulkLoader
// makes.
const batchRows = 100 * insertRows

// batches makes the accounts from n.rows on in transactions, each of which also
// writes how far the load has come.
func (m *sqlModel) batches(ctx context.Context, f *formula, n meta, progress func(done uint64)) error {
	return m.with(ctx, func(s db.SQLSession) error {
		for from := n.rows; from < n.accounts; {
			to := min(from+batchRows, n.accounts)
			if err := transact(ctx, s, func() error { return m.batch(ctx, s, f, from, to) }); err != nil {
				return err
			}
			from = to
			progress(to)
		}
		return nil
	})
}

func (m *sqlModel) batch(ctx context.Context, s db.SQLSession, f *formula, from, to uint64) error {
	args := make([]db.Value, 0, 3*insertRows)
	bics := make([][bicLength]byte, insertRows)
	for from < to {
		statement, rows := m.texts.insertMany, uint64(insertRows)
		if to-from < rows {
			statement, rows = m.texts.insert, 1
		}
		args = args[:0]
		for i := range rows {
			key := f.key(from + i)
			putBIC(&bics[i], key)
			args = append(args, db.Value{Text: bics[i][:]}, db.Value{Int: int64(ban(key))}, db.Value{Int: f.opening(from + i)})
		}
		if _, err := s.Do(ctx, statement, args); err != nil {
			return err
		}
		from += rows
	}
	return m.set(ctx, s, metaRows, strconv.FormatUint(to, 10))
}

func (m *sqlModel) set(ctx context.Context, s db.SQLSession, name, value string) error {
	_, err := s.Do(ctx, m.texts.setMeta, []db.Value{{Text: []byte(value)}, {Text: []byte(name)}})
	return err
}

func (m *sqlModel) finish(ctx context.Context, total int64) error {
	return m.with(ctx, func(s db.SQLSession) error {
		return transact(ctx, s, func() error {
			if err := m.set(ctx, s, metaTotal, money.Format(total)); err != nil {
				return err
			}
			return m.set(ctx, s, metaState, stateLoaded)
		})
	})
}

// errRunTaken says that another process took the run number first.
var errRunTaken = &db.Error{Class: db.Aborted, Op: "take the next run number", Err: errors.New("another process took it at the same time")}

func (m *sqlModel) nextRun(ctx context.Context, n meta) error {
	return m.with(ctx, func(s db.SQLSession) error {
		var result int
		err := transact(ctx, s, func() (err error) {
			was, is := strconv.FormatUint(n.run, 10), strconv.FormatUint(n.run+1, 10)
			result, err = s.Do(ctx, m.texts.casMeta,
				[]db.Value{{Text: []byte(is)}, {Text: []byte(metaRun)}, {Text: []byte(was)}})
			return err
		})
		if err == nil && s.Result(result).Affected != 1 {
			err = errRunTaken
		}
		return err
	})
}

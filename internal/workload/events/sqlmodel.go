package events

import (
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// table is that of all pieces of all entries. Its key is what an append is sure of.
// A body that is NULL is that of a tombstone, or of a stream's origin.
const table = "stroppy_events"

// sqlModel is the log on a SQL database.
type sqlModel struct {
	*dataset.SQL
	config *Config

	create, drop string

	origin    *db.Statement // makes a stream
	end       *db.Statement // the last place of a stream
	who       *db.Statement // the writer at a place, and whether it is void
	insert    *db.Statement // one piece
	tombstone *db.Statement
	all       *db.Statement // every piece, in order
}

// newSQLModel fills in what the configuration leaves to the data model.
func newSQLModel(database db.SQL, c *Config) (*sqlModel, error) {
	if err := c.limit(database, 0); err != nil {
		return nil, err
	}
	longest := maxValue
	if most := database.Limits().Value; most > 0 {
		longest = min(longest, most)
	}
	d := database.Dialect()
	m := &sqlModel{SQL: dataset.NewSQL(kind, database, table), config: c}
	m.Count = dataset.CountRows(table, "place = 0")
	m.create = "CREATE TABLE " + table + " (\n" +
		"\tstream " + d.IntegerType + " NOT NULL,\n" +
		"\tplace " + d.IntegerType + " NOT NULL,\n" +
		"\tpiece " + d.IntegerType + " NOT NULL,\n" +
		"\twriter " + d.IntegerType + " NOT NULL,\n" +
		"\tmember " + d.IntegerType + " NOT NULL,\n" +
		"\tbody " + d.TextType(longest) + ",\n" +
		"\tPRIMARY KEY (stream, place, piece)\n)" + d.TableOptions
	m.drop = "DROP TABLE IF EXISTS " + table
	m.statements(d)
	return m, nil
}

func (m *sqlModel) statements(d *db.Dialect) {
	const into = "INSERT INTO " + table + " (stream, place, piece, writer, member, body) VALUES ("
	m.origin = d.Write(into).Param(db.Integer).Text(", 0, 0, 0, 0, NULL)").End()
	m.end = d.Write("SELECT MAX(place) FROM ", table, " WHERE stream = ").Param(db.Integer).End(db.Integer)
	m.who = d.Write("SELECT writer, CASE WHEN body IS NULL THEN 1 ELSE 0 END FROM ", table, " WHERE stream = ").Param(db.Integer).
		Text(" AND place = ").Param(db.Integer).Text(" AND piece = 0").End(db.Integer, db.Integer)
	m.insert = d.Write(into).Params(db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Text).Text(")").End()
	m.tombstone = d.Write(into).Params(db.Integer, db.Integer).Text(", 0, ").Param(db.Integer).
		Text(", 0, NULL)", d.DoNothing).End()
	m.all = d.Write("SELECT stream, place, piece, writer, member, body FROM ", table, " ORDER BY stream, place, piece").
		End(db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Text)
}

// Fill implements dataset.Store. It makes the table and the streams' origins.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	if n.Rows == 0 {
		if err := m.Each(ctx, m.drop, m.create); err != nil {
			return err
		}
	}
	const batch = 1000
	return m.Batches(ctx, n, batch, progress, func(s db.SQLSession, from, to uint64) error {
		for stream := from; stream < to; stream++ {
			if _, err := s.Do(ctx, m.origin, []db.Value{{Int: int64(stream)}}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *sqlModel) client(ctx context.Context, a *appender) (load.Client, error) {
	s, err := m.Database.Session(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
	if err != nil {
		return nil, err
	}
	return &sqlClient{appender: a, SQLSession: s, model: m, ends: make([]uint64, a.own)}, nil
}

// download reads everything in one statement, so that it comes from one snapshot.
func (m *sqlModel) download(ctx context.Context, r *reader, report *dataset.Progress) error {
	return m.With(ctx, func(s db.SQLSession) error {
		pieces, err := dataset.Number(ctx, s, dataset.CountRows(table))
		if err != nil {
			return fmt.Errorf("count the events: %w", err)
		}
		report.Total = pieces
		rows := uint64(0)
		err = s.Query(ctx, m.all, nil, func(row []db.Value) error {
			if rows++; rows%progressRows == 0 || rows == report.Total {
				report.Done(rows)
			}
			return r.row(row)
		})
		if err != nil {
			return fmt.Errorf("download the events: %w", err)
		}
		return r.closeRows()
	})
}

// progressRows is how many rows pass between two looks at the clock.
const progressRows = 1024

package script

import (
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/script"
	"stroppy/internal/workload/script/track"
)

// trackedStatement is a statement that the client records.
type trackedStatement struct {
	track.Statement
	follow   *db.Statement // reads the version after a write; nil: the write returns it
	computes bool          // it writes what the script computed from the same column of the same row
}

// plan holds the statements of one script on tracked tables.
type plan struct {
	recorded []*trackedStatement // by step; nil for the others
	steps    []track.Statement   // by step
	notes    []string            // the statements that are not recorded, each with the reason
}

// planner rewrites the statements of all scripts.
type planner struct {
	tables  tables
	rewrite track.Rewriter
	dialect *db.Dialect
	program *script.Program
}

// setTrack adds tracked tables.
func (c *Config) setTrack(lines string) error {
	for line := range strings.Lines(lines) {
		t, err := track.Parse(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		for _, other := range c.Track {
			if strings.EqualFold(other.Name, t.Name) {
				return fmt.Errorf("the table %s is there twice", t.Name)
			}
		}
		if c.Track = append(c.Track, t); len(c.Track) > mostTracked {
			return fmt.Errorf("there are more than %d tables", mostTracked)
		}
	}
	return nil
}

func (c *Config) trackText() string {
	var lines []string
	for i := range c.Track {
		lines = append(lines, c.Track[i].String())
	}
	return strings.Join(lines, "\n")
}

// planTracking rewrites the statements that read and write tracked tables.
func (w *Script) planTracking() error {
	if len(w.config.Track) == 0 {
		return nil
	}
	for _, t := range w.config.Track {
		w.tracked = append(w.tracked, tracked{Table: t})
	}
	p := planner{
		tables: w.tracked, dialect: w.dialect, program: w.program,
		rewrite: track.Rewriter{Tables: w.config.Track, Returning: w.dialect.Returning},
	}
	for i, s := range w.program.Scripts {
		plan, err := p.script(s)
		if err != nil {
			return err
		}
		for step, one := range plan.recorded {
			if one != nil {
				w.texts[i].at[step] = &db.Statement{
					SQL: track.Placeholders(one.Parts, w.dialect.Placeholder), Parts: one.Parts, Free: one.Extra > 0,
					Params: untyped(len(one.Own)),
				}
			}
		}
		w.texts[i].plan = plan
	}
	return nil
}

func untyped(n int) (list []db.Type) {
	for range n {
		list = append(list, db.Untyped)
	}
	return list
}

// script plans one script.
func (p *planner) script(s *script.Script) (plan plan, err error) {
	plan.recorded, plan.steps = make([]*trackedStatement, len(s.Steps)), make([]track.Statement, len(s.Steps))
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Op != script.Execute || step.SQL.Control == script.Begin || step.SQL.Control == script.Commit ||
			step.SQL.Control == script.Rollback {
			continue
		}
		if plan.steps[i], err = p.rewrite.Rewrite(step.SQL); err != nil {
			return plan, fmt.Errorf("%s:%d: %w", s.Name, step.Line, err)
		}
		one := &plan.steps[i]
		p.note(step.SQL, one)
		if step.SQL.Control == script.RollbackTo {
			return plan, fmt.Errorf("%s:%d: --track does not support ROLLBACK TO: take two transactions", s.Name, step.Line)
		}
	}
	for i := range plan.steps {
		one := &plan.steps[i]
		if one.Why != "" {
			plan.notes = append(plan.notes, fmt.Sprintf("%s:%d is not tracked: %s", s.Name, s.Steps[i].Line, one.Why))
		}
		if one.Kind != track.None {
			plan.recorded[i] = p.recorded(one)
		}
	}
	p.compute(s, &plan)
	return plan, nil
}

// note notes what a statement may do with the rows of tables. Another statement than INSERT and UPDATE may delete rows
// of any table, by a cascade.
func (p *planner) note(q *script.SQL, one *track.Statement) {
	for i := range p.tables {
		cascades := one.Writes && q.Keyword != "INSERT" && q.Keyword != "UPDATE"
		p.tables[i].Deletes = p.tables[i].Deletes || cascades || slices.Contains(one.Deletes, i)
		p.tables[i].Inserts = p.tables[i].Inserts || one.Kind == track.None && slices.Contains(one.Inserts, i)
	}
}

func (p *planner) recorded(one *track.Statement) *trackedStatement {
	r := &trackedStatement{Statement: *one}
	if len(one.Follow) > 0 {
		r.follow = &db.Statement{
			SQL: track.Placeholders(one.Follow, p.dialect.Placeholder), Parts: one.Follow, Free: true,
			Params: untyped(len(one.Follow) - 1),
		}
	}
	return r
}

// transactionsOf numbers the transactions of a script: each step has the number of its transaction.
func transactionsOf(s *script.Script) []int {
	list := make([]int, len(s.Steps))
	number, open, pipelining := 0, false, false
	for i := range s.Steps {
		step := &s.Steps[i]
		switch {
		case step.Op == script.StartPipeline:
			pipelining = true
			number++
		case step.Op == script.SyncPipeline || step.Op == script.EndPipeline:
			pipelining = step.Op == script.SyncPipeline
			number++
		case step.Op != script.Execute:
		case step.SQL.Control == script.Begin:
			open = true
			number++
		case step.SQL.Control == script.Commit || step.SQL.Control == script.Rollback:
			open = false
			number++
		case !open && !pipelining:
			number++
		}
		list[i] = number
	}
	return list
}

// column is a column of the rows of a tracked table that a condition selects.
type column struct {
	table       int
	name, where string
}

// columnOf returns a column of the rows of a statement. A condition with the same variables selects the same rows.
func columnOf(q *script.SQL, s *track.Statement, name string) column {
	c := column{s.Table, strings.ToLower(name), s.Where}
	for _, number := range s.WhereParams {
		c.where += fmt.Sprint(" ", q.Params[number])
	}
	return c
}

// compute marks the statements that write what the script computed from the same column of the same rows. Such a
// transaction loses an update if it did not read the latest version.
func (p *planner) compute(s *script.Script, plan *plan) {
	from := map[int][]column{} // by variable, in the same transaction
	transactions := transactionsOf(s)
	for i := range s.Steps {
		step, one := &s.Steps[i], plan.recorded[i]
		if i > 0 && transactions[i] != transactions[i-1] {
			clear(from)
		}
		switch {
		case step.Op == script.Assign:
			var list []column
			for _, slot := range step.Expr.Variables() {
				list = append(list, from[slot]...)
			}
			from[step.Slot] = list
		case one == nil:
		case one.Kind == track.Read && step.SQL.Store != script.NoStore:
			for _, c := range one.Columns {
				if slot, ok := p.program.Slot(step.SQL.Prefix + c[0]); ok {
					from[slot] = []column{columnOf(step.SQL, &one.Statement, c[1])}
				}
			}
		case one.Kind == track.Update:
			for _, set := range one.Sets {
				own := columnOf(step.SQL, &one.Statement, set.Column)
				for _, number := range set.Params {
					one.computes = one.computes || slices.Contains(from[step.SQL.Params[number]], own)
				}
			}
			p.tables[one.Table].Computes = p.tables[one.Table].Computes || one.computes
		}
	}
}

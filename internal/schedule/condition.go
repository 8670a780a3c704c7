package schedule

import (
	"os"
	"slices"
)

// condition is a part of what shows an anomaly. A label names the step that it is about.
type condition func(o *observed) bool

// shown returns a Schedule.seen: the text if all transactions committed and the conditions hold. In
// the text, ${left} stands for the rows that are left, and ${LABEL} for the rows of a step.
func shown(text string, conditions ...condition) func(o *observed) string {
	return shownIf(text, append(slices.Clone(conditions), func(o *observed) bool {
		return !slices.ContainsFunc(o.fate[1:], func(f fate) bool { return f != isCommitted })
	})...)
}

// shownIf is shown for transactions of which some need not commit.
func shownIf(text string, conditions ...condition) func(o *observed) string {
	return func(o *observed) string {
		if !allOf(conditions...)(o) {
			return ""
		}
		return os.Expand(text, func(label string) string {
			if label == "left" {
				return texts(o.final)
			}
			return texts(o.rows(label))
		})
	}
}

func not(c condition) condition { return func(o *observed) bool { return !c(o) } }

func allOf(conditions ...condition) condition {
	return func(o *observed) bool {
		return !slices.ContainsFunc(conditions, func(c condition) bool { return !c(o) })
	}
}

func oneOf(conditions ...condition) condition {
	return func(o *observed) bool {
		return slices.ContainsFunc(conditions, func(c condition) bool { return c(o) })
	}
}

// commits holds if a transaction committed.
func commits(transaction int) condition {
	return func(o *observed) bool { return o.fate[transaction] == isCommitted }
}

// did holds if the step was carried out.
func did(label string) condition { return func(o *observed) bool { return o.step(label) != nil } }

// saw holds if the step found a row, perhaps among others.
func saw(label string, row Row) condition {
	return func(o *observed) bool { return slices.Contains(o.rows(label), row) }
}

// found holds if the step found these rows and no other.
func found(label string, rows ...Row) condition {
	return func(o *observed) bool {
		e := o.step(label)
		return e != nil && slices.Equal(e.Rows, rows)
	}
}

// changed holds if the write changed or deleted this many rows.
func changed(label string, n int64) condition {
	return func(o *observed) bool {
		e := o.step(label)
		return e != nil && e.Counted && e.Affected == n
	}
}

// wroteRow holds if the write found its row. A client that writes without reading makes the row
// if it is not there.
func wroteRow(label string) condition {
	return func(o *observed) bool {
		e := o.step(label)
		return e != nil && (!e.Counted || e.Affected > 0)
	}
}

// left holds if these rows are left, and no other.
func left(rows ...Row) condition {
	return func(o *observed) bool { return slices.Equal(o.final, rows) }
}

// leaves holds if a row is left, perhaps among others.
func leaves(row Row) condition {
	return func(o *observed) bool { return slices.Contains(o.final, row) }
}

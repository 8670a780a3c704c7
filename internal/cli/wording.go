package cli

import (
	"fmt"

	"stroppy/internal/check/registers"
	"stroppy/internal/history"
	"stroppy/internal/money"
)

// wording is how the command history writes what a workload has recorded, each behind
// the name of what it is about.
type wording struct {
	operation func(op *history.Op) string    // what a transaction did and saw
	row       func(leg history.Leg) string   // a row of the end state that is no tombstone
	end       func(a history.Account) string // what the end state holds
}

// amounts is the wording of what adds amounts to balances, which written writes.
func amounts(written func(n int64) string) wording {
	signed := func(n int64) string {
		if n > 0 {
			return "+" + written(n)
		}
		return written(n)
	}
	at := func(balance int64, version uint64, last history.ID) string {
		return fmt.Sprintf("%s at version %d%s", written(balance), version, madeBy(last))
	}
	return wording{
		operation: func(op *history.Op) string {
			text := ""
			if op.Write {
				text = signed(op.Amount) + " "
			}
			if !op.Observed {
				return text + "not seen"
			}
			return text + "saw " + at(op.Balance, op.Version, op.Last)
		},
		row: func(leg history.Leg) string {
			return fmt.Sprintf(" %s  made version %d", signed(leg.Amount), leg.Version)
		},
		end: func(a history.Account) string { return " " + at(a.Balance, a.Version, a.Last) },
	}
}

func moneyWording() wording { return amounts(money.Format) }

func numberWording() wording {
	return amounts(func(n int64) string { return fmt.Sprint(n) })
}

// eventWording is that of a log: an operation appends bytes behind a place, a row is
// an event at its place.
func eventWording() wording {
	return wording{
		operation: func(op *history.Op) string {
			text := fmt.Sprintf("append %d bytes", op.Amount)
			if !op.Observed {
				return text + ", where is not known"
			}
			return fmt.Sprintf("%s behind place %d", text, op.Version)
		},
		row: func(leg history.Leg) string {
			if leg.Amount == 0 {
				return fmt.Sprintf(" place %d  not whole", leg.Version)
			}
			return fmt.Sprintf(" place %d  %d bytes", leg.Version, leg.Amount)
		},
		end: func(a history.Account) string { return fmt.Sprintf(" ends at place %d%s", a.Version, madeBy(a.Last)) },
	}
}

// recordWording is that of records of a key and a value. There are no rows.
func recordWording() wording {
	found := func(state uint64, bytes int64, last history.ID) string {
		switch state {
		case registers.Absent:
			return "no such record"
		case registers.Whole:
			return fmt.Sprintf("%d bytes%s", bytes, madeBy(last))
		case registers.Broken:
			return fmt.Sprintf("%d bytes that no writer wrote like this", bytes)
		}
		return fmt.Sprintf("%d bytes under a key that no formula makes", bytes)
	}
	return wording{
		operation: func(op *history.Op) string {
			text := ""
			if op.Write {
				text = fmt.Sprintf("write %d bytes", op.Amount)
			}
			switch {
			case op.Observed && op.Write:
				return text + ", saw " + found(op.Version, op.Balance, op.Last)
			case op.Observed:
				return "saw " + found(op.Version, op.Balance, op.Last)
			case op.Write:
				return text
			}
			return "not seen"
		},
		row: func(history.Leg) string { return "" },
		end: func(a history.Account) string { return " " + found(a.Version, a.Balance, a.Last) },
	}
}

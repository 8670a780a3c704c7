package invariants

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// Input is the input of the check of invariants.
//
// An audit is a committed transaction in the background. Its operations read the objects from Object on, one for each
// invariant that was read. The bytes of each value are the result of Encode.
//
// The operation of another transaction on the object Sums+2i adds to the sum of the variable i, in ones. The operation
// on Sums+2i+1 adds to it in units of 10^-18. The end state has an unexpected row for each invariant, which is the
// result of Encode or EncodeLater.
type Input struct {
	check.Input
	List         []Invariant
	Object, Sums uint64
	Receipts     bool // the rows of the end state show which transactions were applied
	Counts       bool // the caller wants the number of committed transactions
}

// Variables returns the variables of sums in their order.
func Variables(list []Invariant) (names []string) {
	seen := map[string]bool{}
	for i := range list {
		if name := list[i].Expect.Variable; name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// Check decides the invariants. It takes time linear in the history, and memory linear in the transactions of unknown
// outcome. The only error wraps the cause of the context's end.
func Check(ctx context.Context, in Input) (check.Result, error) {
	c := &checker{in: in, watch: check.Watch{Ctx: ctx}, findings: make([]check.Finding, len(in.List))}
	c.unknown = map[history.ID][]amount{}
	for range Variables(in.List) {
		c.sums = append(c.sums, new(big.Rat))
	}
	r := check.Result{Name: check.Invariants, Required: true}
	problem := c.readHistory()
	if problem == nil && in.End != nil {
		problem = c.readEnd()
	}
	if c.watch.Cancelled() {
		return r, fmt.Errorf("check the invariants: %w", c.watch.Err)
	}
	if problem == nil && in.Counts {
		in.SetCommitted(c.committed)
	}
	switch {
	case problem != nil:
		c.open = check.Unreadable(problem)
	case in.End == nil && c.open == nil:
		c.open = fact.NoEnd{}
	}
	results := []check.Result{r.Judge(c.findings, c.open, fact.InvariantsHold{Invariants: len(in.List), Audits: c.audits})}
	check.Locate(in.History, &c.watch, results)
	return results[0], nil
}

const damaged = ": it was altered or damaged: restore it from a copy"

type checker struct {
	in        Input
	watch     check.Watch
	findings  []check.Finding // by invariant
	open      fact.Fact       // the first reason why an invariant is not decided
	committed uint64
	audits    int
	sums      []*big.Rat // by variable, over the committed transactions
	unknown   map[history.ID][]amount
}

// amount holds the value that a transaction adds to the sum of a variable.
type amount struct {
	variable int
	value    *big.Rat
}

func (c *checker) readHistory() (problem error) {
	for _, source := range c.in.History {
		for record := range check.Each(&c.watch, "the history", source.Transactions(), &problem) {
			tx := record.Transaction
			switch {
			case tx.Kind.Background():
				if err := c.audit(tx); err != nil {
					return err
				}
			case tx.Outcome == history.Committed:
				c.committed++
				for i := range tx.Ops {
					if a, ok := c.amount(&tx.Ops[i]); ok {
						c.add(a)
					}
				}
			case tx.Outcome == history.Unknown:
				for i := range tx.Ops {
					if a, ok := c.amount(&tx.Ops[i]); ok && a.value.Sign() != 0 {
						c.unknown[tx.ID] = append(c.unknown[tx.ID], a)
					}
				}
			}
		}
		if problem != nil {
			return problem
		}
	}
	return nil
}

var fraction = big.NewInt(1e18)

// amount returns what an operation adds to a sum.
func (c *checker) amount(op *history.Op) (a amount, ok bool) {
	if op.Object < c.in.Sums || op.Object >= c.in.Sums+2*uint64(len(c.sums)) {
		return a, false
	}
	a.variable = int(op.Object-c.in.Sums) / 2
	a.value = new(big.Rat).SetInt64(op.Amount)
	if (op.Object-c.in.Sums)%2 == 1 {
		a.value.SetFrac(big.NewInt(op.Amount), fraction)
	}
	return a, true
}

func (c *checker) add(a amount) { c.sums[a.variable].Add(c.sums[a.variable], a.value) }

// audit judges what an audit read.
func (c *checker) audit(tx *history.Transaction) (problem error) {
	if tx.Outcome != history.Committed {
		return nil
	}
	tx.EachBroken(func(op *history.Op, value []byte) {
		read, err := decode(value)
		if err != nil || !c.known(&read) {
			problem = fmt.Errorf("the history: audit %v has an answer that no invariant can have%s", tx.ID, damaged)
			return
		}
		if v := &c.in.List[read.Invariant]; !v.Races() {
			c.judge(read, v.want(), tx)
		}
	})
	c.audits++
	return problem
}

// known reports whether the answers belong to an invariant of the recording.
func (c *checker) known(a *answers) bool {
	return a.Invariant >= 0 && a.Invariant < len(c.in.List) &&
		(a.Later || len(a.Answers) == c.in.List[a.Invariant].Queries())
}

// want returns the expected number; nil: the kind of the expectation needs none.
func (v *Invariant) want() *big.Rat {
	if v.Expect.Kind == Value {
		return v.Expect.Number
	}
	return nil
}

// holds reports whether the answers are the expected ones.
func (v *Invariant) holds(list []Answer, want *big.Rat) bool {
	a := &list[0]
	switch v.Expect.Kind {
	case Empty:
		return a.Rows == 0
	case Equal:
		return a.Rows == list[1].Rows && a.Hash == list[1].Hash && (a.Rows == 0 || a.Columns == list[1].Columns)
	case Unchanged:
		return a.Rows == v.Start.Rows && a.Hash == v.Start.Hash
	}
	n, ok := a.number()
	return ok && n.Cmp(want) == 0
}

// judge adds a violation unless the answers are the expected ones. A nil tx stands for the end state.
func (c *checker) judge(read answers, want *big.Rat, tx *history.Transaction) {
	v := &c.in.List[read.Invariant]
	if v.holds(read.Answers, want) {
		return
	}
	a := &read.Answers[0]
	what := fact.InvariantBroken{Name: v.Name, Expect: v.Expect.String(), Count: a.Rows, Rows: a.First}
	switch v.Expect.Kind {
	case Equal:
		what.Others, what.Other = read.Answers[1].Rows, append([]string{}, read.Answers[1].First...)
	case Unchanged:
		what.Want = *v.Start.Value
	case Value, Sum:
		what.Want = text(want)
	}
	if a.Value != nil && v.Expect.Kind != Empty && v.Expect.Kind != Equal {
		what.Saw = *a.Value
	}
	f := &c.findings[read.Invariant]
	f.Check = check.Invariants
	if tx == nil {
		f.Add(what, fact.Object(v.Name))
	} else {
		what.By, what.At = tx.ID, time.Duration(tx.End)
		f.Add(what, fact.Object(v.Name), tx.ID)
		f.At(tx.End)
	}
	if c.in.OnViolation != nil {
		c.in.OnViolation(check.Violation{Check: check.Invariants, Transaction: what.By, Account: v.Name, Fact: what})
	}
}

// text returns a number as a decimal.
func text(n *big.Rat) string {
	digits, _ := n.FloatPrec()
	return n.FloatString(digits)
}

// readEnd judges the answers of the end state.
func (c *checker) readEnd() error {
	if len(c.unknown) > 0 && c.in.Receipts {
		if problem := c.resolve(); problem != nil {
			return problem
		}
	}
	read := make([]bool, len(c.in.List))
	for _, row := range c.in.End.Unexpected() {
		a, err := decode([]byte(row))
		if err != nil || !c.known(&a) || read[a.Invariant] {
			return errors.New("the end state has an answer that no invariant can have" + damaged)
		}
		read[a.Invariant] = true
		switch v := &c.in.List[a.Invariant]; {
		case a.Later:
			c.leaveOpen(fact.InvariantUnread{Name: v.Name, Later: true})
		case v.Expect.Kind == Sum:
			c.sum(a)
		default:
			c.judge(a, v.want(), nil)
		}
	}
	for i := range read {
		if !read[i] {
			c.leaveOpen(fact.InvariantUnread{Name: c.in.List[i].Name})
		}
	}
	return nil
}

func (c *checker) leaveOpen(why fact.Fact) {
	if c.open == nil {
		c.open = why
	}
}

// resolve moves the transactions of unknown outcome that have a receipt, or a tombstone.
func (c *checker) resolve() (problem error) {
	for row := range check.Each(&c.watch, "the end state's receipts", c.in.End.Rows(), &problem) {
		list, ok := c.unknown[row.Transaction]
		if !ok {
			continue
		}
		delete(c.unknown, row.Transaction)
		if row.Mark == 0 {
			for _, a := range list {
				c.add(a)
			}
		}
	}
	return problem
}

// sum judges the answer to an invariant about a sum. The transactions of unknown outcome leave an interval.
func (c *checker) sum(read answers) {
	v := &c.in.List[read.Invariant]
	start, ok := v.Start.number()
	if !ok {
		c.leaveOpen(fact.InvariantUnread{Name: v.Name})
		return
	}
	variable := 0
	for i, name := range Variables(c.in.List) {
		if name == v.Expect.Variable {
			variable = i
		}
	}
	low := new(big.Rat).Add(start, c.sums[variable])
	high, unknown := new(big.Rat).Set(low), 0
	for _, list := range c.unknown {
		whole := new(big.Rat)
		for _, a := range list {
			if a.variable == variable {
				whole.Add(whole, a.value)
			}
		}
		switch whole.Sign() {
		case 0:
			continue
		case -1:
			low.Add(low, whole)
		default:
			high.Add(high, whole)
		}
		unknown++
	}
	n, ok := read.Answers[0].number()
	switch {
	case unknown == 0 || !ok:
		c.judge(read, low, nil)
	case n.Cmp(low) < 0:
		c.judge(read, low, nil)
	case n.Cmp(high) > 0:
		c.judge(read, high, nil)
	default:
		c.leaveOpen(fact.InvariantOpen{
			Name: v.Name, Saw: *read.Answers[0].Value, Low: text(low), High: text(high), Unknown: unknown,
		})
	}
}

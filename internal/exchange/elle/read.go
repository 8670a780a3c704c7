package elle

import (
	"bytes"
	"fmt"

	"stroppy/internal/check/lists"
	"stroppy/internal/exchange"
	"stroppy/internal/history"
)

// History is what a file has: the transactions of its clients, in the order of their ends.
type History struct {
	Transactions []lists.Transaction
	Register     bool // it is of registers, which stand for the lists of all that was written
	Times        bool // its operations begin and end
	Operations   int
	Undecided    string // why the order of writes is not known where no violation shows; empty if it is

	lines    []int             // by transaction, where it ended
	names    map[uint64]string // of keys and elements that are no whole numbers
	numbers  map[string]uint64
	register []uint64 // by list, the register that it stands for a piece of
}

// operation is one line: what a client did.
type operation struct {
	line    int
	kind    string // invoke, ok, fail or info
	process value
	value   value
	time    int64
	timed   bool
}

// Read reads a history in EDN or in JSON: maps one after another, or all in one vector.
func Read(data []byte) (*History, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	b := &builder{History: &History{names: map[uint64]string{}, numbers: map[string]uint64{}}, open: map[string]*operation{}}
	var next func() (value, bool, error)
	if isJSON(data) {
		next = newJSONReader(data).next
	} else {
		r := &ednReader{data: data, line: 1}
		next = func() (value, bool, error) { return r.next(0) }
	}
	for {
		v, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		all := []value{v}
		if v.kind == vector {
			all = v.list
		}
		for _, v := range all {
			if err := b.add(v); err != nil {
				return nil, err
			}
		}
	}
	return b.finish()
}

// isJSON says that the first map of a history is one of JSON: its first key is a string.
func isJSON(data []byte) bool {
	rest := bytes.TrimLeft(data, " \t\r\n[")
	rest, isMap := bytes.CutPrefix(rest, []byte{'{'})
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if !isMap || !bytes.HasPrefix(rest, []byte{'"'}) {
		return false
	}
	end := bytes.IndexByte(rest[1:], '"')
	return end >= 0 && bytes.HasPrefix(bytes.TrimLeft(rest[end+2:], " \t\r\n"), []byte{':'})
}

type builder struct {
	*History
	open    map[string]*operation // by process, what it has begun
	invoked bool
	appends bool
	writes  bool
	clock   int64 // the last time, so that each is later than the one before
}

// add takes the next line.
func (b *builder) add(v value) error {
	op, client, err := operationOf(v)
	if err != nil || !client {
		return err
	}
	now := b.tick(op)
	process := op.process.String()
	began := b.open[process]
	if op.kind == "invoke" {
		if began != nil {
			return &exchange.InputError{Line: op.line, What: fmt.Sprintf("process %s begins a transaction, and that of line %d has not ended", process, began.line)}
		}
		b.invoked = true
		op.time = now
		b.open[process] = op
		return nil
	}
	delete(b.open, process)
	if began == nil {
		if b.invoked {
			return &exchange.InputError{Line: op.line, What: fmt.Sprintf("process %s ends a transaction that it has not begun", process)}
		}
		began = op
		began.time = now
	}
	return b.end(began, op, now)
}

// tick returns the time of an operation: later than that of every one before it.
func (b *builder) tick(op *operation) int64 {
	b.clock++
	if op.timed {
		b.clock = max(b.clock, op.time)
	}
	return b.clock
}

// operationOf reads a map; false is one that no client did.
func operationOf(v value) (*operation, bool, error) {
	if v.kind != mapping {
		return nil, false, &exchange.InputError{Line: v.line, What: fmt.Sprintf("%v is no operation: a history is of maps with :type, :process and :value", v)}
	}
	op := &operation{line: v.line}
	kind, ok := v.get("type")
	if !ok || kind.kind != keyword {
		return nil, false, &exchange.InputError{Line: v.line, What: "the operation has no :type, such as :invoke or :ok"}
	}
	op.kind = kind.text
	op.process, ok = v.get("process")
	if ok && op.process.kind != number {
		return nil, false, nil // the nemesis
	}
	if op.process.kind == number && op.process.n < 0 {
		return nil, false, &exchange.InputError{Line: v.line, What: "a :process is below zero"}
	}
	f, has := v.get("f")
	switch op.kind {
	case "invoke", "ok", "fail", "info":
	default:
		return nil, false, &exchange.InputError{Line: v.line, What: fmt.Sprintf("an operation of the type :%s is not known: :invoke, :ok, :fail and :info are", op.kind)}
	}
	if has && f.kind != null && f.text != "txn" {
		return nil, false, &exchange.InputError{Line: v.line, What: fmt.Sprintf("the operation is a %v: only transactions are read, whose :f is :txn", f)}
	}
	if time, ok := v.get("time"); ok && time.kind == number && time.n >= 0 {
		op.time, op.timed = time.n, true
	}
	op.value, _ = v.get("value")
	return op, true, nil
}

// end adds a transaction that has begun, and whose end is another operation, or the same where
// it has none.
func (b *builder) end(began, ended *operation, now int64) error {
	t := lists.Transaction{
		ID: history.ID(len(b.Transactions) + 1), Client: uint64(began.process.n), Begin: began.time, End: now,
		Outcome: map[string]history.Outcome{"ok": history.Committed, "fail": history.Aborted}[ended.kind],
	}
	from := began // what is known of one that did not answer is what it was to do
	if ended.kind == "ok" {
		from = ended
	}
	if from.value.kind != vector {
		return &exchange.InputError{Line: from.line, What: fmt.Sprintf("the :value of a transaction is a vector of operations, and not %v", from.value)}
	}
	for _, m := range from.value.list {
		op, err := b.step(m, ended.kind == "ok")
		if err != nil {
			return err
		}
		t.Ops = append(t.Ops, op)
		b.Operations++
	}
	b.Transactions = append(b.Transactions, t)
	b.lines = append(b.lines, ended.line)
	return nil
}

// step reads one operation of a transaction: [:append k v], [:r k [v …]], [:w k v] or [:r k v].
func (b *builder) step(m value, known bool) (lists.Op, error) {
	if m.kind != vector || len(m.list) != 3 || m.list[0].kind != keyword {
		return lists.Op{}, &exchange.InputError{Line: m.line, What: fmt.Sprintf("%v is no operation of a transaction: one is [:append k v], [:r k v] or [:w k v]", m)}
	}
	name, read := ":"+m.list[0].text, m.list[2]
	key, err := b.number(m.list[1])
	if err != nil {
		return lists.Op{}, err
	}
	op := lists.Op{Key: key}
	switch name {
	case ":append", ":w":
		b.appends, b.writes = b.appends || name == ":append", b.writes || name == ":w"
		op.Kind = lists.Append
		if op.Element, err = b.number(read); err != nil {
			return op, err
		}
	case ":r":
		op.Kind, op.Known = lists.Read, known
		switch {
		case !known || read.kind == null:
		case read.kind == vector:
			b.appends = true
			for _, e := range read.list {
				n, err := b.number(e)
				if err != nil {
					return op, err
				}
				op.List = append(op.List, n)
			}
		default:
			b.writes = true
			n, err := b.number(read)
			if err != nil {
				return op, err
			}
			op.List = []uint64{n}
		}
	default:
		return op, &exchange.InputError{Line: m.line, What: fmt.Sprintf("the operation %s is not known: a transaction is read of :append, :r and :w", name)}
	}
	if b.appends && b.writes {
		return op, &exchange.InputError{Line: m.line, What: fmt.Sprintf("%v is of a register, and the history has lists too, or the other way round: it is read of one of both", m)}
	}
	return op, nil
}

// named is the first number of keys and elements that are no whole numbers.
const named = 1 << 63

// number returns a number for a key or an element.
func (h *History) number(v value) (uint64, error) {
	switch v.kind {
	case number:
		if v.n >= 0 {
			return uint64(v.n), nil
		}
	case vector, mapping, null:
		return 0, &exchange.InputError{Line: v.line, What: fmt.Sprintf("%v is no key and no element", v)}
	}
	name := v.String()
	n, ok := h.numbers[name]
	if !ok {
		n = named + uint64(len(h.numbers))
		h.numbers[name], h.names[n] = n, name
	}
	return n, nil
}

// name writes a key or an element as the file has it.
func (h *History) name(n uint64) string {
	if text, ok := h.names[n]; ok {
		return text
	}
	return fmt.Sprint(n)
}

// list names what a list stands for.
func (h *History) list(key uint64) string {
	switch {
	case !h.Register:
		return "list " + h.name(key)
	case key < uint64(len(h.register)):
		key = h.register[key]
	}
	return "register " + h.name(key)
}

// finish adds what was begun and has no end, and makes lists of registers.
func (b *builder) finish() (*History, error) {
	var rest []*operation
	for _, op := range b.open {
		rest = append(rest, op)
	}
	sortByLine(rest)
	for _, op := range rest {
		if err := b.end(op, op, op.time); err != nil {
			return nil, err
		}
	}
	if len(b.Transactions) == 0 {
		return nil, &exchange.InputError{Line: 0, What: "it has no transaction"}
	}
	b.Times = b.invoked
	if !b.invoked {
		for i := range b.Transactions {
			b.Transactions[i].Client = uint64(i) // nobody knows what its client had seen
		}
	}
	if b.writes {
		b.registers()
	}
	return b.History, b.elementsOnce()
}

// elementsOnce says which element was appended twice to a list, if one was.
func (h *History) elementsOnce() error {
	type written struct{ key, element uint64 }
	seen := map[written]int{}
	for i := range h.Transactions {
		for _, op := range h.Transactions[i].Ops {
			if op.Kind != lists.Append {
				continue
			}
			a := written{op.Key, op.Element}
			if first, twice := seen[a]; twice {
				return &exchange.InputError{Line: h.lines[i], What: fmt.Sprintf("%s was written to %s before, by the transaction that ended in line %d: each element of a list, and each value of a register, is written once",
					h.name(op.Element), h.list(op.Key), h.lines[first])}
			}
			seen[a] = i
		}
	}
	return nil
}

package elle

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/check/lists"
	"stroppy/internal/foreign"
	"stroppy/internal/history"
)

// History is the content of a file: the clients' transactions in the order of their ends. Their times are
// positions in the order of the lines.
type History struct {
	Transactions []lists.Transaction
	Register     bool // it is of registers: to append is to write, and a list has one value
	Times        bool // its operations begin and end
	Operations   int

	lines      []int             // by transaction, where it ended
	began, end []int64           // by transaction, its :time in nanoseconds; -1 is none
	names      map[uint64]string // of keys and elements that are no whole numbers
	numbers    map[string]uint64
}

// operation is one line: an operation of a client.
type operation struct {
	line    int
	kind    string // invoke, ok, fail or info
	process value
	value   value
	at      int64 // its place in the order of the lines
	time    int64 // ns; -1: none
}

// Read reads a history in EDN or JSON: a sequence of maps, or one vector of maps.
func Read(data []byte) (*History, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	b := &builder{History: &History{names: map[uint64]string{}, numbers: map[string]uint64{}}, open: map[string]*operation{}}
	r := &reader{data: data, line: 1, json: isJSON(data)}
	if r.json {
		if err := checkJSON(data); err != nil {
			return nil, err
		}
	}
	for {
		v, ok, err := r.next(0)
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

// isJSON reports whether the first map of a history is JSON: its first key is a string.
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
	places  int64
}

// add adds the next line.
func (b *builder) add(v value) error {
	op, client, err := operationOf(v)
	if err != nil || !client {
		return err
	}
	b.places++
	op.at = b.places
	process := op.process.String()
	began := b.open[process]
	if op.kind == "invoke" {
		if began != nil {
			return &foreign.InputError{Line: op.line, What: fmt.Sprintf("process %s begins a transaction, and its transaction of line %d has not ended", process, began.line)}
		}
		b.invoked = true
		b.open[process] = op
		return nil
	}
	delete(b.open, process)
	if began == nil {
		if b.invoked {
			return &foreign.InputError{Line: op.line, What: fmt.Sprintf("process %s ends a transaction that it has not begun", process)}
		}
		began = op
	}
	return b.ended(began, op)
}

// operationOf parses a map. It returns false for an operation that no client did.
func operationOf(v value) (*operation, bool, error) {
	if v.kind != mapping {
		return nil, false, &foreign.InputError{Line: v.line, What: fmt.Sprintf("%v is no operation: a history is of maps with :type, :process and :value", v)}
	}
	op := &operation{line: v.line, time: -1}
	kind, ok := v.get("type")
	if !ok || kind.kind != keyword {
		return nil, false, &foreign.InputError{Line: v.line, What: "the operation has no :type, such as :invoke or :ok"}
	}
	op.kind = kind.text
	op.process, ok = v.get("process")
	if ok && op.process.kind != number {
		return nil, false, nil // the nemesis
	}
	if op.process.kind == number && op.process.n < 0 {
		return nil, false, &foreign.InputError{Line: v.line, What: "a :process is below zero"}
	}
	switch op.kind {
	case "invoke", "ok", "fail", "info":
	default:
		return nil, false, &foreign.InputError{Line: v.line, What: fmt.Sprintf("an operation of the type :%s is not known: :invoke, :ok, :fail and :info are", op.kind)}
	}
	if time, ok := v.get("time"); ok && time.kind == number && time.n >= 0 {
		op.time = time.n
	}
	op.value, _ = v.get("value")
	return op, true, nil
}

// ended adds a transaction with its beginning and its end; without an end, both are the same operation.
func (b *builder) ended(began, ended *operation) error {
	t := lists.Transaction{
		ID: history.ID(len(b.Transactions) + 1), Client: uint64(began.process.n), Begin: began.at, End: ended.at,
		Outcome: map[string]history.Outcome{"ok": history.Committed, "fail": history.Aborted}[ended.kind],
	}
	if began.process.kind != number { // it is not known what its client had seen
		t.Client = noProcess + uint64(t.ID)
	}
	from := began // without an answer, only the intention is known
	if ended.kind == "ok" {
		from = ended
	}
	if from.value.kind != vector {
		what := fmt.Sprintf("the :value of a transaction is a vector of operations such as [:r 1 nil], and not %v", from.value)
		return &foreign.InputError{Line: from.line, What: what}
	}
	for _, m := range from.value.list {
		op, err := b.step(m, ended.kind == "ok")
		if err != nil {
			return err
		}
		if t.Ops == nil {
			t.Ops = make([]lists.Op, 0, len(from.value.list))
		}
		t.Ops = append(t.Ops, op)
		b.Operations++
	}
	b.Transactions = append(b.Transactions, t)
	b.lines = append(b.lines, ended.line)
	b.began, b.end = append(b.began, began.time), append(b.end, ended.time)
	return nil
}

// step parses one operation of a transaction: [:append k v], [:r k [v …]], [:w k v] or [:r k v].
func (b *builder) step(m value, known bool) (lists.Op, error) {
	if m.kind == vector && len(m.list) == 2 && !known && m.list[0].text == "r" { // what it read is not known
		m.list = append(slices.Clone(m.list), value{line: m.line})
	}
	if m.kind != vector || len(m.list) != 3 || m.list[0].kind != keyword {
		return lists.Op{}, &foreign.InputError{Line: m.line, What: fmt.Sprintf("%v is no operation of a transaction: one is [:append k v], [:r k v] or [:w k v]", m)}
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
		return op, &foreign.InputError{Line: m.line, What: fmt.Sprintf("the operation %s is not known: a transaction is read of :append, :r and :w", name)}
	}
	if b.appends && b.writes {
		return op, &foreign.InputError{Line: m.line, What: fmt.Sprintf("%v is of a register, and the history has lists too, or the other way round: it is read of one of both", m)}
	}
	return op, nil
}

// noProcess is the first client number for transactions without a :process.
const noProcess = 1 << 62

// named is the first number for keys and elements that are not integers.
const named = 1 << 63

// number returns a number for a key or an element.
func (h *History) number(v value) (uint64, error) {
	switch v.kind {
	case number:
		if v.n >= 0 {
			return uint64(v.n), nil
		}
	case vector, mapping, null:
		return 0, &foreign.InputError{Line: v.line, What: fmt.Sprintf("%v is no key and no element", v)}
	}
	name := v.String()
	n, ok := h.numbers[name]
	if !ok {
		n = named + uint64(len(h.numbers))
		h.numbers[name], h.names[n] = n, name
	}
	return n, nil
}

// name returns a key or an element as in the file.
func (h *History) name(n uint64) string {
	if text, ok := h.names[n]; ok {
		return text
	}
	return fmt.Sprint(n)
}

// list returns the name of a list or a register.
func (h *History) list(key uint64) string {
	if h.Register {
		return "register " + h.name(key)
	}
	return "list " + h.name(key)
}

// lasted returns the time between the end of one transaction and the beginning of another, if the file has
// both times.
func (h *History) lasted(ended, began int) (time.Duration, bool) {
	from, to := h.end[ended], h.began[began]
	return time.Duration(to - from), from >= 0 && to > from
}

// finish adds the operations without an end.
func (b *builder) finish() (*History, error) {
	var rest []*operation
	for _, op := range b.open {
		rest = append(rest, op)
	}
	slices.SortFunc(rest, func(a, b *operation) int { return cmp.Compare(a.line, b.line) })
	for _, op := range rest {
		if err := b.ended(op, op); err != nil {
			return nil, err
		}
	}
	if len(b.Transactions) == 0 {
		return nil, &foreign.InputError{Line: 0, What: "it has no transaction"}
	}
	b.Times, b.Register = b.invoked, b.writes
	return b.History, b.elementsOnce()
}

// elementsOnce returns an error if an element was appended twice to a list.
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
				return &foreign.InputError{Line: h.lines[i], What: fmt.Sprintf("%s was written to %s before, by the transaction that ended in line %d: each element of a list, and each value of a register, is written once",
					h.name(op.Element), h.list(op.Key), h.lines[first])}
			}
			seen[a] = i
		}
	}
	return nil
}

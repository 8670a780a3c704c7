package script

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Machine holds the variables and the random generator of one client. It is not safe for concurrent use.
type Machine struct {
	Vars  []Value                              // by slot
	Debug func(file string, line int, v Value) // receives the arguments of debug(), if it is set
	names []string

	texts  [][]byte // the memory of each variable of kind Text
	source rand.PCG
	random *rand.Rand
	at     *Expr

	savedVars   []Value
	savedTexts  [][]byte
	savedSource rand.PCG
}

// NewMachine returns a client's machine. The same seeds draw the same values. A variable that Parse's defined does not
// hold is Undefined until it is set.
func (p *Program) NewMachine(seed1, seed2 uint64) *Machine {
	count := len(p.initial)
	m := &Machine{
		Vars: slices.Clone(p.initial), names: p.Names, texts: make([][]byte, count), source: *rand.NewPCG(seed1, seed2),
		savedVars: make([]Value, count), savedTexts: make([][]byte, count),
	}
	m.random = rand.New(&m.source)
	return m
}

// SetText sets a variable to a column of a result. The value has no type until an expression uses it (see Typed).
func (m *Machine) SetText(slot int, text []byte, null bool) {
	if null {
		m.Vars[slot] = Value{}
		return
	}
	m.texts[slot] = append(m.texts[slot][:0], text...)
	m.Vars[slot] = Value{Kind: Text, Text: m.texts[slot]}
}

// Save remembers the variables and the state of the generator, for Restore.
func (m *Machine) Save() {
	m.savedSource = m.source
	for i, v := range m.Vars {
		if v.Kind == Text {
			m.savedTexts[i] = append(m.savedTexts[i][:0], v.Text...)
			v.Text = nil
		}
		m.savedVars[i] = v
	}
}

// Restore returns to the state of the last Save, so that a retry draws the same values. Save must have been called.
func (m *Machine) Restore() {
	m.source = m.savedSource
	for i, v := range m.savedVars {
		if v.Kind == Text {
			m.SetText(i, m.savedTexts[i], false)
			continue
		}
		m.Vars[i] = v
	}
}

// Bound returns an error if a parameter of the statement has no value yet.
func (m *Machine) Bound(s *SQL) error {
	for _, slot := range s.Params {
		if m.Vars[slot].Kind == Undefined {
			return &Error{File: s.file, Line: s.Line, Problem: undefined(m.names[slot]).Error()}
		}
	}
	return nil
}

func undefined(name string) error {
	return fmt.Errorf("the variable %s has no value yet: set it before this line in every case", name)
}

// Eval returns the value of an expression, which is never a Text. The error is an *Error with file and line.
func (m *Machine) Eval(e *Expr) (Value, error) {
	m.at = e
	v, err := m.eval(e.root)
	if err != nil {
		return Value{}, &Error{File: e.file, Line: e.line, Problem: err.Error()}
	}
	return v, nil
}

// True reports whether the condition of a JumpUnless holds. Null and zero are false.
func (m *Machine) True(e *Expr) (bool, error) {
	v, err := m.Eval(e)
	return v.truth(), err
}

func (v Value) truth() bool {
	return v.Kind == Double && v.Double != 0 || v.Kind != Double && v.Int != 0
}

// Duration returns how long a Sleep waits. Fractions of the unit are cut off, and a negative time is 0.
func (m *Machine) Duration(s *Step) (time.Duration, error) {
	v, err := m.Eval(s.Expr)
	if err != nil {
		return 0, err
	}
	count := float64(v.Int)
	if v.Kind == Double {
		count = math.Trunc(v.Double)
	}
	d := count * float64(s.Unit)
	switch {
	case v.Kind != Integer && v.Kind != Double:
		err = fmt.Errorf(`\sleep needs a number, not a %s`, v.Kind)
	case !(d < math.MaxInt64):
		err = fmt.Errorf(`\sleep cannot wait for %g times %s`, count, s.Unit)
	default:
		return time.Duration(max(d, 0)), nil
	}
	return 0, &Error{File: s.Expr.file, Line: s.Line, Problem: err.Error()}
}

func (m *Machine) eval(n *node) (Value, error) {
	switch n.op {
	case opConstant:
		return n.value, nil
	case opVariable:
		return m.variable(n.slot)
	case opAnd, opOr:
		return m.logical(n)
	case opCase:
		return m.choose(n.args)
	case opLeast, opGreatest:
		return m.extremum(n)
	}
	var args [3]Value
	null := false
	for i, arg := range n.args {
		v, err := m.eval(arg)
		if err != nil {
			return Value{}, err
		}
		args[i] = v
		null = null || v.Kind == Null
	}
	switch {
	case n.op == opIs:
		return boolean(args[0].Kind == args[1].Kind && args[0].Int == args[1].Int), nil
	case n.op == opDebug:
		if m.Debug != nil {
			m.Debug(m.at.file, m.at.line, args[0])
		}
		return args[0], nil
	case null:
		return Value{}, nil
	}
	return m.apply(n.op, &args)
}

// apply computes an operation on operands that are not null.
func (m *Machine) apply(op operation, args *[3]Value) (Value, error) {
	switch {
	case op <= opLess && op != opModulo && (args[0].Kind == Double || args[1].Kind == Double):
		return onDoubles(op, args)
	case op <= opShiftRight:
		return onIntegers(op, args)
	case op <= opRandomZipfian:
		return m.draw(op, args)
	case op == opNot:
		b, err := args[0].boolean()
		return boolean(!b), err
	case op == opPi:
		return double(math.Pi), nil
	case op == opAbs && args[0].Kind == Integer:
		if args[0].Int == math.MinInt64 {
			return Value{}, outOfRange("abs")
		}
		return integer(max(args[0].Int, -args[0].Int)), nil
	case op == opInt:
		i, err := args[0].integer()
		return integer(i), err
	case op <= opPower:
		return onRealNumbers(op, args)
	}
	return onKeys(op, args)
}

func (m *Machine) variable(slot int) (Value, error) {
	v := m.Vars[slot]
	switch v.Kind {
	case Undefined:
		return Value{}, undefined(m.names[slot])
	case Text:
		typed, ok := Typed(v.Text)
		if !ok {
			return Value{}, fmt.Errorf("the value %q of the variable %s is no number, boolean or null", v.Text, m.names[slot])
		}
		return typed, nil
	}
	return v, nil
}

// logical computes AND and OR. Unlike in SQL, a null operand that is evaluated makes the result null.
func (m *Machine) logical(n *node) (Value, error) {
	v, err := m.eval(n.args[0])
	if err != nil || v.Kind == Null {
		return Value{}, err
	}
	b, err := v.boolean()
	if err != nil || b == (n.op == opOr) {
		return boolean(b), err
	}
	if v, err = m.eval(n.args[1]); err != nil || v.Kind == Null {
		return Value{}, err
	}
	b, err = v.boolean()
	return boolean(b), err
}

// choose computes CASE: conditions and values in turn, and the value of ELSE at the end.
func (m *Machine) choose(args []*node) (Value, error) {
	for ; len(args) > 1; args = args[2:] {
		v, err := m.eval(args[0])
		if err != nil {
			return Value{}, err
		}
		if v.truth() {
			return m.eval(args[1])
		}
	}
	return m.eval(args[0])
}

// extremum computes least and greatest. The result is a double if an argument is one.
func (m *Machine) extremum(n *node) (Value, error) {
	var whole int64
	var real float64
	var mistake error
	doubles, null := false, false
	for i, arg := range n.args {
		v, err := m.eval(arg)
		if err != nil {
			return Value{}, err
		}
		d, err := v.double()
		switch {
		case v.Kind == Null:
			null = true
		case err != nil:
			mistake = err
		default:
			doubles = doubles || v.Kind == Double
			keep := i > 0 && (n.op == opLeast && real < d || n.op == opGreatest && real > d) // as C does with NaN
			if !keep {
				real = d
			}
			if i == 0 || n.op == opLeast == (v.Int < whole) {
				whole = v.Int
			}
		}
	}
	switch {
	case null:
		return Value{}, nil
	case mistake != nil:
		return Value{}, mistake
	case doubles:
		return double(real), nil
	}
	return integer(whole), nil
}

func outOfRange(operation string) error {
	return fmt.Errorf("the result of %s does not fit into a 64-bit integer", operation)
}

var (
	errDivision = errors.New("division by zero")
	errSize     = errors.New("the size of permute must be above 0")
)

func (v Value) boolean() (bool, error) {
	if v.Kind != Boolean {
		return false, fmt.Errorf("the value is of type %s where a boolean is needed", v.Kind)
	}
	return v.Int != 0, nil
}

// integer rounds a double to the nearest integer, and halves to even.
func (v Value) integer() (int64, error) {
	switch v.Kind {
	case Integer:
		return v.Int, nil
	case Double:
		d := math.RoundToEven(v.Double)
		if !(d >= math.MinInt64 && d < math.MaxInt64) {
			return 0, fmt.Errorf("%g does not fit into a 64-bit integer", v.Double)
		}
		return int64(d), nil
	}
	return 0, fmt.Errorf("the value is of type %s where an integer is needed", v.Kind)
}

func (v Value) double() (float64, error) {
	switch v.Kind {
	case Integer:
		return float64(v.Int), nil
	case Double:
		return v.Double, nil
	}
	return 0, fmt.Errorf("the value is of type %s where a number is needed", v.Kind)
}

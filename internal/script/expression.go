package script

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Expr is a checked expression. A Machine evaluates it.
type Expr struct {
	file string
	line int
	root *node
}

type node struct {
	op    operation
	args  []*node
	value Value // of opConstant
	slot  int   // of opVariable
}

// The limits bound the recursion of the parser and the evaluator.
const (
	maxDepth     = 500
	maxOperators = 5000
)

// token is a lexical element of an expression. Its text is in small letters: a symbol, a word, a number, ":" and a
// name, or "" at the end of the command.
type token struct {
	text string
	at   int // offset in the file
}

func (t token) number() bool {
	return t.text != "" && (isDigit(t.text[0]) || len(t.text) > 1 && t.text[0] == '.')
}

// word reports whether the token is a name of a function or a keyword.
func (t token) word() bool { return t.text != "" && isNameStart(t.text[0]) }

// expression parses the rest of a meta command.
func (p *parser) expression() *Expr {
	p.depth, p.chain = 0, 0
	p.next()
	e := &Expr{file: p.file.Name, root: p.operators(0)}
	e.line, _ = p.position(p.token.at)
	if p.token.text != "" {
		p.unexpected("an operator")
	}
	return e
}

// next reads a token. A newline ends the command, unless a backslash is before it.
func (p *parser) next() {
	p.skipSpace()
	rest := p.text[p.pos:]
	n := 0
	switch {
	case rest == "" || rest[0] == '\n':
	case isDigit(rest[0]) || rest[0] == '.' && len(rest) > 1 && isDigit(rest[1]):
		n = numberLength(rest)
	case isNameStart(rest[0]):
		n = nameLength(rest)
	case rest[0] == ':':
		for n = 1; n < len(rest) && isNamePart(rest[n]); n++ {
		}
	case strings.Contains(" <> != <= >= << >> ", " "+rest[:min(2, len(rest))]+" "):
		n = 2
	case strings.IndexByte("+-*/%(),<>=|&#~", rest[0]) >= 0:
		n = 1
	}
	if n == 0 && rest != "" && rest[0] != '\n' || n == 1 && rest[0] == ':' {
		character, _ := utf8.DecodeRuneInString(rest)
		p.fail(p.pos, "unexpected character %q in an expression", character)
	}
	p.token = token{text: rest[:n], at: p.pos}
	if n > 0 && rest[0] != ':' {
		p.token.text = strings.ToLower(rest[:n])
	}
	p.pos += n
}

// numberLength returns the length of the digits, the fraction and the exponent that the text begins with.
func numberLength(text string) int {
	digits := func(n int) int {
		for n < len(text) && isDigit(text[n]) {
			n++
		}
		return n
	}
	n := digits(0)
	if n < len(text) && text[n] == '.' {
		n = digits(n + 1)
	}
	if n < len(text) && text[n]|0x20 == 'e' {
		sign := n + 1
		if sign < len(text) && (text[sign] == '+' || text[sign] == '-') {
			sign++
		}
		if end := digits(sign); end > sign {
			return end
		}
	}
	return n
}

// The levels of precedence, from the weakest.
const (
	levelOr = iota + 1
	levelAnd
	levelNot
	levelIs
	levelCompare
	levelBits
	levelSum
	levelProduct
	levelSign
)

var binary = map[string]struct {
	level   int
	op      operation
	swapped bool // a > b is b < a
}{
	"or": {levelOr, opOr, false}, "and": {levelAnd, opAnd, false},
	"<": {levelCompare, opLess, false}, "<=": {levelCompare, opAtMost, false}, "=": {levelCompare, opEqual, false},
	">": {levelCompare, opLess, true}, ">=": {levelCompare, opAtMost, true}, "<>": {levelCompare, opUnequal, false},
	"!=": {levelCompare, opUnequal, false},
	"|":  {levelBits, opBitOr, false}, "#": {levelBits, opBitXor, false}, "&": {levelBits, opBitAnd, false},
	"<<": {levelBits, opShiftLeft, false}, ">>": {levelBits, opShiftRight, false},
	"+": {levelSum, opAdd, false}, "-": {levelSum, opSubtract, false},
	"*": {levelProduct, opMultiply, false}, "/": {levelProduct, opDivide, false}, "%": {levelProduct, opModulo, false},
}

// operators parses operators of at least a level. Comparisons do not associate: a < b < c is an error.
func (p *parser) operators(level int) *node {
	p.depth++
	if p.depth > maxDepth {
		p.fail(p.token.at, "the expression is nested more than %d deep", maxDepth)
	}
	left := p.prefix()
	for compared := false; ; p.chain++ {
		if p.chain > maxOperators {
			p.fail(p.token.at, "the expression has more than %d operators", maxOperators)
		}
		symbol := p.token.text
		if level <= levelIs && (symbol == "is" || symbol == "isnull" || symbol == "notnull") {
			left, compared = p.is(left), false
			continue
		}
		o, ok := binary[symbol]
		if !ok || o.level < level {
			p.depth--
			return left
		}
		if compared && o.level == levelCompare {
			p.fail(p.token.at, "%s follows another comparison: write parentheses", symbol)
		}
		p.next()
		right := p.operators(o.level + 1)
		if o.swapped {
			left, right = right, left
		}
		left, compared = folded(o.op, left, right), o.level == levelCompare
	}
}

func constant(v Value) *node { return &node{op: opConstant, value: v} }

// folded returns a node of two operands, or its value if both are constants. An error waits for the evaluation, which
// may never reach the node.
func folded(op operation, left, right *node) *node {
	n := &node{op: op, args: []*node{left, right}}
	if left.op == opConstant && right.op == opConstant {
		if v, err := new(Machine).eval(n); err == nil {
			return constant(v)
		}
	}
	return n
}

func negation(n *node) *node { return &node{op: opNot, args: []*node{n}} }

// is parses IS [NOT] NULL, IS [NOT] TRUE, IS [NOT] FALSE, ISNULL and NOTNULL.
func (p *parser) is(left *node) *node {
	word := p.token.text
	p.next()
	value, not := Value{}, word == "notnull"
	if word == "is" {
		if not = p.token.text == "not"; not {
			p.next()
		}
		switch p.token.text {
		case "null":
		case "true", "false":
			value = boolean(p.token.text == "true")
		default:
			p.unexpected("NULL, TRUE or FALSE")
		}
		p.next()
	}
	test := &node{op: opIs, args: []*node{left, constant(value)}}
	if not {
		return negation(test)
	}
	return test
}

// prefix parses an operand with the operators before it. Each of these reaches as far as its level allows.
func (p *parser) prefix() *node {
	symbol := p.token
	switch symbol.text {
	case "+":
		p.next()
		return p.operators(levelSign)
	case "-":
		p.next()
		if p.token.text == "9223372036854775808" {
			p.next()
			return constant(integer(-1 << 63))
		}
		return folded(opSubtract, constant(integer(0)), p.operators(levelSign))
	case "~":
		p.next()
		return folded(opBitXor, constant(integer(-1)), p.operators(levelBits+1))
	case "not":
		p.next()
		return negation(p.operators(levelNot))
	}
	return p.operand()
}

func (p *parser) operand() *node {
	t := p.token
	switch {
	case t.text == "(":
		p.next()
		inner := p.operators(0)
		p.expect(")")
		return inner
	case t.text == "null":
		p.next()
		return constant(Value{})
	case t.text == "true", t.text == "false":
		p.next()
		return constant(boolean(t.text == "true"))
	case t.text == "case":
		return p.choice()
	case t.number():
		p.next()
		return p.constantNumber(t)
	case t.text != "" && t.text[0] == ':':
		p.next()
		return &node{op: opVariable, slot: p.use(t.text[1:], t.at)}
	case t.word() && !keywords[t.text]:
		return p.call()
	}
	p.unexpected("a value")
	return nil
}

var keywords = map[string]bool{"and": true, "or": true, "not": true, "is": true, "isnull": true, "notnull": true,
	"case": true, "when": true, "then": true, "else": true, "end": true}

func (p *parser) constantNumber(t token) *node {
	if isInteger([]byte(t.text)) {
		i, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			p.fail(t.at, "the integer %s does not fit into 64 bits", t.text)
		}
		return constant(integer(i))
	}
	d, ok := parseDouble(t.text)
	if !ok {
		p.fail(t.at, "the number %s does not fit into a double", t.text)
	}
	return constant(double(d))
}

// choice parses CASE WHEN condition THEN value … [ELSE value] END.
func (p *parser) choice() *node {
	p.next()
	n := &node{op: opCase}
	for {
		p.expect("when")
		condition := p.operators(0)
		p.expect("then")
		n.args = append(n.args, condition, p.operators(0))
		if p.token.text != "when" {
			break
		}
	}
	otherwise := constant(Value{})
	if p.token.text == "else" {
		p.next()
		otherwise = p.operators(0)
	}
	p.expect("end")
	n.args = append(n.args, otherwise)
	return n
}

// call parses the call of a function and checks the number of its arguments.
func (p *parser) call() *node {
	name := p.token
	f, known := functions[name.text]
	if !known {
		p.fail(name.at, "unknown function %s; the functions are %s", name.text, functionNames())
	}
	p.next()
	p.expect("(")
	n := &node{op: f.op}
	for p.token.text != ")" {
		if len(n.args) > 0 {
			p.expect(",")
		}
		n.args = append(n.args, p.operators(0))
	}
	p.next()
	if count := len(n.args); count < f.least || count > f.most {
		wanted := strconv.Itoa(f.least)
		if f.most > f.least {
			wanted = fmt.Sprintf("%d to %d", f.least, f.most)
		}
		p.fail(name.at, "%s takes %s arguments, not %d", name.text, wanted, count)
	}
	if f.seeded && len(n.args) < f.most {
		n.args = append(n.args, &node{op: opVariable, slot: p.use("default_seed", name.at)})
	}
	return n
}

func (p *parser) expect(text string) {
	if p.token.text != text {
		p.unexpected(strings.ToUpper(text))
	}
	p.next()
}

func (p *parser) unexpected(wanted string) {
	if p.token.text == "" {
		p.fail(p.token.at, "the expression ends where %s is expected", wanted)
	}
	p.fail(p.token.at, "unexpected %s where %s is expected", p.token.text, wanted)
}

// Variables returns the slots of the variables in the expression.
func (e *Expr) Variables() []int { return e.root.variables(nil) }

func (n *node) variables(list []int) []int {
	if n.op == opVariable {
		list = append(list, n.slot)
	}
	for _, arg := range n.args {
		list = arg.variables(list)
	}
	return list
}

package script

import (
	"strconv"
	"strings"
	"time"
)

// block is an \if that is not closed.
type block struct {
	at          int
	condition   int   // the JumpUnless that leads to the next branch, or -1 after \else
	ends        []int // the Jumps from the ends of branches
	otherwise   bool  // \else was seen
	before      bool  // whether a pipeline was begun before \if
	after       bool  // … and after the first branch
	afterBranch bool  // after is known
}

// commandNames are the meta commands, as a message lists them.
const commandNames = `\set, \gset, \aset, \if, \elif, \else, \endif, \sleep, ` +
	`\startpipeline, \syncpipeline, \endpipeline`

// command parses a meta command, from behind its backslash to the end of the line.
func (p *parser) command() {
	at := p.pos - 1
	name, _ := p.word()
	last := p.last
	p.last = nil
	switch strings.ToLower(name) {
	case "set":
		p.set()
	case "gset":
		p.store(at, last, GSet)
	case "aset":
		p.store(at, last, ASet)
	case "if":
		p.blocks = append(p.blocks, block{at: at, before: p.pipeline})
		p.condition(at)
	case "elif", "else", "endif":
		p.branch(at, strings.ToLower(name))
	case "sleep":
		p.sleep(at)
	case "startpipeline", "syncpipeline", "endpipeline":
		p.pipelining(at, strings.ToLower(name))
	case "shell", "setshell":
		p.fail(at, `\%s is refused: a script cannot run programs`, name)
	default:
		p.fail(at, `unknown command \%s; the commands are %s`, name, commandNames)
	}
	if extra, at := p.word(); extra != "" {
		p.fail(at, `\%s has an argument too many: %s`, name, extra)
	}
}

// skipSpace skips space on the line, and a backslash before a newline.
func (p *parser) skipSpace() {
	for p.pos < len(p.text) {
		if n := continuation(p.text[p.pos:]); n > 0 {
			p.pos += n
		} else if c := p.text[p.pos]; c != '\n' && isSpace(c) {
			p.pos++
		} else {
			return
		}
	}
}

// continuation returns the length of a backslash and a newline at the beginning of the text.
func continuation(text string) int {
	switch {
	case strings.HasPrefix(text, "\\\n"):
		return 2
	case strings.HasPrefix(text, "\\\r\n"):
		return 3
	}
	return 0
}

// word reads a word of a meta command, which is empty at the end of the line.
func (p *parser) word() (text string, at int) {
	p.skipSpace()
	at = p.pos
	for p.pos < len(p.text) && !isSpace(p.text[p.pos]) && continuation(p.text[p.pos:]) == 0 {
		p.pos++
	}
	return p.text[at:p.pos], at
}

func (p *parser) set() {
	name, at := p.word()
	switch {
	case name == "":
		p.fail(at, `\set needs the name of a variable and an expression`)
	case !validName(name):
		p.fail(at, badName, name)
	}
	e := p.expression()
	p.step(at, Step{Op: Assign, Slot: p.names.slot(name), Expr: e})
	addFirst(p.names.sets, place{name, p, p.pos})
}

// store makes the statement before it store its results.
func (p *parser) store(at int, last *SQL, s Store) {
	name := map[Store]string{GSet: `\gset`, ASet: `\aset`}[s]
	prefix, where := p.word()
	switch {
	case last == nil:
		p.fail(at, "%s must follow a statement", name)
	case p.pipeline:
		p.fail(at, "%s is not possible inside of a pipeline, whose results come at its end", name)
	case prefix != "" && !validName(prefix):
		p.fail(where, "%q cannot begin the name of a variable", prefix)
	}
	last.Store, last.Prefix = s, prefix
	addFirst(p.names.stores, place{prefix, p, p.pos})
}

func (p *parser) condition(at int) {
	e := p.expression()
	p.blocks[len(p.blocks)-1].condition = p.step(at, Step{Op: JumpUnless, Expr: e})
}

// branch parses \elif, \else and \endif.
func (p *parser) branch(at int, name string) {
	if len(p.blocks) == 0 {
		p.fail(at, `\%s has no \if before it`, name)
	}
	b := &p.blocks[len(p.blocks)-1]
	if b.otherwise && name != "endif" {
		p.fail(at, `\%s follows \else`, name)
	}
	if b.afterBranch && p.pipeline != b.after || name == "endif" && !b.otherwise && p.pipeline != b.before {
		p.fail(at, `a pipeline begins or ends in one branch of \if only`)
	}
	b.after, b.afterBranch = p.pipeline, true
	if name != "endif" {
		p.pipeline = b.before
		b.ends = append(b.ends, p.step(at, Step{Op: Jump}))
	}
	here, steps := len(p.script.Steps), p.script.Steps
	if b.condition >= 0 {
		steps[b.condition].Target = here
	}
	b.condition = -1
	switch name {
	case "elif":
		p.condition(at)
	case "else":
		b.otherwise = true
	case "endif":
		for _, end := range b.ends {
			steps[end].Target = here
		}
		p.blocks = p.blocks[:len(p.blocks)-1]
	}
}

var units = map[string]time.Duration{"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "": time.Second}

// sleep parses \sleep. The unit may follow the number without a space.
func (p *parser) sleep(at int) {
	text, where := p.word()
	line, _ := p.position(at)
	e := &Expr{file: p.file.Name, line: line}
	unit := ""
	switch {
	case text == "":
		p.fail(where, `\sleep needs a number or a variable`)
	case text[0] == ':' && validName(text[1:]):
		e.root = &node{op: opVariable, slot: p.use(text[1:], where)}
	default:
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		count, err := strconv.ParseInt(text[:digits], 10, 64)
		if err != nil || strings.HasPrefix(text[digits:], ".") {
			p.fail(where, `\sleep needs a whole number or a variable, not %s`, text)
		}
		e.root, unit = constant(integer(count)), text[digits:]
	}
	if unit == "" {
		unit, where = p.word()
	}
	d, known := units[strings.ToLower(unit)]
	if !known {
		p.fail(where, "unknown unit of time %s: write us, ms or s", unit)
	}
	p.step(at, Step{Op: Sleep, Expr: e, Unit: d})
}

func (p *parser) pipelining(at int, name string) {
	op := map[string]Op{"startpipeline": StartPipeline, "syncpipeline": SyncPipeline, "endpipeline": EndPipeline}[name]
	switch {
	case op == StartPipeline && p.pipeline:
		p.fail(at, `\startpipeline inside of a pipeline`)
	case op != StartPipeline && !p.pipeline:
		p.fail(at, `\%s outside of a pipeline: write \startpipeline before it`, name)
	}
	p.pipeline = op != EndPipeline
	p.step(at, Step{Op: op})
}

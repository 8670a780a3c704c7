package script

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Parse checks all scripts. defined holds the variables that the command line and the workload set. The first mistake
// is returned as an *Error.
func Parse(files []File, defined map[string]Value) (program *Program, err error) {
	defer func() {
		switch mistake := recover().(type) {
		case nil:
		case *Error:
			program, err = nil, mistake
		default:
			panic(mistake)
		}
	}()
	names := newNames()
	for _, name := range append(slices.Clone(special), slices.Sorted(maps.Keys(defined))...) {
		if !validName(name) {
			panic(&Error{Problem: fmt.Sprintf(badName, name)})
		}
		names.slot(name)
		names.known[name] = true
	}
	program = &Program{}
	total := 0
	for _, file := range files {
		if file.Weight < 0 {
			panic(&Error{Problem: fmt.Sprintf("the weight of %s is below 0", file.Name)})
		}
		total += file.Weight
		program.Scripts = append(program.Scripts, newParser(file, names).parse())
	}
	if total == 0 {
		panic(&Error{Problem: "no script has a weight above 0"})
	}
	names.check()
	program.Names, program.slots = names.list, names.slots
	for _, name := range program.Names {
		v, ok := defined[name]
		if !ok {
			v.Kind = Undefined
		}
		program.initial = append(program.initial, v)
	}
	return program, nil
}

const badName = "%q is no name of a variable: begin with a letter, and write letters, digits and _"

// names are the variables of all scripts of a program.
type names struct {
	list   []string
	slots  map[string]int
	known  map[string]bool    // no script has to set them
	sets   map[string][]place // where a script sets a variable first
	stores map[string][]place // where a script first sets variables with a prefix by \gset or \aset
	uses   []place
	quoted []place // in a string, where pgbench would replace the name
}

// place is an occurrence of a variable.
type place struct {
	name   string
	parser *parser
	at     int
}

func newNames() *names {
	return &names{
		slots: map[string]int{}, known: map[string]bool{}, sets: map[string][]place{}, stores: map[string][]place{},
	}
}

func (n *names) slot(name string) int {
	slot, ok := n.slots[name]
	if !ok {
		slot = len(n.list)
		n.slots[name] = slot
		n.list = append(n.list, name)
	}
	return slot
}

// addFirst adds a place unless the list has an earlier one of the same script.
func addFirst(list map[string][]place, p place) {
	places := list[p.name]
	if len(places) == 0 || places[len(places)-1].parser != p.parser {
		list[p.name] = append(places, p)
	}
}

// check refuses a variable that nothing sets before it is used. Another script may set a variable, because all scripts
// of a client share their variables.
func (n *names) check() {
	for _, use := range n.uses {
		before := func(p place) bool { return p.parser != use.parser || p.at < use.at }
		set := n.known[use.name] || slices.ContainsFunc(n.sets[use.name], before)
		for prefix, places := range n.stores {
			matches := len(use.name) > len(prefix) && strings.HasPrefix(use.name, prefix)
			set = set || matches && slices.ContainsFunc(places, before)
		}
		late := len(n.sets[use.name]) > 0
		switch {
		case set:
		case late:
			use.parser.fail(use.at, "the variable %s is used before it is set", use.name)
		default:
			use.parser.fail(use.at, `nothing sets the variable %s: use \set, \gset or --define, or write a space behind the colon`,
				use.name)
		}
	}
	for _, use := range n.quoted {
		if _, parameter := n.slots[use.name]; parameter {
			use.parser.fail(use.at, "the parameter :%s is inside of quotes: close them before it, and join the texts by ||",
				use.name)
		}
	}
}

// parser reads one script. It leaves a mistake by a panic with an *Error.
type parser struct {
	names  *names
	file   File
	text   string
	lines  []int // offsets
	pos    int
	script *Script

	token    token // of the expression
	depth    int
	chain    int
	blocks   []block
	pipeline bool // whether the script has begun a pipeline at this place
	last     *SQL // the statement to which \gset would apply
}

func newParser(file File, n *names) *parser {
	script := &Script{Name: file.Name, Weight: file.Weight}
	p := &parser{names: n, file: file, text: file.Text, lines: []int{0}, script: script}
	for i := range len(p.text) {
		if p.text[i] == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	return p
}

// parse alternates between statements and meta commands.
func (p *parser) parse() *Script {
	for p.pos < len(p.text) {
		if p.statement() {
			p.command()
		}
	}
	switch {
	case len(p.blocks) > 0:
		p.fail(p.blocks[len(p.blocks)-1].at, `\if has no \endif`)
	case p.pipeline:
		p.fail(len(p.text), `the script ends inside of a pipeline: write \endpipeline`)
	case len(p.script.Steps) == 0:
		panic(&Error{Problem: fmt.Sprintf("the script %s is empty", p.file.Name)})
	}
	return p.script
}

// position returns the line and the column of an offset, from 1.
func (p *parser) position(at int) (line, column int) {
	line = sort.Search(len(p.lines), func(i int) bool { return p.lines[i] > at })
	return line, utf8.RuneCountInString(p.text[p.lines[line-1]:at]) + 1
}

func (p *parser) fail(at int, format string, args ...any) {
	line, column := p.position(at)
	panic(&Error{p.file.Name, line, column, fmt.Sprintf(format, args...)})
}

// use records that an expression or a statement reads a variable.
func (p *parser) use(name string, at int) int {
	p.names.uses = append(p.names.uses, place{name, p, at})
	return p.names.slot(name)
}

func (p *parser) step(at int, s Step) int {
	s.Line, _ = p.position(at)
	p.script.Steps = append(p.script.Steps, s)
	return len(p.script.Steps) - 1
}

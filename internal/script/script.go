// Package script is the language of pgbench's scripts: SQL statements with :name parameters, and meta commands with
// expressions. Parse checks all scripts before anything runs. A Machine holds the variables of one client, and
// evaluates expressions without allocating.
//
// The source of the language is pgbench's manual (PostgreSQL 18, "Custom Scripts", "Built-in Operators" and "Built-In
// Functions"); pgbench 15 and 17 settled the rest. The functions hash, hash_fnv1a, hash_murmur2 and permute return
// pgbench's values. Random functions have pgbench's formulas and distributions. Their generator is another, so that
// the same seed draws other values than in pgbench.
package script

import (
	"fmt"
	"strings"
	"time"
)

// Error is a mistake in a script, or a failure to evaluate one of its expressions.
type Error struct {
	File         string
	Line, Column int // from 1; a Column of 0 is unknown
	Problem      string
}

func (e *Error) Error() string {
	switch {
	case e.File == "" && e.Line == 0:
		return e.Problem
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// File is the text of one script. A client chooses among several scripts by their weights.
type File struct {
	Name, Text string
	Weight     int
}

// Program is all scripts of a run. They share their variables, as in pgbench.
type Program struct {
	Scripts []*Script
	Names   []string // slot -> variable
	slots   map[string]int
	initial []Value
}

// Slot returns the slot of a variable, and false if no script mentions it.
func (p *Program) Slot(name string) (int, bool) {
	slot, ok := p.slots[name]
	return slot, ok
}

// Settable returns the slot of a variable that a script sets, or that the columns of a result may set. It must be called
// before the first NewMachine.
func (p *Program) Settable(name string) (slot int, ok bool) {
	slot, used := p.slots[name]
	for _, s := range p.Scripts {
		for i := range s.Steps {
			step := &s.Steps[i]
			switch q := step.SQL; step.Op {
			case Assign:
				ok = ok || used && step.Slot == slot
			case Execute:
				ok = ok || q.Store != NoStore && len(name) > len(q.Prefix) && strings.HasPrefix(name, q.Prefix)
			}
		}
	}
	if ok && !used {
		slot = len(p.Names)
		p.slots[name], p.Names, p.initial = slot, append(p.Names, name), append(p.initial, Value{Kind: Undefined})
	}
	return slot, ok
}

// Column returns the slot of the variable that the statement's Store sets from a column, or -1 if no script uses the
// variable. It returns an error if the column's name cannot be a variable's name.
func (p *Program) Column(s *SQL, name string) (slot int, err error) {
	variable := s.Prefix + name
	if !validName(variable) {
		problem := fmt.Sprintf("the column %q cannot name a variable: give it a name by AS", name)
		return -1, &Error{File: s.file, Line: s.Line, Problem: problem}
	}
	if slot, used := p.slots[variable]; used {
		return slot, nil
	}
	return -1, nil
}

// Script is a checked file.
type Script struct {
	Name   string
	Weight int
	Steps  []Step
}

// Op is the kind of a step.
type Op uint8

// A step of a script. The script ends after its last step.
const (
	Assign        Op = iota // Slot = Expr
	Jump                    // continue at step Target
	JumpUnless              // continue at step Target if Expr is not true
	Execute                 // send SQL
	Sleep                   // wait for Expr × Unit (see Machine.Duration)
	StartPipeline           // begin to send statements without waiting for their results
	SyncPipeline            // mark the end of an implicit transaction in the pipeline
	EndPipeline             // wait for all results
)

// Step is an instruction of a script.
type Step struct {
	Op     Op
	Line   int
	Slot   int
	Expr   *Expr
	Target int
	SQL    *SQL
	Unit   time.Duration
}

// Store is the meta command that stores the results of a statement.
type Store uint8

// The meta commands that store results.
const (
	NoStore Store = iota
	GSet          // the only row, of the last statement if several are joined
	ASet          // the last row of each joined statement that returns rows
)

// SQL is a statement. Params[i] is the slot of the parameter between Parts[i] and Parts[i+1]. A parameter that occurs
// twice is in Params twice.
type SQL struct {
	Parts   []string
	Params  []int
	Store   Store
	Prefix  string // of the variables that Store sets: the variable is the prefix and the column's name
	Control Control
	Writes  Writes
	Keyword string // the first word, in capitals
	Joined  []*SQL // the statements that \; joined in one request; none for a single statement
	Line    int
	file    string
}

// Text returns the statement with placeholders of a database. The first parameter has number 1.
func (s *SQL) Text(placeholder func(number int) string) string {
	var b strings.Builder
	for i, part := range s.Parts {
		if i > 0 {
			b.WriteString(placeholder(i))
		}
		b.WriteString(part)
	}
	return b.String()
}

// special are the variables that pgbench sets. The caller of Parse or NewMachine sets them.
var special = []string{"scale", "client_id", "default_seed", "random_seed"}

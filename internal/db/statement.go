package db

import (
	"regexp"
	"strings"
)

// parameter is how a statement is written with a parameter of a type.
var parameter = regexp.MustCompile(`\{(integer|decimal|text)\}`)

// Statement makes a statement from SQL in which {integer}, {decimal} and {text} are
// parameters: each gets the next placeholder, so that a value used twice is given twice,
// as dialects without numbered placeholders need it. columns are those of its rows.
func (d *Dialect) Statement(sql string, columns ...Type) *Statement {
	s := &Statement{Columns: columns}
	s.SQL = parameter.ReplaceAllStringFunc(sql, func(name string) string {
		for t := range typeNames {
			if typeNames[t] == name {
				s.Params = append(s.Params, Type(t))
			}
		}
		return d.Placeholder(len(s.Params))
	})
	return s
}

var typeNames = [...]string{Integer: "{integer}", Decimal: "{decimal}", Text: "{text}"}

// Row is a list of parameters in brackets, as Statement takes it.
func Row(types ...Type) string {
	var names []string
	for _, t := range types {
		names = append(names, typeNames[t])
	}
	return "(" + strings.Join(names, ", ") + ")"
}

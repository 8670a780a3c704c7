package track

import (
	"math"
	"slices"
	"strings"
)

// pure are functions that compute a value from one row.
var pure = []string{
	"ABS", "CAST", "CEIL", "CEILING", "CHAR_LENGTH", "COALESCE", "CONCAT", "DATE_TRUNC", "EXTRACT", "FLOOR", "GREATEST",
	"IFNULL", "LEAST", "LENGTH", "LOWER", "MOD", "NULLIF", "ROUND", "SIGN", "SUBSTR", "SUBSTRING", "TO_CHAR", "TRIM",
	"UPPER", "AND", "OR", "NOT", "IN", "CASE", "WHEN", "THEN", "ELSE", "AS", "EXISTS", "DECIMAL", "NUMERIC", "VARCHAR",
	"CHAR", "INTERVAL",
}

// stars refuses each SELECT * on a tracked table, unless nothing reads the columns.
func (s *statement) stars() error {
	for i, t := range s.tokens {
		if !t.is("SELECT") || i > 1 && s.at(i-2).is("EXISTS") {
			continue
		}
		star, from := false, false
		for j := i + 1; j < len(s.tokens) && s.at(j).depth >= t.depth; j++ {
			one, before := s.at(j), s.at(j-1)
			if one.depth > t.depth {
				continue
			}
			from = from || one.is("FROM")
			star = star || !from && one.kind == '*' &&
				(before.is("SELECT", "ALL", "DISTINCT") || before.kind == ',' || before.kind == '.')
			for table := range s.Tables {
				if star && from && one.names(s.Tables[table].base()) {
					return refused("SELECT *", s.Tables[table])
				}
			}
		}
	}
	return nil
}

// read rewrites a SELECT.
func (s *statement) read() error {
	first := 1
	if s.at(1).is("ALL") {
		first = 2
	}
	from := s.find(1, "FROM")
	if from <= first || from >= len(s.tokens)-1 {
		s.Why = "it reads no table"
		return nil
	}
	_, why := s.columns(first, from)
	table, ref, next := s.table(from + 1)
	switch {
	case why != "":
		s.Why = why
	case s.at(1).is("DISTINCT"):
		s.Why = "it has DISTINCT"
	case table < 0 || !s.alone(),
		next < len(s.tokens) && !s.at(next).is("WHERE", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "LOCK"):
		s.Why = "it does not read one table alone"
	case s.find(from, "GROUP", "HAVING", "UNION", "INTERSECT", "EXCEPT", "MINUS", "WINDOW", "INTO") < len(s.tokens):
		s.Why = "it does not return single rows"
	default:
		s.condition(s.find(from, "WHERE"))
		s.build(Read, table, 3, insertion{s.tokens[from-1].to, ", " + extra(ref+".", s.Tables[table], true)})
	}
	return nil
}

// columns looks at the list of a SELECT.
func (s *statement) columns(first, from int) (star bool, why string) {
	start := first
	for i := first; i <= from; i++ {
		t := s.at(i)
		switch before := s.at(i - 1); {
		case i == from || t.depth == 0 && t.kind == ',':
			s.column(s.tokens[start:i])
			start = i + 1
		case t.kind == '*' && t.depth == 0 && (i == first || before.kind == ',' || before.kind == '.'):
			star = true
		case t.is("OVER"), t.kind == '(' && name(before) && !before.is(pure...):
			why = "it calls a function that may read several rows"
		case t.is("SELECT"):
			why = "it has a query in its list"
		}
	}
	return star, why
}

// condition notes the condition behind WHERE.
func (s *statement) condition(where int) {
	end := s.find(where+1, "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "LOCK", "RETURNING")
	for i := where + 1; i < end; i++ {
		t := s.at(i)
		if t.kind == param {
			s.WhereParams = append(s.WhereParams, s.params(t.from))
			s.Where += "? "
			continue
		}
		s.Where += strings.ToLower(s.text[t.from:t.to]) + " "
	}
}

// column notes a plain column with its name in the result.
func (s *statement) column(item []token) {
	i := 0
	for i+2 < len(item) && name(item[i]) && item[i+1].kind == '.' {
		i += 2
	}
	item = item[i:]
	switch {
	case len(item) == 0 || !name(item[0]):
	case len(item) == 1:
		s.Columns = append(s.Columns, [2]string{item[0].text, item[0].text})
	case name(item[len(item)-1]) && (len(item) == 2 || len(item) == 3 && item[1].is("AS")):
		s.Columns = append(s.Columns, [2]string{item[len(item)-1].text, item[0].text})
	}
}

// update rewrites an UPDATE.
func (s *statement) update() error {
	table, ref, set := s.table(1)
	if s.at(1).is("ONLY", "OR", "LOW_PRIORITY", "IGNORE") || !s.at(set).is("SET") {
		s.Why, s.Blind = "it does not write one table alone", true
		return nil
	}
	if table < 0 {
		return nil // it writes another table
	}
	where := s.find(set, "WHERE", "RETURNING", "ORDER", "LIMIT", "FROM")
	returning := s.find(set, "RETURNING")
	s.assignments(table, set+1, where)
	s.condition(s.find(set, "WHERE"))
	switch {
	case s.Why != "":
		s.Blind = true
	case !s.alone() || s.at(where).is("FROM"):
		s.Why, s.Blind = "it reads other rows too", true
	case s.star(returning):
		return refused("RETURNING *", s.Tables[table])
	default:
		s.write(Update, table, where, returning, insertion{
			s.at(set).to, " " + Version + " = " + ref + "." + Version + " + 1, " + Writer + " = " + string(rune(own)) + ",",
		})
	}
	return nil
}

// star reports whether a clause RETURNING has all columns.
func (s *statement) star(returning int) bool {
	star := false
	if returning < len(s.tokens) {
		star, _ = s.columns(returning+1, len(s.tokens))
	}
	return star
}

// assignments looks at the columns that an UPDATE sets.
func (s *statement) assignments(table, from, to int) {
	for i := from; i < to; {
		end := i
		for end < to && (s.at(end).depth > 0 || s.at(end).kind != ',') {
			end++
		}
		column := i
		for column+2 < end && s.at(column+1).kind == '.' {
			column += 2
		}
		switch t := s.at(column); {
		case !name(t) || s.at(column+1).kind != '=':
			s.Why = "it sets several columns in one assignment"
		case t.names(s.Tables[table].key()):
			s.Why, s.Deletes, s.Inserts = "it changes the key", []int{table}, []int{table}
		default:
			s.assignment(t.text, s.tokens[column+2:end])
		}
		i = end + 1
	}
}

// assignment notes a value that depends on parameters and on no column.
func (s *statement) assignment(column string, value []token) {
	set := Set{Column: column}
	for _, t := range value {
		switch {
		case t.kind == param:
			set.Params = append(set.Params, s.params(t.from))
		case name(t) && !t.is("CAST", "AS", "INTEGER", "INT", "BIGINT", "NUMERIC", "DECIMAL"):
			return
		}
	}
	if len(set.Params) > 0 {
		s.Sets = append(s.Sets, set)
	}
}

// write builds a statement that writes, with what shows the versions of its rows.
func (s *statement) write(kind Kind, table, where, returning int, list ...insertion) {
	t := s.Tables[table]
	switch end := s.tokens[len(s.tokens)-1].to; {
	case s.Returning && returning < len(s.tokens):
		s.build(kind, table, 2, append(list, insertion{end, ", " + extra("", t, false)})...)
	case s.Returning:
		s.build(kind, table, 2, append(list, insertion{end, " RETURNING " + extra("", t, false)})...)
	default:
		key, ok := token{}, false
		if kind == Update {
			key, ok = s.keyIn(table, where)
		} else {
			key, ok = s.keyOf(table)
		}
		if !ok {
			s.Why, s.Blind = "it does not name the row by its key, and this database has no UPDATE … RETURNING", true
			return
		}
		s.build(kind, table, 0, list...)
		s.FollowBy = -1
		if key.kind == param {
			s.FollowBy = s.params(key.from)
		}
		s.Follow, _ = split("SELECT " + extra("", t, true) + " FROM " + t.Name +
			" WHERE " + t.Key + " = " + s.text[key.from:key.to])
	}
}

// keyIn returns the value that a WHERE clause demands of the key.
func (s *statement) keyIn(table, where int) (value token, ok bool) {
	if !s.at(where).is("WHERE") || s.find(where, "OR", "ORDER", "LIMIT") < len(s.tokens) {
		return value, false
	}
	for i := where + 1; i < len(s.tokens); i++ {
		if t := s.at(i); t.depth > 0 || t.kind != '=' {
			continue
		}
		left, right := s.at(i-1), s.at(i+1)
		before, ends := s.at(i-2), i+2 >= len(s.tokens) || s.at(i+2).is("AND")
		switch {
		case left.names(s.Tables[table].key()) && plain(right) && ends:
			return right, before.is("WHERE", "AND") || before.kind == '.'
		case right.names(s.Tables[table].key()) && plain(left) && before.is("WHERE", "AND") && ends:
			return left, true
		}
	}
	return value, false
}

func plain(t token) bool { return t.kind == param || t.kind == number || t.kind == literal }

// insert rewrites an INSERT.
func (s *statement) insert() error {
	table, _, next := s.table(2)
	if !s.at(1).is("INTO") {
		s.Why, s.Blind = "it may replace rows", true
		s.Deletes, s.Inserts = s.all(), s.all()
		return nil
	}
	if table < 0 {
		return nil // it reads a tracked table
	}
	s.Inserts = []int{table}
	if s.at(next).is("VALUES", "SELECT") {
		return refused("INSERT without a list of columns", s.Tables[table])
	}
	columns := s.closing(next)
	tuples := s.tuples(columns + 1)
	end := columns + 2
	if len(tuples) > 0 {
		end = tuples[len(tuples)-1] + 1
	}
	switch {
	case s.at(next).kind != '(' || len(tuples) == 0 || !s.alone(), end < len(s.tokens) && !s.at(end).is("RETURNING"):
		s.Why, s.Blind = "it is no INSERT of values alone", true
		s.Deletes = s.conflicts(table)
		return nil
	case s.star(s.find(end, "RETURNING")):
		return refused("RETURNING *", s.Tables[table])
	}
	list := []insertion{{s.at(columns).from, ", " + Version + ", " + Writer}}
	for _, closing := range tuples {
		list = append(list, insertion{s.at(closing).from, ", 1, " + string(rune(own))})
	}
	s.write(Insert, table, 0, s.find(end, "RETURNING"), list...)
	return nil
}

// conflicts returns the table if an INSERT may replace its rows.
func (s *statement) conflicts(table int) []int {
	if s.find(0, "REPLACE") < len(s.tokens) {
		return []int{table}
	}
	return nil
}

// closing returns the parenthesis that closes the one at i.
func (s *statement) closing(i int) int {
	for j := i + 1; j < len(s.tokens); j++ {
		if s.at(j).kind == ')' && s.at(j).depth == s.at(i).depth {
			return j
		}
	}
	return len(s.tokens)
}

// tuples returns the closing parentheses of the rows behind VALUES.
func (s *statement) tuples(i int) (list []int) {
	if !s.at(i).is("VALUES") {
		return nil
	}
	for s.at(i+1).kind == '(' {
		i = s.closing(i+1) + 1
		list = append(list, i-1)
		if s.at(i).kind != ',' {
			break
		}
	}
	return list
}

// keyOf returns the value of the key in an INSERT of one row.
func (s *statement) keyOf(table int) (value token, ok bool) {
	open := slices.IndexFunc(s.tokens, func(t token) bool { return t.kind == '(' })
	values := s.find(open, "VALUES") + 1
	column := 0
	for i := open + 1; s.at(i).kind != ')'; i++ {
		if s.at(i).kind == ',' {
			column++
		} else if s.at(i).names(s.Tables[table].key()) {
			ok = true
			break
		}
	}
	if !ok || s.closing(values) < len(s.tokens)-1 {
		return value, false
	}
	for i := values + 1; i < len(s.tokens)-1; i++ {
		t := s.at(i)
		if t.kind == ',' && t.depth == 1 {
			column--
		} else if column == 0 {
			edge := s.at(i + 1)
			return t, plain(t) && edge.depth <= 1 && (edge.kind == ',' || edge.kind == ')')
		}
	}
	return value, false
}

// Placeholders returns the SQL of parts with the placeholders of a database.
func Placeholders(parts []string, placeholder func(i int) string) string {
	sql := parts[0]
	for i, part := range parts[1:] {
		sql += placeholder(i+1) + part
	}
	return sql
}

// Integer reads a whole number in its shortest form. It allocates nothing.
func Integer(text []byte) (n int64, ok bool) {
	digits, negative := text, len(text) > 1 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > mostDigits || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	size := uint64(0)
	for _, c := range digits {
		if !digit(c) {
			return 0, false
		}
		size = 10*size + uint64(c-'0')
	}
	if n = int64(size); negative {
		n = -n
	}
	return n, size <= math.MaxInt64
}

// mostDigits is the number of digits of the largest int64.
const mostDigits = 19

package track

import (
	"errors"
	"strings"

	"stroppy/internal/script"
)

// Kind is the kind of a rewritten statement.
type Kind uint8

const (
	None Kind = iota // it is not rewritten
	Read
	Update
	Insert
)

// Statement is a statement with its rewritten form.
type Statement struct {
	Kind  Kind
	Table int
	Parts []string // around the parameters
	Own   []bool   // by parameter: it is the id of the transaction
	Extra int      // columns that a result has at its end: the key, the version and, after a read, the writer

	// Follow reads key, version and writer of the row after a write, if the database cannot return them. Its parameter
	// is parameter FollowBy of the original statement; -1: it has none.
	Follow   []string
	FollowBy int

	Why     string      // why it is not rewritten; empty if it is, or if it does nothing with tracked tables
	Reads   bool        // it reads tables
	Writes  bool        // it writes tables
	Blind   bool        // it writes, or may write, tracked tables without making a version
	Deletes []int       // tables from which it may delete rows
	Inserts []int       // tables into which it may insert rows
	Columns [][2]string // of a read: the names in the result, and the columns
	Sets    []Set       // of an update: the columns that get values which the database does not compute

	// The condition of a read or an update; each parameter is a ?.
	Where       string
	WhereParams []int // of the original statement
}

// Set is an assignment of parameters alone.
type Set struct {
	Column string
	Params []int // of the original statement
}

// Rewriter rewrites statements for a database.
type Rewriter struct {
	Tables    []Table
	Returning bool // the database has UPDATE … RETURNING
}

// refused is a statement that tracking would break.
func refused(what string, t Table) error {
	return errors.New(what + " on the tracked table " + t.Name + " would meet the columns that tracking adds: " +
		"name the columns")
}

// statement is a statement that is being recognized.
type statement struct {
	*Rewriter
	Statement
	text   string
	tokens []token
	named  []int // by table: how often it is named
}

// Rewrite rewrites a statement. An error refuses it.
func (r *Rewriter) Rewrite(q *script.SQL) (Statement, error) {
	joined := strings.Join(q.Parts, string(rune(param)))
	s := &statement{Rewriter: r, text: joined, named: make([]int, len(r.Tables))}
	s.Writes, s.Reads = q.Writes != script.No, q.Writes == script.No && q.Control == script.None
	var ok bool
	if s.tokens, ok = tokenize(s.text); !ok || len(s.tokens) == 0 {
		s.tokens = nil
		s.opaque("it has a comment, a dollar quote or a backslash", q.Writes)
		return s.Statement, nil
	}
	for i, t := range s.tokens {
		if i+1 < len(s.tokens) && s.tokens[i+1].kind == '.' {
			continue // a schema, or a table in the name of a column
		}
		for table := range r.Tables {
			if t.names(r.Tables[table].base()) {
				s.named[table]++
			}
		}
	}
	if !s.mentions() {
		if q.Writes == script.Unknown {
			s.opaque("it calls what may write", q.Writes)
		}
		return s.Statement, nil
	}
	err := s.stars()
	switch first := s.tokens[0]; {
	case err != nil:
	case first.is("SELECT"):
		err = s.read()
	case first.is("UPDATE"):
		err = s.update()
	case first.is("INSERT"):
		err = s.insert()
	case first.is("DELETE") && len(s.tokens) > 2 && s.tokens[1].is("FROM"):
		if table, _, _ := s.table(2); table >= 0 {
			s.opaque("a DELETE leaves no version", q.Writes)
			s.Deletes = []int{table}
		}
	default:
		s.opaque("its kind is not tracked", q.Writes)
		if s.Blind {
			s.Deletes, s.Inserts = s.all(), s.all()
		}
	}
	if s.Kind == None {
		s.Parts, s.Own, s.Follow = nil, nil, nil
	}
	return s.Statement, err
}

// opaque marks a statement that is not understood.
func (s *statement) opaque(why string, writes script.Writes) {
	if s.tokens == nil && !s.anywhere() && writes != script.Unknown {
		return
	}
	s.Why, s.Blind = why, writes != script.No
	if s.tokens == nil && writes != script.No {
		s.Deletes, s.Inserts = s.all(), s.all()
	}
}

// anywhere reports whether the text has the name of a tracked table.
func (s *statement) anywhere() bool {
	for i := range s.Tables {
		if strings.Contains(strings.ToLower(s.text), strings.ToLower(s.Tables[i].base())) {
			return true
		}
	}
	return false
}

func (s *statement) mentions() bool {
	for _, n := range s.named {
		if n > 0 {
			return true
		}
	}
	return false
}

// alone reports whether the statement names one tracked table, once.
func (s *statement) alone() bool {
	sum := 0
	for _, n := range s.named {
		sum += n
	}
	return sum == 1
}

func (s *statement) all() (list []int) {
	for i, n := range s.named {
		if n > 0 || s.tokens == nil {
			list = append(list, i)
		}
	}
	return list
}

// at returns a token, and a blank outside of the statement.
func (s *statement) at(i int) token {
	if i >= 0 && i < len(s.tokens) {
		return s.tokens[i]
	}
	return token{kind: ' '}
}

// table reads the name of a table and its alias. It returns the tracked table, or -1, the name by which columns refer
// to it, and the next token.
func (s *statement) table(i int) (table int, ref string, next int) {
	first := i
	for name(s.at(i)) && s.at(i+1).kind == '.' {
		i += 2
	}
	if !name(s.at(i)) {
		return -1, "", i
	}
	table = -1
	for n := range s.Tables {
		if s.at(i).names(s.Tables[n].base()) {
			table = n
		}
	}
	ref = s.text[s.at(first).from:s.at(i).to]
	i++
	if s.at(i).is("AS") {
		i++
	}
	if t := s.at(i); name(t) && !t.is(clauses...) {
		ref = s.text[t.from:t.to]
		i++
	}
	return table, ref, i
}

// clauses are words that may follow a table and are no alias.
var clauses = []string{
	"WHERE", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "LOCK", "GROUP", "HAVING", "UNION", "INTERSECT", "EXCEPT",
	"WINDOW", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "STRAIGHT_JOIN", "ON", "USING", "SET",
	"VALUES", "SELECT", "DEFAULT", "RETURNING", "FROM", "INTO", "USE", "FORCE", "IGNORE", "PARTITION", "TABLESAMPLE",
	"INDEXED", "NOT", "WITH", "OVERRIDING", "VALUE", "MINUS",
}

// find returns the first token outside of parentheses that is one of these words, from i on; the number of tokens if
// there is none.
func (s *statement) find(i int, words ...string) int {
	for ; i < len(s.tokens); i++ {
		if t := s.tokens[i]; t.depth == 0 && t.is(words...) && !s.tokens[max(i-1, 0)].is("DISTINCT") {
			return i
		}
	}
	return i
}

// insertion is text that the rewritten statement has at an offset.
type insertion struct {
	at   int
	text string
}

// build makes the rewritten statement. The insertions are sorted by offset.
func (s *statement) build(kind Kind, table, extra int, list ...insertion) {
	end := s.tokens[len(s.tokens)-1].to
	text, from := "", 0
	for _, one := range list {
		text += s.text[from:one.at] + one.text
		from = one.at
	}
	text += s.text[from:end]
	s.Kind, s.Table, s.Extra, s.Why = kind, table, extra, ""
	s.Parts, s.Own = split(text)
}

// split splits a text at its parameters.
func split(text string) (parts []string, owns []bool) {
	for {
		i := strings.IndexAny(text, string([]byte{param, own}))
		if i < 0 {
			return append(parts, text), owns
		}
		parts, owns = append(parts, text[:i]), append(owns, text[i] == own)
		text = text[i+1:]
	}
}

// params returns the number of parameters before an offset.
func (s *statement) params(offset int) int {
	return strings.Count(s.text[:offset], string(rune(param)))
}

// extra returns the columns that a result has at its end.
func extra(prefix string, t Table, writer bool) string {
	list := prefix + t.Key + " AS stroppy_key, " + prefix + Version + " AS " + Version
	if writer {
		list += ", " + prefix + Writer + " AS " + Writer
	}
	return list
}

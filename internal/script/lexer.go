package script

import (
	"slices"
	"strings"
)

// lexer splits a file's SQL by the rules of psql, which pgbench shares.
type lexer struct {
	*parser
	sql    *SQL
	from   int      // where the current part begins
	words  []string // of the current statement, in capitals, without strings and comments
	first  int      // where the first word is
	solid  bool     // the current statement has more than comments
	joined []*SQL   // the statements before \;
	parens []int    // the offsets of open parentheses
	begins int      // the depth of BEGIN ATOMIC … END in CREATE FUNCTION
}

// statement reads up to a semicolon, a meta command or the end of the file, and adds a step if there is a statement. It
// reports whether a meta command follows, and leaves the position behind the backslash.
func (p *parser) statement() (command bool) {
	l := &lexer{parser: p}
	l.skipBlank()
	start := l.pos
	l.open()
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		if l.skip(rest) {
			continue
		}
		c := rest[0]
		end := l.pos
		l.pos++
		switch {
		case c == '\\' && strings.HasPrefix(rest[1:], ";"):
			l.pos++
			l.close(end)
			l.skipBlank()
			l.open()
			continue
		case c == '\\', c == ';' && len(l.parens) == 0 && l.begins == 0:
			l.finish(start, end)
			return c == '\\'
		case c == '(':
			l.parens = append(l.parens, end)
		case c == ')' && len(l.parens) > 0:
			l.parens = l.parens[:len(l.parens)-1]
		}
		l.solid = l.solid || !isSpace(c)
	}
	l.finish(start, l.pos)
	return false
}

// skipBlank skips space and line comments before a statement.
func (l *lexer) skipBlank() {
	for l.pos < len(l.text) {
		if isSpace(l.text[l.pos]) {
			l.pos++
		} else if strings.HasPrefix(l.text[l.pos:], "--") {
			l.pos += lineLength(l.text[l.pos:])
		} else {
			return
		}
	}
}

func lineLength(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n
	}
	return len(text)
}

// skip moves behind a comment, a quoted text, a word, a number or a parameter, and reports whether there was one.
func (l *lexer) skip(rest string) bool {
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "--"):
		l.pos += lineLength(rest)
	case strings.HasPrefix(rest, "/*"):
		l.pos += l.commentLength(rest)
	case c == '\'', c == '"':
		l.quoted(rest, closing(rest, c, false))
	case c == '$' && dollarTag(rest) != "":
		tag := dollarTag(rest)
		n := strings.Index(rest[len(tag):], tag)
		if n >= 0 {
			n += 2 * len(tag)
		}
		l.quoted(rest, n)
	case c == ':':
		l.colon(rest)
		l.solid = true
	case isDigit(c):
		for l.pos < len(l.text) && isNamePart(l.text[l.pos]) {
			l.pos++
		}
		l.solid = true
	case isNameStart(c):
		l.word(rest)
		l.solid = true
	default:
		return false
	}
	return true
}

func (l *lexer) commentLength(rest string) int {
	for n, depth := 0, 0; n < len(rest)-1; n++ {
		switch rest[n : n+2] {
		case "/*":
			depth++
			n++
		case "*/":
			depth--
			n++
		}
		if depth == 0 {
			return n + 1
		}
	}
	l.fail(l.pos, "the comment has no end")
	return 0
}

// closing returns the length of a text in quotes, or -1 if the closing quote is missing. A doubled quote is a part of
// the text.
func closing(rest string, quote byte, escapes bool) int {
	for n := 1; n < len(rest); n++ {
		switch {
		case rest[n] == '\\' && escapes, strings.HasPrefix(rest[n:], string([]byte{quote, quote})):
			n++
		case rest[n] == quote:
			return n + 1
		}
	}
	return -1
}

// dollarTag returns the $tag$ at the beginning of the text, or "".
func dollarTag(rest string) string {
	n := nameLength(rest[1:]) + 1
	if n < len(rest) && rest[n] == '$' {
		return rest[:n+1]
	}
	return ""
}

// quoted moves behind a text in quotes, and records the parameters that pgbench would replace in it.
func (l *lexer) quoted(rest string, length int) {
	if length < 0 {
		l.fail(l.pos, "the quote %s has no end", rest[:1])
	}
	text := rest[:length]
	for n := 0; n < len(text); n++ {
		if text[n] != ':' {
			continue
		}
		if name := nameLength(text[n+1:]); name > 0 {
			l.names.quoted = append(l.names.quoted, place{text[n+1 : n+1+name], l.parser, l.pos + n})
		}
		for n+1 < len(text) && text[n+1] == ':' {
			n++
		}
	}
	l.pos += length
	l.solid = true
}

// colon reads a parameter. Several colons are a cast, and no name begins with a digit, as in an array's slice.
func (l *lexer) colon(rest string) {
	n := len(rest) - len(strings.TrimLeft(rest, ":"))
	if n > 1 {
		l.pos += n
		return
	}
	length := nameLength(rest[1:])
	switch {
	case length > 0:
		l.sql.Parts = append(l.sql.Parts, l.text[l.from:l.pos])
		l.sql.Params = append(l.sql.Params, l.use(rest[1:1+length], l.pos))
		l.from = l.pos + 1 + length
	case len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"'):
		l.fail(l.pos, "psql's quoting of parameters is not possible: write a parameter as :name")
	}
	l.pos += 1 + length
}

// word reads a keyword or an identifier. The word E before a quote allows escapes in the text.
func (l *lexer) word(rest string) {
	n := 1
	for n < len(rest) && (isNamePart(rest[n]) || rest[n] == '$') {
		n++
	}
	word := strings.ToUpper(rest[:n])
	l.pos += n
	if word == "E" && n < len(rest) && rest[n] == '\'' {
		l.quoted(rest[n:], closing(rest[n:], '\'', true))
		return
	}
	if len(l.words) == 0 {
		l.first = l.pos - n
		l.sql.Line, _ = l.position(l.first)
	}
	l.words = append(l.words, word)
	if len(l.parens) > 0 || !definesRoutine(l.words) {
		return
	}
	switch {
	case word == "BEGIN", word == "CASE" && l.begins > 0:
		l.begins++
	case word == "END" && l.begins > 0:
		l.begins--
	}
}

// definesRoutine reports whether the statement creates a function or a procedure, whose body may have semicolons.
func definesRoutine(words []string) bool {
	if len(words) < 2 || words[0] != "CREATE" {
		return false
	}
	kind := words[1]
	if len(words) > 3 && kind == "OR" {
		kind = words[3]
	}
	return kind == "FUNCTION" || kind == "PROCEDURE"
}

// open begins a statement at the current position.
func (l *lexer) open() {
	line, _ := l.position(l.pos)
	l.sql, l.from, l.words, l.solid = &SQL{Line: line, file: l.file.Name}, l.pos, nil, false
}

// close ends the current statement, unless it is empty.
func (l *lexer) close(end int) {
	if len(l.parens) > 0 {
		l.fail(l.parens[len(l.parens)-1], "the parenthesis is not closed")
	}
	l.sql.Parts = append(l.sql.Parts, l.text[l.from:end])
	if !l.solid {
		return
	}
	problem := ""
	if l.sql.Control, l.sql.Writes, problem = classify(l.words); problem != "" {
		l.fail(l.first, "%s", problem)
	}
	if len(l.words) > 0 {
		l.sql.Keyword = l.words[0]
	}
	l.joined = append(l.joined, l.sql)
}

// finish ends the last of the joined statements and adds a step.
func (l *lexer) finish(start, end int) {
	l.close(end)
	if len(l.joined) == 0 {
		return
	}
	s := l.joined[0]
	if len(l.joined) > 1 {
		s = join(l.joined)
	}
	for _, one := range append(l.joined, s) {
		last := len(one.Parts) - 1
		one.Parts[last] = strings.TrimRight(one.Parts[last], " \t\r\n\v\f")
	}
	l.step(start, Step{Op: Execute, SQL: s})
	l.last = s
}

// join makes one request of several statements.
func join(list []*SQL) *SQL {
	first := list[0]
	s := &SQL{Keyword: first.Keyword, Joined: list, Line: first.Line, file: first.file}
	for i, one := range list {
		parts := slices.Clone(one.Parts)
		if i > 0 {
			end := len(s.Parts) - 1
			s.Parts[end] += "; " + parts[0]
			parts = parts[1:]
		}
		s.Parts = append(s.Parts, parts...)
		s.Params = append(s.Params, one.Params...)
		s.Writes = max(s.Writes, one.Writes)
		if one.Control != None {
			s.Control = Several
		}
	}
	return s
}

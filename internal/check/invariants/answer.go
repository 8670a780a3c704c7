// Package invariants decides whether queries of the user had the results that the user expects: in audits during the
// load phase, and in the end state.
package invariants

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"

	"stroppy/internal/check"
)

// These constants bound what a recording keeps of an answer. The end state takes texts of 1,000 bytes.
const (
	keptRows  = 3
	keptText  = 60 // bytes of a row
	keptValue = 200
	keptBytes = 900 // of all answers to one invariant, as JSON
)

// Answer is the result of one query: the number of rows, a hash that does not depend on their order, and the first
// rows. If two queries must be equal, it has the first rows without an equal one in the other. Numbers that are equal
// have equal hashes: 1.50 is 1.5.
type Answer struct {
	Rows    int      `json:"rows"`
	Columns int      `json:"columns"`
	Hash    uint64   `json:"hash"`
	First   []string `json:"first,omitempty"`
	Value   *string  `json:"value,omitempty"` // of a single value that is not NULL
}

// Rows are the rows of a result. A nil cell is NULL. Nobody keeps a row.
type Rows = iter.Seq[[][]byte]

// Single returns the answer of a query.
func Single(rows Rows) (a Answer) {
	for cells := range rows {
		a.add(cells)
		if a.Rows <= keptRows {
			a.First = append(a.First, shown(cells))
		}
	}
	return a
}

// Pair returns the answers of two queries that must be equal.
func Pair(first, second Rows) []Answer {
	list := []Answer{{}, {}}
	hashes := [2]map[uint64]int{{}, {}}
	for i, rows := range []Rows{first, second} {
		for cells := range rows {
			hashes[i][list[i].add(cells)]++
		}
		list[i].Value = nil
	}
	if list[0].Hash == list[1].Hash {
		return list
	}
	for i, rows := range []Rows{first, second} {
		others := maps.Clone(hashes[1-i])
		for cells := range rows {
			if hash := hashOf(cells); others[hash] > 0 {
				others[hash]--
			} else if len(list[i].First) < keptRows {
				list[i].First = append(list[i].First, shown(cells))
			}
		}
	}
	return list
}

// add counts a row and returns its hash.
func (a *Answer) add(cells [][]byte) (hash uint64) {
	hash = hashOf(cells)
	a.Rows++
	a.Columns = len(cells)
	a.Hash += hash
	a.Value = nil
	if a.Rows == 1 && len(cells) == 1 && cells[0] != nil {
		a.Value = new(cut(string(cells[0]), keptValue))
	}
	return hash
}

func hashOf(cells [][]byte) uint64 {
	hash := uint64(1)
	for _, cell := range cells {
		if cell == nil {
			hash = check.Mix(hash)
			continue
		}
		for _, c := range []byte(canonical(string(cell))) {
			hash = hash*31 + uint64(c) + 2
		}
		hash = check.Mix(check.Mix(hash) + 1)
	}
	return hash
}

// shown returns the beginning of a row as a text.
func shown(cells [][]byte) string {
	var texts []string
	for _, cell := range cells {
		if cell == nil {
			cell = []byte("NULL")
		}
		texts = append(texts, string(cell))
	}
	return cut(strings.Join(texts, ", "), keptText)
}

// cut returns the beginning of a text, in valid UTF-8 and without control characters.
func cut(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// decimal matches the numbers whose texts may differ though the numbers are equal.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// canonical returns the shortest text of a decimal number, and other texts as they are.
func canonical(text string) string {
	if !strings.ContainsAny(text, ".") && text != "-0" || !decimal.MatchString(text) {
		return text
	}
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if text == "-0" || text == "" || text == "-" {
		return "0"
	}
	return text
}

// number matches what Number parses.
var number = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?$`)

// Number parses an exact number.
func Number(text string) (*big.Rat, bool) {
	if !number.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// number returns the number that an answer consists of.
func (a *Answer) number() (*big.Rat, bool) {
	if a.Value == nil {
		return nil, false
	}
	return Number(*a.Value)
}

// Fingerprint returns a number by which the answers of two nodes are compared: the whole number that the answer
// consists of, the number of rows if the rows do not count, or a hash.
func (v *Invariant) Fingerprint(a *Answer) int64 {
	if n, ok := a.number(); ok && n.IsInt() && n.Num().IsInt64() {
		return n.Num().Int64()
	}
	if v.Expect.Kind == Empty || v.Expect.Kind == Equal {
		return int64(a.Rows)
	}
	return int64(a.Hash >> 1)
}

// answers is the form of the answers to the queries of an invariant in a recording.
type answers struct {
	Invariant int      `json:"invariant"` // its number, from 0
	Later     bool     `json:"later,omitempty"`
	Answers   []Answer `json:"answers,omitempty"`
}

// Encode returns the answers to the queries of invariant i as a text of limited length.
func Encode(i int, list []Answer) []byte { return encode(answers{Invariant: i, Answers: list}) }

// EncodeLater returns the text of an invariant that was not read, because later runs may have changed the sum.
func EncodeLater(i int) []byte { return encode(answers{Invariant: i, Later: true}) }

func encode(a answers) []byte {
	for most := keptRows; ; most-- {
		for i := range a.Answers {
			one := &a.Answers[i]
			one.First = one.First[:min(len(one.First), most)]
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(a) // of strings and numbers it cannot fail
		if text.Len() <= keptBytes || most == 0 {
			return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
		}
	}
}

// decode is the inverse of Encode.
func decode(text []byte) (a answers, err error) {
	err = json.Unmarshal(text, &a)
	return a, err
}

// Shown returns the result of Encode for people.
func Shown(text []byte) string {
	read, err := decode(text)
	if err != nil {
		return "damaged"
	}
	var list []string
	for _, a := range read.Answers {
		one := check.Plural(a.Rows, "row")
		if a.Value != nil {
			one = *a.Value
		} else if len(a.First) > 0 {
			one += " (" + strings.Join(a.First, "; ") + ")"
		}
		list = append(list, one)
	}
	return strings.Join(list, " and ")
}

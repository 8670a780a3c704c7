// Package spelling suggests known names for an unknown word.
package spelling

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// leastStart is the length from which on a prefix of a name is close to the name.
const leastStart = 3

// short is the length up to which a word with two different letters is another word.
const short = 5

// longest is the length in characters above which no suggestion is made.
const longest = 100

// Near returns the name that is spelt most like word, the first of several, if it may be what was meant. The word is
// then the name's beginning, or at most two letters differ. In a long word a third may differ. In a short word half may
// differ, and unless only one letter differs, both must begin alike.
func Near(word string, names []string) (name string, found bool) {
	length := utf8.RuneCountInString(word)
	if length == 0 || length > longest || len(names) == 0 {
		return "", false
	}
	begun := func(name string) bool { return strings.HasPrefix(name, strings.ToLower(word)) }
	if i := slices.IndexFunc(names, begun); i >= 0 && length >= leastStart {
		return names[i], true
	}
	distance := func(name string) int {
		return levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(name))
	}
	name = slices.MinFunc(names, func(a, b string) int { return distance(a) - distance(b) })
	apart := distance(name)
	alike := length > short || apart < 2 || name != "" && strings.EqualFold(word[:1], name[:1])
	return name, apart <= min(max(2, length/3), length/2) && alike
}

// Hint returns a clause with the alternatives to an unknown word: the name close to it in meaning (see
// meanings) or spelling, or otherwise list. Entries of meanings that are not in names are ignored.
func Hint(word string, names []string, meanings map[string]string, list string) string {
	name, found := meanings[strings.ToLower(word)]
	if !found || !slices.Contains(names, name) {
		name, found = Near(word, names)
	}
	if found {
		return "the nearest is " + name
	}
	return list
}

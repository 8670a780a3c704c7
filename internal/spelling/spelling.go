// Package spelling finds what a person may have meant by a word that is not known.
package spelling

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// leastStart is the length from which on the beginning of a name is near it.
const leastStart = 3

// short is the length of a word up to which two letters make another one of it.
const short = 5

// longest is the length of a word in characters above which nothing is near it.
const longest = 100

// Near returns the name that is spelt most like word, the first of several, if it may be what
// was meant: the word is the name's beginning, or two letters differ at most, in a long word a
// third, and in a short one half, where both begin alike unless one letter alone differs.
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

// Hint is the part of a sentence that says what there is in place of a word that is not known:
// the name that is near it in meaning, as meanings has it, or in spelling, or else list.
// Meanings without a name among names do not count.
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

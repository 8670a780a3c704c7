package lists

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"stroppy/internal/check"
)

// What is written of a list: its last elements, so many of them, and no more letters than a
// person reads at once, but one element at least.
const mostElements, mostLetters = 12, 160

// mostSame and mostSameLetters bound the first elements of two versions that are written of both.
const mostSame, mostSameLetters = 3, 60

// version writes the last elements of a version of a list.
func (c *checker) version(list, length uint32) string { return c.elements(c.content(list, length)) }

func (c *checker) elements(list []uint64) string { return "[" + c.ending(list) + "]" }

// ending writes the last elements of some, and how many are left out before them.
func (c *checker) ending(list []uint64) string {
	var texts []string
	for at, letters := len(list)-1, 0; at >= 0 && len(texts) < mostElements; at-- {
		text := "nothing"
		if list[at] != Missing {
			text = c.Element(list[at])
		}
		if letters += utf8.RuneCountInString(text); letters > mostLetters && len(texts) > 0 {
			break
		}
		texts = append([]string{text}, texts...)
	}
	if left := len(list) - len(texts); left > 0 {
		texts = append([]string{fmt.Sprintf("… %s more", check.Group(left))}, texts...)
	}
	return strings.Join(texts, ", ")
}

// both writes two versions of a list that a sentence names one after the other. Of many
// elements that both begin with, the first has the last one, and the second how many they are.
func (c *checker) both(first, second []uint64) (one, other string) {
	same := 0
	for same < min(len(first), len(second)) && first[same] == second[same] {
		same++
	}
	if same <= 1 || same <= mostSame && utf8.RuneCountInString(c.ending(first[:same])) <= mostSameLetters {
		return c.elements(first), c.elements(second)
	}
	one = fmt.Sprintf("[… %s more, %s]", check.Group(same-1), c.ending(first[same-1:]))
	other = fmt.Sprintf("the same %s elements", check.Group(same))
	if same < len(second) {
		other += ", then " + c.ending(second[same:])
	}
	return one, "[" + other + "]"
}

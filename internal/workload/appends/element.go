package appends

import (
	"fmt"
	"strconv"
	"strings"

	"stroppy/internal/history"
)

// The widths of the parts of an element's number: the append's number within its
// transaction, its client, and the client's sequence number.
const (
	numberBits = 6
	clientAt   = numberBits
	sequenceAt = clientAt + history.ClientBits
)

// newElement names the append that it is: number n of a transaction, from 0.
func newElement(id history.ID, n uint64) uint64 {
	return id.Sequence()<<sequenceAt | id.Client()<<clientAt | n
}

// writer returns the transaction that appended an element to a list.
func writer(object, element uint64) history.ID {
	return history.NewID(runOf(object), element>>clientAt&(1<<history.ClientBits-1), element>>sequenceAt&(1<<history.SequenceBits-1))
}

// numberOf returns which of its transaction's appends an element is.
func numberOf(element uint64) uint32 { return uint32(element & (1<<numberBits - 1)) }

// madeBy reports whether a transaction appended the element.
func madeBy(element uint64, id history.ID) bool {
	return element>>numberBits == newElement(id, 0)>>numberBits
}

// keyBits is the width of a list's number within its run.
const keyBits = 36

// newObject returns the number of a list of a run.
func newObject(run, key uint64) uint64 { return run<<keyBits | key }

func runOf(object uint64) uint64 { return object >> keyBits }

func keyOf(object uint64) uint64 { return object & (1<<keyBits - 1) }

// In a text each element is a number in digits of 32 with a comma behind it.
const (
	separator   = ','
	elementText = 1 + (63+5-1)/5     // most bytes
	longestText = 1000 * elementText // bytes of a list
)

// appendText appends an element to a list's text.
func appendText(text []byte, element uint64) []byte {
	return append(strconv.AppendUint(text, element, 32), separator)
}

// firstElement reads the element that a text begins with, and how long it is there; 0 of what
// no transaction has written.
func firstElement(text []byte) (element uint64, length int) {
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			element = element<<5 | uint64(c-'0')
		case c >= 'a' && c <= 'v':
			element = element<<5 | uint64(c-'a'+10)
		case c == separator && i > 0 && element>>sequenceAt != 0:
			return element, i + 1
		default:
			return 0, 0
		}
		if i == elementText || element>>63 != 0 {
			return 0, 0
		}
	}
	return 0, 0
}

// appendParsed appends the elements of a list's text; false of a text that no transaction
// has made, of which it appends nothing.
func appendParsed(list []uint64, text []byte) (elements []uint64, ok bool) {
	before := len(list)
	for len(text) > 0 {
		element, n := firstElement(text)
		if n == 0 {
			return list[:before], false
		}
		list, text = append(list, element), text[n:]
	}
	return list, true
}

// hasOf reports whether a text has an element of a transaction.
func hasOf(text []byte, id history.ID) bool {
	for len(text) > 0 {
		element, n := firstElement(text)
		if n == 0 || madeBy(element, id) {
			return n > 0
		}
		text = text[n:]
	}
	return false
}

// names converts between lists and their names.
type names struct{}

func listName(object uint64) string {
	return fmt.Sprintf("list %d-%d", runOf(object), keyOf(object))
}

// Name returns a list as reports show it: its run and its number there.
func (names) Name(object uint64) string { return listName(object) }

// Number is the inverse of Name; the word before the numbers can be left out.
func (names) Number(name string) (uint64, error) {
	run, key, found := strings.Cut(strings.TrimSpace(strings.TrimPrefix(name, "list")), "-")
	r, err1 := strconv.ParseUint(run, 10, history.RunBits)
	k, err2 := strconv.ParseUint(key, 10, keyBits)
	if !found || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("%q is no list: one is written as its run and its number there, such as 1-17", name)
	}
	return newObject(r, k), nil
}

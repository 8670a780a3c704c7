package check

import "strings"

// words are what a workload calls a transaction that leaves something, what keeps it,
// and a part of it there.
type words struct{ one, book, part string }

var (
	bankWords   = words{"transfer", "ledger", "leg"}
	tpcbWords   = words{"transaction", "history", "row"}
	eventsWords = words{"append", "log", "event"}
)

// capital is a word as a sentence begins with it.
func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

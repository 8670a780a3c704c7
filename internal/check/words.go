package check

import (
	"strconv"
	"strings"

	"stroppy/internal/money"
)

// words are what a workload calls a transaction that leaves something, what keeps it,
// and a part of it there; what stands before the name of what is written, where the
// name alone does not say that; and how a balance is written.
type words struct {
	one, book, part, before string
	amount                  func(int64) string
}

var (
	bankWords   = words{"transfer", "ledger", "leg", "account ", money.Format}
	tpcbWords   = words{"transaction", "history", "row", "", whole}
	eventsWords = words{"append", "log", "event", "", whole}
)

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// rowName names what is written as it stands in a sentence.
func (b *bank) rowName(n uint64) string { return b.words.before + b.in.Name(n) }

// capital is a word as a sentence begins with it.
func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

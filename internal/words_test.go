package internal_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// retired are words that this project once used in a sense of its own, with the
// terms to use. A word is added when it is gone.
var retired = map[string]string{
	"arena":      "bytes or cluster session",
	"deed":       "operation",
	"expense":    "resource usage",
	"fabric":     "network backend",
	"fleet":      "node set",
	"forgo":      "give up",
	"halt":       "stop",
	"heir":       "replica",
	"house":      "project",
	"lament":     "report",
	"lane":       "stream",
	"lineage":    "version chain",
	"patience":   "limit or time-out",
	"peeker":     "aliveness check",
	"refigure":   "recompute",
	"revive":     "restart",
	"stranger":   "unexpected row or first-time user",
	"succession": "failover",
	"torment":    "run the nemesis",
	"trail":      "path",
	"troubled":   "in a fault interval",
	"told":       "reported",
	"trunk":      "shared connection",
	"ward":       "supervised node",
	"weave":      "build",
	"wording":    "formatting",
	"wound":      "injection",
}

// piece is a word of a comment or a part of an identifier.
var piece = regexp.MustCompile(`[A-Z]?[a-z]+`)

// TestWords holds that the retired words stay away from identifiers, comments and
// messages.
func TestWords(t *testing.T) {
	each(t, ".", func(path string, data []byte, _ *ast.File, _ *token.FileSet) {
		line := 0
		for text := range strings.Lines(string(data)) {
			line++
			for _, word := range piece.FindAllString(text, -1) {
				word = strings.ToLower(word)
				say, found := retired[word]
				if !found {
					say, found = retired[strings.TrimSuffix(word, "s")]
				}
				if found {
					t.Errorf("%s:%d says %s: use %s", path, line, word, say)
				}
			}
		}
	})
}

package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
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
	"tell":       "report, wake, deliver or send",
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
// messages, those of tests too. Only their list has them.
func TestWords(t *testing.T) {
	for _, root := range []string{".", "../cmd", "../tools"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || path == "words_test.go" {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil {
				checkWords(t, path, data)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func checkWords(t *testing.T, path string, data []byte) {
	t.Helper()
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
}

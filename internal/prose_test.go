package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// maxSentenceWords is the limit for a sentence of a document, a comment or a message.
const maxSentenceWords = 25

// proseRules are the phrases that make the text hard to read. Private words once had a meaning of their own here.
var proseRules = []struct {
	name, advice string
	phrase       *regexp.Regexp
}{
	{"fronted clause", "begin with the subject", regexp.MustCompile(`^(What|Who|Whoever|Where|Whose|Of|That of|Those of|Nor) [^?]*$`)},
	{"says that", "write: returns, reports whether, holds", regexp.MustCompile(`(?i)\bsay(s|ing)? (that|whether|how|if|what)\b|\btells? (that|whether|how)\b`)},
	{"is what", "name the thing", regexp.MustCompile(`(?i)\b(is|are|was|were) what\b`)},
	{"that of", "repeat the noun", regexp.MustCompile(`(?i)\b(that|those) of\b`)},
	{"to be had", "write: available, or: cannot be installed", regexp.MustCompile(`(?i)\b(to|can|could|cannot) (not )?be had\b`)},
	{"held against", "write: compared with", regexp.MustCompile(`(?i)\bheld (against|to)\b`)},
	{"private word", "use the field's term (docs/glossary.md)", regexp.MustCompile(
		`(?i)\b(house|wards?|torment(s|ed)?|told|arenas?|fleets?|lineages?|trails?|deeds?|trunks?|lanes?|laments?|peekers?)\b`)},
}

// proseHit is a place that breaks a rule.
type proseHit struct {
	line   int
	rule   string
	advice string
	text   string
}

// TestProse checks the documents, comments and messages of the project. It leaves out tables that programs write, and
// this file, which quotes what it forbids.
func TestProse(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && (path == "../dist" || path == "../docs/tables") { // dist has the generator of the site
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md" || path == "../internal/prose_test.go" {
			return err
		}
		files++
		hits, err := proseHits(path)
		for _, h := range hits {
			t.Errorf("%s:%d: %s (%s): %s", strings.TrimPrefix(path, "../"), h.line, h.rule, h.advice, h.text)
		}
		return err
	})
	if err != nil || files < 1000 {
		t.Errorf("%d files were checked: %v", files, err)
	}
}

// TestProseRules checks that each rule finds a violation and lets a plain sentence pass.
func TestProseRules(t *testing.T) {
	for text, want := range map[string]string{
		"What cannot be decided stays unknown.":                           "fronted clause",
		"What does it cost?":                                              "",
		"kill says whether the process ended.":                            "says that",
		"The total is what the load made.":                                "is what",
		"It compares the balance with that of the load.":                  "that of",
		"The server cannot be had.":                                       "to be had",
		"The sum is held against the total.":                              "held against",
		"The supervisor told n1 to lead.":                                 "private word",
		"It ends. " + strings.Repeat("word ", 26) + "here.":               "long sentence",
		strings.Repeat("word ", 15) + ". " + strings.Repeat("Word ", 15):  "",
		"kill reports whether the process ended, e.g. after a signal.":    "",
		"A run with `stroppy run bank that of` compares what was loaded.": "",
	} {
		got := ""
		for _, h := range paragraphHits(1, text) {
			got = h.rule
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// proseHits returns the hits in a Go file or a document.
func proseHits(path string) ([]proseHit, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(path) == ".md" {
		return markdownHits(string(data)), nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, data, parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	var hits []proseHit
	for _, group := range file.Comments {
		hits = append(hits, markdownHits(strings.Repeat("\n", set.Position(group.Pos()).Line-1)+group.Text())...)
	}
	if strings.HasSuffix(path, "_test.go") { // its strings are mostly input and output
		return hits, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && n.Value[0] == '"' {
				heading := len(strings.Fields(text)) <= 3 // such as "What was run"
				hits = append(hits, slices.DeleteFunc(paragraphHits(set.Position(n.Pos()).Line, text),
					func(h proseHit) bool { return heading && h.rule == "fronted clause" })...)
			}
		}
		return true
	})
	return hits, nil
}

// markdownHits returns the hits in the paragraphs and list items of a text, without code, tables and headings.
func markdownHits(text string) []proseHit {
	var hits []proseHit
	paragraph, begin, number, fenced := "", 0, 0, false
	end := func() {
		hits = append(hits, paragraphHits(begin, paragraph)...)
		paragraph = ""
	}
	for line := range strings.Lines(text) {
		number++
		content := strings.TrimSpace(line)
		if strings.HasPrefix(content, "```") {
			fenced = !fenced
			content = ""
		}
		code := paragraph == "" && (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"))
		item := listItem.FindString(content)
		if content == "" || fenced || code || item != "" || strings.HasPrefix(content, "|") || strings.HasPrefix(content, "#") {
			end()
			if item == "" {
				continue
			}
		}
		if paragraph == "" {
			begin = number
		}
		paragraph += strings.TrimPrefix(content, item) + " "
	}
	end()
	return hits
}

var (
	listItem    = regexp.MustCompile(`^([-*+>]|\d+\.)\s+`)
	inlineCode  = regexp.MustCompile("`[^`]*`")
	linkTarget  = regexp.MustCompile(`\]\([^)]*\)`)
	sentenceEnd = regexp.MustCompile(`([.!?]["')*]*|:)\s+`)
)

// paragraphHits returns the hits in a paragraph that begins at a line.
func paragraphHits(line int, paragraph string) []proseHit {
	var hits []proseHit
	paragraph = linkTarget.ReplaceAllString(inlineCode.ReplaceAllString(paragraph, "CODE"), "]")
	paragraph = strings.NewReplacer("e.g. ", "", "i.e. ", "", "vs. ", "").Replace(paragraph)
	for _, sentence := range strings.Split(sentenceEnd.ReplaceAllString(paragraph, "$1\n"), "\n") {
		if words := len(strings.Fields(sentence)); words > maxSentenceWords {
			hits = append(hits, proseHit{line, "long sentence", fmt.Sprintf("%d words, at most %d", words, maxSentenceWords), sentence})
		}
		for _, r := range proseRules {
			if r.phrase.MatchString(strings.Trim(sentence, `*_"'( `)) {
				hits = append(hits, proseHit{line, r.name, r.advice, sentence})
			}
		}
	}
	return hits
}

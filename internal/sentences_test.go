package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sentenceFields are the fields that hold sentences about findings.
var sentenceFields = []string{"Detail", "What", "Reason", "Text"}

// readers are the packages that show findings. They use the fields of findings and facts.
var readers = []string{"run", "report", "cli", "output", "sweep", "live", "matrix", "foreign"}

// TestSentencesLiveInOnePackage checks that checkers return findings as values: none of them makes
// sentences through check/text, and a fact has no text.
func TestSentencesLiveInOnePackage(t *testing.T) {
	packages := 0
	each(t, "check", func(path string, _ []byte, file *ast.File, set *token.FileSet) {
		if strings.HasPrefix(path, "check/text/") || strings.HasPrefix(path, "check/checktest/") {
			return
		}
		packages++
		for _, i := range file.Imports {
			switch name, _ := strconv.Unquote(i.Path.Value); {
			case name == "stroppy/internal/check/text":
				t.Errorf("%s imports check/text: a checker returns findings, and who shows them makes the text", set.Position(i.Pos()))
			case name == "fmt" && strings.HasPrefix(path, "check/fact/"):
				t.Errorf("%s imports fmt: a fact has no text", set.Position(i.Pos()))
			}
		}
	})
	if packages < 50 {
		t.Errorf("only %d files of checkers were looked at", packages)
	}
}

// TestSentencesAreNotParsed checks that nothing looks into the sentence of a finding.
func TestSentencesAreNotParsed(t *testing.T) {
	for _, dir := range readers {
		each(t, dir, func(_ string, _ []byte, file *ast.File, set *token.FileSet) {
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && parses(call) {
					t.Errorf("%s parses a sentence: use the fields of the finding", set.Position(call.Pos()))
				}
				return true
			})
		})
	}
}

// parses reports whether a call looks for something in a field that holds a sentence.
func parses(call *ast.CallExpr) bool {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name := of.Sel.Name
	looks := strings.HasPrefix(name, "Find") || strings.HasPrefix(name, "Match") // of a regular expression
	if x, ok := of.X.(*ast.Ident); ok && x.Name == "strings" {
		looks = slices.ContainsFunc([]string{"Contains", "Cut", "Has", "Index", "LastIndex", "Split", "Trim", "Fields"},
			func(begin string) bool { return strings.HasPrefix(name, begin) })
	}
	return looks && slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		field, ok := arg.(*ast.SelectorExpr)
		return ok && slices.Contains(sentenceFields, field.Sel.Name)
	})
}

// TestRuleFindsParsedSentences checks that the rule sees the usual ways to parse a sentence, and no others.
func TestRuleFindsParsedSentences(t *testing.T) {
	for text, want := range map[string]bool{
		`strings.Contains(r.Detail, "lost")`: true, `strings.Cut(c.Checks[0].Text, ", first: ")`: true,
		`strings.TrimPrefix(r.Reason, "Not decided: ")`: true, `counts.FindStringSubmatch(v.What)`: true,
		`strings.Contains(name, "lost")`: false, `strings.Repeat(r.Detail, 2)`: false, `fmt.Sprint(r.Detail)`: false,
		`list.Find(r.Name)`: false,
	} {
		call, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := parses(call.(*ast.CallExpr)); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}

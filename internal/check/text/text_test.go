package text

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// TestWordingsNameFields checks that each name in braces is a field of the fact or a noun of the workload.
func TestWordingsNameFields(t *testing.T) {
	for _, kinds := range []map[reflect.Type][]wording{clauses(), headings(), listings()} {
		for kind, list := range kinds {
			for _, w := range list {
				for _, name := range regexp.MustCompile(`\{([^ !}]*)`).FindAllStringSubmatch(w.text, -1) {
					if _, field := kind.FieldByName(name[1]); !field && !slices.Contains([]string{"#", "one", "book", "part"}, name[1]) {
						t.Errorf("%v has no field %s: %s", kind, name[1], w.text)
					}
				}
			}
			if last := list[len(list)-1]; !reflect.ValueOf(last.of).IsZero() {
				t.Errorf("no wording of %v applies to all facts", kind)
			}
		}
	}
}

// TestEveryFactHasASentence checks that each kind of fact has a wording without a condition, or is a case of a switch
// in this package.
func TestEveryFactHasASentence(t *testing.T) {
	var source strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(data)
	}
	declared, err := filepath.Glob("../fact/*.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, name := range declared {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Fact" {
				continue
			}
			kinds++
			kind := f.Recv.List[0].Type.(*ast.Ident).Name
			if !strings.Contains(source.String(), "\t{fact."+kind+"{}, ") && !strings.Contains(source.String(), "\t{fact."+kind+"{},\n") &&
				!strings.Contains(source.String(), "case fact."+kind+":") {
				t.Errorf("no sentence for fact.%s", kind)
			}
		}
	}
	if kinds < 8 {
		t.Errorf("found only %d kinds of facts", kinds)
	}
}

func TestReasonClauses(t *testing.T) {
	s := Speaker{check.Words{One: "transfer", Book: "ledger"}}
	for _, tc := range []struct {
		why  fact.Fact
		want string
	}{
		{fact.NoEnd{}, "Not decided: the end state was not downloaded; give --db."},
		{fact.NoEnd{Run: 3}, "Not decided: run 3 may have gone on after the end state was downloaded; give --db to download it now."},
		{fact.CutOff{}, "Not decided: the recording was cut off, so what was sent last is not known."},
		{fact.Part{Accounts: 2500, Transactions: 3000000, Of: 38000000},
			"Not decided: 38,000,000 transfers are too many to examine each of them; the 3,000,000 that touch 2,500 accounts show no violation."},
		{fact.Unreadable{Problem: "history/end-objects.bin: checksum of block 3"}, "Not decided: history/end-objects.bin: checksum of block 3."},
		{fact.OtherRuns{Runs: []uint64{2}, Count: 1}, "Not decided: the ledger has 1 transfer of run 2, whose recording was not given: give its directory too."},
		{fact.OtherRuns{Runs: []uint64{2, 5}, Count: 9}, "Not decided: the ledger has 9 transfers of the runs 2, 5, whose recordings were not given: give their directories too."},
		{fact.Clocks{Count: fact.Count{N: 2, Noun: "record"}, Within: 3 * time.Millisecond},
			"Not decided: nothing surely contradicts real time, but the clients' clocks are known only to within 3 ms of each other, which is too coarse for 2 records."},
	} {
		if got := s.Detail(&check.Result{Why: tc.why}); got != tc.want {
			t.Errorf("%T: got %q, want %q", tc.why, got, tc.want)
		}
	}
}

// TestJudgeNeedsOwnFindings checks that only a result's own findings make it invalid, and that otherwise its
// reason makes it unknown.
func TestJudgeNeedsOwnFindings(t *testing.T) {
	one := check.Finding{Check: check.Durable, Forbidden: isolation.Unknown}
	one.Add(fact.CutOff{}, "A", history.NewID(1, 2, 3))
	for name, tc := range map[string]struct {
		check     string
		undecided fact.Fact
		want      check.Status
	}{
		"finding":            {check.Durable, fact.CutOff{}, check.Invalid},
		"of another check":   {check.NoGhost, nil, check.Valid},
		"reason":             {check.NoGhost, fact.CutOff{}, check.Unknown},
		"finding, no reason": {check.Durable, nil, check.Invalid},
	} {
		got := check.Result{Name: tc.check}.Judge([]check.Finding{one}, tc.undecided, fact.NoHistory{})
		if got.Status != tc.want || (got.Status == check.Invalid) != (len(got.Witness) == 1) {
			t.Errorf("%s: got %v with %d witnesses, want %v", name, got.Status, len(got.Witness), tc.want)
		}
	}
}

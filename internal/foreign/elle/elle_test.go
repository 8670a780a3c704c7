package elle

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/lists"
	"stroppy/internal/foreign"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

func checked(t *testing.T, data []byte) (*History, *foreign.Checked) {
	t.Helper()
	h, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	c, err := h.check(context.Background(), isolation.Unknown)
	if err != nil {
		t.Fatal(err)
	}
	return h, c
}

// TestEachAnomalyIsNamed checks the smallest history of each named anomaly. Its third line lists the levels that
// it satisfies.
func TestEachAnomalyIsNamed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.edn")
	if err != nil || len(files) < 20 {
		t.Fatal(err, files)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.SplitN(string(data), "\n", 4)
			if !strings.HasPrefix(lines[1], "; Source: ") {
				t.Error("the history has no source")
			}
			claims := strings.Fields(strings.TrimPrefix(lines[2], "; Levels: "))
			h, r := checked(t, data)
			compareLevels(t, r, claims)
			name := strings.TrimSuffix(strings.ReplaceAll(filepath.Base(path), "-", " "), ".edn")
			if slices.Contains(claims, "broken") && !h.Register {
				expectNamed(t, r, name)
			}
			if h.Register {
				return
			}
			// The history that was written is read as the same history.
			var out bytes.Buffer
			if _, err := Write(&out, h.input().Transactions); err != nil {
				t.Fatal(err)
			}
			again, second := checked(t, out.Bytes())
			if len(again.Transactions) != len(h.Transactions) || !slices.Equal(second.Strongest, r.Strongest) {
				t.Errorf("written and read again, %v holds and not %v:\n%s", second.Strongest, r.Strongest, out.String())
			}
		})
	}
}

// compareLevels compares a report with a list of claims: holds, broken or open, and a level.
func compareLevels(t *testing.T, r *foreign.Checked, claims []string) {
	t.Helper()
	for i := 0; i+1 < len(claims); i += 2 {
		level, err := isolation.Parse(claims[i+1])
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]check.Status{"holds": check.Valid, "broken": check.Invalid, "open": check.Unknown}[claims[i]]
		for _, l := range r.Results {
			of, err := isolation.Parse(l.Name)
			if err != nil {
				t.Fatal(err)
			}
			implied := claims[i] == "holds" && level.Includes(of) || claims[i] == "broken" && of.Includes(level) || of == level
			if implied && l.Status != want {
				t.Errorf("%v is %v, and not %v: %v", of, l.Status, want, l.Why)
			}
		}
	}
}

// expectNamed checks that an anomaly with the file's name is reported; at least one of its words must be the
// short name.
func expectNamed(t *testing.T, r *foreign.Checked, name string) {
	t.Helper()
	var all []string
	for _, l := range r.Results {
		for _, a := range l.Findings {
			plain := strings.ToLower(strings.NewReplacer("(", "", ")", "", "-", " ", ",", "").Replace(a.Anomaly))
			if plain == name {
				if len(a.Spans) == 0 && name != "duplicate element" {
					t.Errorf("%s has no transactions", a.Anomaly)
				}
				return
			}
			all = append(all, plain)
		}
	}
	t.Errorf("no %q is reported, but %q", name, all)
}

// TestParseRegistersInJSON checks that a register history in JSON is read.
func TestParseRegistersInJSON(t *testing.T) {
	data, err := os.ReadFile("testdata/stale-read-of-a-register.json")
	if err != nil {
		t.Fatal(err)
	}
	_, r := checked(t, data)
	compareLevels(t, r, []string{"holds", "serializable", "broken", "strong-snapshot-isolation"})
	lines := bytes.ReplaceAll(bytes.Trim(data, "[]\n"), []byte("},\n"), []byte("}\n"))
	_, r = checked(t, lines)
	compareLevels(t, r, []string{"holds", "serializable", "broken", "strong-snapshot-isolation"})
}

// TestErrorOfBadInputNamesTheLine checks that invalid input gives a sentence with the line, and never a verdict.
func TestErrorOfBadInputNamesTheLine(t *testing.T) {
	ok := "{:type :invoke, :f :txn, :process 0, :value [[:append 1 1]]}\n"
	for _, c := range []struct {
		name, data, want string
		line             int
	}{
		{"nothing", "", "it has no transaction", 0},
		{"no operation", ok + "[1 2]", "line 2: 1 is no operation", 2},
		{"cut off", ok + "{:type :ok, :f :txn, :process 0, :value [[:append 1", "the file is cut off", 2},
		{"a text cut off", ok + "{:type \"ok", "a string has no end", 2},
		{"cut off in JSON", "{\"type\":\"invoke\",\"f\":\"txn\",\"process\":0,\"value\":[[\"w\",1,1]]}\n{\"type\":", "the file is cut off", 2},
		{"no JSON", "{\"type\":}\n", "it is no JSON", 1},
		{"another workload", "\n{:type :invoke, :f :transfer, :process 0, :value {:from 1}}\n{:type :ok, :f :transfer, :process 0, :value {:from 1}}", "is a vector of operations", 3},
		{"a committed read of nothing", "{:type :ok, :process 0, :value [[:r 1]]}", "[:r 1] is no operation", 1},
		{"an operation that is not known", ok + "{:type :invoke, :f :txn, :process 1, :value [[:cas 1 2]]}", "the operation :cas is not known", 2},
		{"a type that is not known", "{:type :maybe, :f :txn, :process 0, :value []}", "the type :maybe is not known", 1},
		{"no type", "{:f :txn}", "has no :type", 1},
		{"two at a time", ok + ok, "has not ended", 2},
		{"an end alone", ok + "{:type :ok, :f :txn, :process 1, :value [[:append 1 2]]}", "has not begun", 2},
		{"a register among lists", ok + "{:type :invoke, :f :txn, :process 1, :value [[:w 1 2]]}", "of a register", 2},
		{"an element twice", ok + "{:type :ok, :f :txn, :process 0, :value [[:append 1 1]]}\n{:type :invoke, :f :txn, :process 0, :value [[:append 1 1]]}", "written once", 3},
		{"a closing bracket", "]", "closes nothing", 1},
		{"a map without a value", "{:type}", "a key without a value", 1},
		{"no vector", "{:type :invoke :process 0 :value 7}", "is a vector of operations", 1},
		{"deep", strings.Repeat("[", 1000), "nested more than", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read([]byte(c.data))
			var input *foreign.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) || input.Line != c.line {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestHistoryRoundTrip checks that random histories are equal after they are written and read.
func TestHistoryRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var list []lists.Transaction
		free := map[uint64]int64{}
		element := uint64(0)
		for i := range 1 + rng.IntN(30) {
			client := rng.Uint64N(4)
			begin := free[client] + rng.Int64N(3)
			tx := lists.Transaction{
				ID: history.NewID(1, client, uint64(i)), Client: client, Begin: begin, End: begin + 1 + rng.Int64N(5),
				Outcome: []history.Outcome{history.Unknown, history.Committed, history.Rejected, history.Aborted}[rng.IntN(4)],
			}
			free[client] = tx.End
			for range rng.IntN(4) {
				if element++; rng.IntN(2) == 0 {
					tx.Ops = append(tx.Ops, lists.Op{Kind: lists.Append, Key: rng.Uint64N(3), Element: element})
				} else {
					tx.Ops = append(tx.Ops, lists.Op{Kind: lists.Read, Known: true, Key: rng.Uint64N(3), List: []uint64{element, 7}})
				}
			}
			list = append(list, tx)
		}
		var out bytes.Buffer
		written, err := Write(&out, func(yield func(*lists.Transaction, error) bool) {
			for i := range list {
				if !yield(&list[i], nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		h, err := Read(out.Bytes())
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, out.String())
		}
		if len(h.Transactions) != len(list) || written.Transactions != len(list) || h.Operations != written.Operations {
			t.Fatalf("seed %d: %d transactions and %d operations are read of %d and %d", seed, len(h.Transactions), h.Operations, len(list), written.Operations)
		}
		outcomes := func(list []lists.Transaction) (n [4]int) {
			for i := range list {
				o := list[i].Outcome
				if o == history.Rejected {
					o = history.Aborted
				}
				n[o]++
			}
			return n
		}
		if outcomes(list) != outcomes(h.Transactions) {
			t.Fatalf("seed %d: the outcomes are %v and not %v", seed, outcomes(h.Transactions), outcomes(list))
		}
	}
}

// FuzzRead checks that any input gives a history or a sentence.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.*")
	cases, _ := filepath.Glob("testdata/cases/*.*")
	files = append(files, cases...)
	for _, path := range files {
		if data, err := os.ReadFile(path); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte("#jepsen.history.Op{:type :ok, :value #{1 2} #_ ignored \\a ^{:m 1} [1N 2.5 \"x\"]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := Read(data)
		if err != nil {
			if !errors.As(err, new(*foreign.InputError)) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if _, err := h.check(context.Background(), isolation.Unknown); err != nil && !errors.As(err, new(*foreign.InputError)) {
			t.Fatal(err)
		}
	})
}

// TestReadRefusesInvalidJSON checks that text which only EDN allows is refused in a file that begins as JSON, with its
// line.
func TestReadRefusesInvalidJSON(t *testing.T) {
	const invoke = `{"type":"invoke","f":"txn","process":0,"value":[["append",1,1]]}` + "\n"
	for name, c := range map[string]struct {
		rest string
		line int
	}{
		"a colon is missing":    {`{"type" "ok","f":"txn","process":0,"value":[["append",1,1]]}`, 2},
		"a comma is missing":    {`{"type":"ok","f":"txn","process":0,"value":[["append",1 1]]}`, 2},
		"a colon for a comma":   {`{"type":"ok","f":"txn","process":0,"value":[["append",1:1]]}`, 2},
		"a keyword":             {"\n\n" + `{"type":"ok","f":"txn","process":0,"value":[["append",1,1],["r",1,[:a]]]}`, 4},
		"nil":                   {`{"type":"ok","f":"txn","process":0,"value":[["r",1,nil]]}`, 2},
		"a comment":             {"; a comment\n" + `{"type":"ok","f":"txn","process":0,"value":[["append",1,1]]}`, 2},
		"a comma after a value": {`{"type":"ok","f":"txn","process":0,"value":[["append",1,1]]},`, 2},
	} {
		_, err := Read([]byte(invoke + c.rest))
		var input *foreign.InputError
		if !errors.As(err, &input) || input.Line != c.line || !strings.Contains(input.What, "it is no JSON") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Read([]byte(invoke + `{"type":"ok","f":"txn"`))
	var input *foreign.InputError
	if !errors.As(err, &input) || !strings.Contains(input.What, "cut off") {
		t.Errorf("cut off: %v", err)
	}
}

package history_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/cli"
	"stroppy/internal/history"
	"stroppy/internal/tier"
	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/kv"
)

// summary is the output of docs/examples/read_history.py.
type summary struct {
	Workload     string         `json:"workload"`
	Run          uint64         `json:"run"`
	Complete     bool           `json:"complete"`
	Transactions map[string]int `json:"transactions"`
	Operations   int            `json:"operations"`
	Amounts      int64          `json:"amounts"`
	Elements     int            `json:"elements"`    // of lists that were read
	ElementSum   uint64         `json:"element_sum"` // modulo 2^64
	Objects      int            `json:"objects"`
	Closed       int            `json:"closed"` // accounts that agree with the ledger
	Balances     int64          `json:"balances"`
	Versions     uint64         `json:"versions"`
	Entries      int            `json:"entries"`
	EntryAmounts int64          `json:"entry_amounts"`
	Unexpected   int            `json:"unexpected"`
	First        []string       `json:"first"`         // the smallest object number and its key
	Last         []string       `json:"last"`          // the largest object number and its key
	ReadVersions uint64         `json:"read_versions"` // over all operations, modulo 2^64
	ReadBalances uint64         `json:"read_balances"`
}

// TestPythonReaderReadsSameHistory checks that docs/reference/history-format.md suffices for a second
// implementation. The Python reader follows only that page and must count the same as this package, for real
// recordings of every workload.
func TestPythonReaderReadsSameHistory(t *testing.T) {
	tier.SkipUnderRace(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped engine: python3: install the Debian package python3")
	}
	for _, args := range [][]string{
		{"bank", "--accounts", "200", "--audits", "20"},
		{"bank", "--accounts", "200", "--opening-share", "0.3"},
		{"bank", "--accounts", "3000", "--audits", "400", "--count", "20000"},
		{"tpcb", "--scale", "1", "--ratio", "2:5:50", "--versions"},
		{"kv", "--preset", "ycsb-d", "--records", "100", "--key-size", "61"},
		{"events", "--batch", "3"},
		{"append", "--operations", "6"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			var complaints bytes.Buffer
			all := append([]string{"run"}, append(args, "--db", "memory:?unknown=0.02", "--clients", "4", "--out", dir)...)
			if !slices.Contains(args, "--count") {
				all = append(all, "--count", "300")
			}
			if code := cli.Main(all, nil, strings.NewReader(""), io.Discard, &complaints); code != 0 {
				t.Fatalf("stroppy %s: exit code %d\n%s", strings.Join(all, " "), code, complaints.String())
			}
			printed, err := exec.Command(python, "../../docs/examples/read_history.py", dir).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			var got summary
			if err := json.Unmarshal(printed, &got); err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			want := counted(t, filepath.Join(dir, "history"))
			if !maps.Equal(got.Transactions, want.Transactions) {
				t.Errorf("the transactions are %v, not %v", got.Transactions, want.Transactions)
			}
			want.Closed = got.Closed
			if (args[0] == "bank" || args[0] == "tpcb") && got.Closed != want.Objects {
				t.Errorf("of %d accounts only %d close", want.Objects, got.Closed)
			}
			got.Transactions, want.Transactions = nil, nil
			gotText, _ := json.Marshal(got)
			wantText, _ := json.Marshal(want)
			if !bytes.Equal(gotText, wantText) {
				t.Errorf("it is\n%s, not\n%s", gotText, wantText)
			}
			if want.Objects == 0 || want.Operations < 300 {
				t.Errorf("too little was recorded: %s", wantText)
			}
		})
	}
}

// counted returns the same numbers from this package.
func counted(t *testing.T, dir string) summary {
	t.Helper()
	r, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := r.Header()
	s := summary{Workload: h.Workload, Run: h.Run, Complete: r.Complete(), Transactions: map[string]int{}}
	for tx, err := range r.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		s.Transactions[h.KindName(tx.Kind)+" "+tx.Outcome.String()]++
		s.Operations += len(tx.Ops)
		s.Elements += len(tx.Elements)
		for _, e := range tx.Elements {
			s.ElementSum += e
		}
		for _, op := range tx.Ops {
			s.ReadVersions += op.Version
			s.ReadBalances += uint64(op.Value)
			if op.Write && tx.Outcome == history.Committed {
				s.Amounts += op.Amount
			}
		}
	}
	end, err := history.OpenEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	least, greatest := uint64(1<<64-1), uint64(0)
	for a, err := range end.Objects() {
		if err != nil {
			t.Fatal(err)
		}
		least, greatest = min(least, a.N), max(greatest, a.N)
		s.Objects++
		s.Balances += a.Value
		s.Versions += a.Version
	}
	for l, err := range end.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		if l.Mark == 0 {
			s.Entries++
			s.EntryAmounts += l.Amount
		}
	}
	s.Unexpected = len(end.Unexpected())
	s.First, s.Last = []string{keyOf(h, least)}, []string{keyOf(h, greatest)}
	return s
}

// keyOf returns the key of an object if keys follow from numbers, and an empty string otherwise.
func keyOf(h history.Header, n uint64) string {
	for _, spec := range []workload.Spec{bank.Spec(), kv.Spec()} {
		if spec.Name == h.Workload {
			key, _, _ := strings.Cut(spec.Objects(h).Name(n), " ")
			return key
		}
	}
	return ""
}

package totals

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// onDisk writes a history and its end state to files and opens them.
func onDisk(t *testing.T, w *world, clients int) (*history.Reader, *history.End) {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	writer, err := history.Create(dir, history.Header{Workload: "bank", Run: 1, Objects: uint64(len(w.ObjectRows)), Clients: clients}, clients)
	must(err)
	for i := range w.Txns {
		must(writer.Client(int(w.Txns[i].ID.Client())).Append(&w.Txns[i]))
	}
	for i := range clients {
		must(writer.Client(i).Flush())
	}
	must(writer.Close())
	end, err := history.CreateEnd(dir)
	must(err)
	for _, a := range w.ObjectRows {
		must(end.Object(a))
	}
	for _, row := range w.LedgerRows {
		must(end.Row(row))
	}
	must(end.Close())
	return checktest.Open(t, dir)
}

// TestFilesAndCoresDoNotMatter checks that the result does not depend on blocks in files, their size, or the
// number of processors.
func TestFilesAndCoresDoNotMatter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	valid := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 31))
		clients := 1 + rng.IntN(12)
		w := parallel(rng, 3+rng.IntN(30), clients, 200+rng.IntN(4000), false)
		if seed%2 == 1 {
			bend(rng, w)
		}
		in := w.input(isolation.StrictSerializable)
		want := checked(in)
		files := clients
		if seed%3 == 0 {
			files = 9000 // so that blocks are small
		}
		reader, end := onDisk(t, w, files)
		in.History, in.End = []check.Source{reader}, end
		runtime.GOMAXPROCS(1)
		one := checked(in)
		if a, b := decisions(checktest.Results(one)), decisions(checktest.Results(want)); !slices.Equal(a, b) {
			t.Fatalf("seed %d: from files\n%v\nfrom memory\n%v", seed, a, b)
		}
		for _, cores := range []int{2, 4} {
			runtime.GOMAXPROCS(cores)
			if got := checked(in); !reflect.DeepEqual(got, one) {
				t.Fatalf("seed %d: on %d cores\n%+v\non one\n%+v", seed, cores, got, one)
			}
		}
		if checktest.Verdict(want) == check.Valid {
			valid++
		}
	}
	if valid < 12 || valid > 35 {
		t.Errorf("%d of 40 were valid: too few of one kind", valid)
	}
}

// decisions returns the results without the choice of the first witness, which is the first in the history.
func decisions(results []check.Result) (list []string) {
	for _, r := range results {
		list = append(list, fmt.Sprint(r.Name, r.Status, r.Required, len(r.Witness)))
		for i := range r.Findings {
			f := &r.Findings[i]
			list = append(list, fmt.Sprint(f.Anomaly, f.Forbidden, f.Count))
		}
	}
	return list
}

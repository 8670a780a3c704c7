package history

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keepBase writes objects and rows as the state at the start of a run.
func keepBase(t *testing.T, objects []Object, rows []Row, unexpected ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), OpeningFolder)
	w, err := CreateEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range objects {
		err = errors.Join(err, w.Object(a))
	}
	for _, r := range rows {
		err = errors.Join(err, w.Row(r))
	}
	for _, text := range unexpected {
		err = errors.Join(err, w.Unexpected(text))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

var (
	openedObjects = []Object{{N: 0, Value: 70, Version: 2, Writer: NewID(2, 0, 9)}, {N: 1, Value: 130, Version: 1, Writer: NewID(1, 3, 4)}}
	openedRows    = []Row{{Transaction: NewID(1, 3, 4), Object: 1, Amount: 30, Version: 1}, {Transaction: NewID(2, 0, 9), Object: 0, Amount: -30, Version: 2}}
)

func TestBaseStandsForTheLoad(t *testing.T) {
	dir := keepBase(t, openedObjects, openedRows)
	o, err := ReadBase(dir, Header{Run: 3, Objects: 2})
	if err != nil {
		t.Fatal(err)
	}
	tx := Transaction{Ops: []Op{
		{Object: 0, Observed: true, Version: 2, Value: 70, Writer: NewID(2, 0, 9)},
		{Object: 1, Observed: true, Version: 4, Value: 7, Writer: NewID(3, 1, 1)},
		{Object: 5, Observed: true, Version: 8}, {Object: 0, Write: true, Amount: 5},
	}}
	if !o.Explains(&tx) {
		t.Error("a transaction that saw the state and later versions is not explained")
	}
	o.Rebase(&tx)
	want := []Op{
		{Object: 0, Observed: true, Value: 70}, {Object: 1, Observed: true, Version: 3, Value: 7, Writer: NewID(3, 1, 1)},
		{Object: 5, Observed: true, Version: 8}, {Object: 0, Write: true, Amount: 5},
	}
	if !slices.Equal(tx.Ops, want) {
		t.Errorf("the operations are %+v", tx.Ops)
	}
	for name, op := range map[string]Op{
		"an older version":             {Object: 0, Observed: true, Version: 1, Writer: NewID(1, 0, 1)},
		"another writer":               {Object: 0, Observed: true, Version: 2, Writer: NewID(2, 0, 8)},
		"a value of before":            {Object: 1, Observed: true, Version: 0},
		"another writer of before":     {Object: 1, Observed: true, Version: 1, Writer: NewID(2, 3, 4)},
		"a later version of before it": {Object: 1, Observed: true, Version: 2, Writer: NewID(2, 3, 4)},
	} {
		if o.Explains(&Transaction{Ops: []Op{op}}) {
			t.Errorf("%s is explained", name)
		}
	}
	end, err := OpenEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	if lost, same, err := o.Compare(end); lost != 0 || !same || err != nil {
		t.Errorf("the same state: %d lost, %v, %v", lost, same, err)
	}
	rebased := o.End(end)
	for a := range rebased.Objects() {
		if a.Version != 0 || a.Writer != 0 {
			t.Errorf("the object is %+v", a)
		}
	}
	for r := range rebased.Rows() {
		t.Errorf("a row of an earlier run is left: %+v", r)
	}
}

func TestBaseComparesWhatIsLeft(t *testing.T) {
	o, err := ReadBase(keepBase(t, openedObjects, openedRows), Header{Run: 3, Objects: 2})
	if err != nil {
		t.Fatal(err)
	}
	own := Row{Transaction: NewID(3, 0, 1), Object: 0, Amount: 5, Version: 3}
	older := slices.Clone(openedObjects)
	older[0].Version = 1
	for name, c := range map[string]struct {
		objects []Object
		rows    []Row
		lost    uint64
		same    bool
	}{
		"a row of the run itself":     {openedObjects, append(slices.Clone(openedRows), own), 0, true},
		"a row that is gone":          {openedObjects, openedRows[:1], 1, false},
		"a row that is added":         {openedObjects, append(slices.Clone(openedRows), Row{Transaction: NewID(2, 0, 10)}), 0, false},
		"another row":                 {openedObjects, []Row{openedRows[0], {Transaction: NewID(2, 0, 9), Object: 0, Amount: -31, Version: 2}}, 0, false},
		"a row of somebody else":      {openedObjects, append(slices.Clone(openedRows), Row{Object: 1}), 0, false},
		"an object in an older state": {older, openedRows, 0, false},
	} {
		end, err := OpenEnd(keepBase(t, c.objects, c.rows))
		if err != nil {
			t.Fatal(err)
		}
		if lost, same, err := o.Compare(end); lost != c.lost || same != c.same || err != nil {
			t.Errorf("%s: %d lost, %v, %v", name, lost, same, err)
		}
		end.Close()
	}
}

func TestBaseIsRefused(t *testing.T) {
	for says, c := range map[string]struct {
		objects    []Object
		unexpected []string
	}{
		"added objects":          {append(slices.Clone(openedObjects), Object{N: 2}), nil},
		"there twice":            {append(slices.Clone(openedObjects), openedObjects[0]), nil},
		"1 of 2 objects":         {openedObjects[:1], nil},
		"no transaction wrote":   {[]Object{openedObjects[0], {N: 1, State: Broken}}, nil},
		"hold something else: x": {openedObjects, []string{"x"}},
	} {
		_, err := ReadBase(keepBase(t, c.objects, openedRows, c.unexpected...), Header{Run: 3, Objects: 2})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := ReadBase(filepath.Join(t.TempDir(), "none"), Header{Objects: 2}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a state: %v", err)
	}
	dir := keepBase(t, openedObjects, openedRows)
	o, err := ReadBase(dir, Header{Run: 3, Objects: 2})
	if err != nil {
		t.Fatal(err)
	}
	other, err := ReadBase(keepBase(t, openedObjects, openedRows[:1]), Header{Run: 3, Objects: 2})
	if err != nil || o.Fingerprint() == other.Fingerprint() {
		t.Errorf("two states have the fingerprint %s: %v", o.Fingerprint(), err)
	}
	if err := os.Truncate(filepath.Join(dir, ledgerFile), 60); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadBase(dir, Header{Run: 3, Objects: 2}); err == nil {
		t.Error("a state that was cut off is read")
	}
}

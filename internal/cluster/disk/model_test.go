//go:build linux

package disk

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"golang.org/x/sys/unix"
)

// world is an independent model of the file system. It holds two trees, the present one and the safe one. It replays
// safe changes on the safe tree, and does not undo unsafe ones on the present tree.
type world struct {
	root *thing
	log  []*step // not safe yet
}

// thing is a file, a folder or a symbolic link.
type thing struct {
	kind      byte // f, d or l
	now, safe map[string]*thing
	content   []byte // of a link, its target
	saved     []byte
	changed   *step // its last change
	formed    *step // its creation, or the last truncation that cut off safe data
}

// step is a change of names, or a truncation.
type step struct {
	play func() // applies it to the safe tree
	done bool
}

func newThing(kind byte) *thing {
	return &thing{kind: kind, now: map[string]*thing{}, safe: map[string]*thing{}}
}

func (w *world) add(play func(), concerned ...*thing) *step {
	s := &step{play: play}
	w.log = append(w.log, s)
	for _, t := range concerned {
		t.changed = s
	}
	return s
}

// settle replays the log up to a step that was not replayed yet.
func (w *world) settle(upTo *step) {
	if upTo == nil || upTo.done {
		return
	}
	for len(w.log) > 0 {
		first := w.log[0]
		w.log = w.log[1:]
		first.play()
		first.done = true
		if first == upTo {
			return
		}
	}
}

func (w *world) create(d *thing, name string, t *thing) {
	d.now[name] = t
	t.formed = w.add(func() { d.safe[name] = t }, d, t)
}

func (w *world) link(d *thing, name string, t *thing) {
	d.now[name] = t
	w.add(func() { d.safe[name] = t }, d, t)
}

func (w *world) remove(d *thing, name string) {
	t := d.now[name]
	delete(d.now, name)
	w.add(func() { delete(d.safe, name) }, d, t)
}

func (w *world) rename(from *thing, name string, to *thing, target string) {
	t, over := from.now[name], to.now[target]
	if t == over {
		return
	}
	delete(from.now, name)
	to.now[target] = t
	concerned := []*thing{from, to, t}
	if over != nil {
		concerned = append(concerned, over)
	}
	w.add(func() { delete(from.safe, name); to.safe[target] = t }, concerned...)
}

func (w *world) exchange(from *thing, name string, to *thing, target string) {
	a, b := from.now[name], to.now[target]
	from.now[name], to.now[target] = b, a
	w.add(func() { from.safe[name], to.safe[target] = b, a }, from, to, a, b)
}

func (t *thing) write(at int, data []byte) {
	if grow := at + len(data) - len(t.content); grow > 0 {
		t.content = append(t.content, make([]byte, grow)...)
	}
	copy(t.content[at:], data)
}

func (w *world) truncate(t *thing, size int) {
	if size < len(t.saved) && size != len(t.content) {
		s := w.add(func() {}, t)
		s.play = func() { t.saved = t.saved[:min(size, len(t.saved))] }
		t.formed = s
	}
	if size <= len(t.content) {
		t.content = bytes.Clone(t.content[:size])
	} else {
		t.write(size, nil)
	}
}

// sync is fsync or, with onlyData, fdatasync.
func (w *world) sync(t *thing, onlyData bool) {
	upTo := t.changed
	if onlyData {
		upTo = t.formed
	}
	w.settle(upTo)
	if t.kind == 'f' {
		t.saved = bytes.Clone(t.content)
	}
}

// all returns the things that can be reached through the maps which the function of returns.
func (w *world) all(of func(*thing) map[string]*thing) map[string]*thing {
	found := map[string]*thing{"": w.root}
	var walk func(string, *thing)
	walk = func(path string, d *thing) {
		for name, t := range of(d) {
			found[filepath.Join(path, name)] = t
			if t.kind == 'd' {
				walk(filepath.Join(path, name), t)
			}
		}
	}
	walk("", w.root)
	return found
}

func now(t *thing) map[string]*thing  { return t.now }
func safe(t *thing) map[string]*thing { return t.safe }

// lose replaces the present tree by the safe one; syncAll does the opposite.
func (w *world) lose() {
	for _, t := range w.all(safe) {
		t.now = map[string]*thing{}
		for name, below := range t.safe {
			t.now[name] = below
		}
		if t.kind == 'f' {
			t.content = bytes.Clone(t.saved)
		}
	}
	w.log = nil
	for _, t := range w.all(now) {
		t.changed, t.formed = nil, nil
	}
}

func (w *world) syncAll() {
	for _, t := range w.all(now) {
		if t.kind == 'f' {
			t.saved = bytes.Clone(t.content)
		}
	}
	if len(w.log) > 0 {
		w.settle(w.log[len(w.log)-1])
	}
	// A truncation that was replayed applied to an older content.
	for _, t := range w.all(now) {
		if t.kind == 'f' {
			t.saved = bytes.Clone(t.content)
		}
	}
}

// compare walks a folder and returns where it differs from the world.
func (w *world) compare(t *testing.T, folder string) {
	t.Helper()
	want := w.all(now)
	links := map[*thing]uint64{}
	for _, x := range want {
		links[x]++
	}
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if relative == "." {
			relative = ""
		}
		x, ok := want[relative]
		if !ok {
			t.Errorf("%q is there and should not be", relative)
			return nil
		}
		delete(want, relative)
		return x.compare(t, path, relative, links[x])
	})
	if err != nil {
		t.Fatal(err)
	}
	for relative := range want {
		t.Errorf("%q is missing", relative)
	}
}

func (x *thing) compare(t *testing.T, path, relative string, links uint64) error {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	kinds := map[uint32]byte{unix.S_IFREG: 'f', unix.S_IFDIR: 'd', unix.S_IFLNK: 'l'}
	if got := kinds[st.Mode&unix.S_IFMT]; got != x.kind {
		t.Errorf("%q is of kind %c, want %c", relative, got, x.kind)
		return nil
	}
	if x.kind != 'd' && uint64(st.Nlink) != links {
		t.Errorf("%q has %d names, want %d", relative, st.Nlink, links)
	}
	var content []byte
	switch x.kind {
	case 'f':
		var err error
		if content, err = os.ReadFile(path); err != nil {
			return err
		}
		if st.Size != int64(len(x.content)) {
			t.Errorf("%q has %d bytes, want %d", relative, st.Size, len(x.content))
		}
	case 'l':
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		content = []byte(target)
	}
	if !bytes.Equal(content, x.content) {
		at := slices.IndexFunc(x.content[:min(len(content), len(x.content))], func(byte) bool { return true })
		for at >= 0 && at < min(len(content), len(x.content)) && content[at] == x.content[at] {
			at++
		}
		t.Errorf("%q: %s, want %s; they differ first at %d", relative, brief(content), brief(x.content), at)
	}
	return nil
}

// sorted returns the paths of some things in a fixed order.
func (w *world) sorted(keep func(*thing) bool) []string {
	var paths []string
	for path, t := range w.all(now) {
		if keep(t) {
			paths = append(paths, path)
		}
	}
	sort.Strings(paths)
	return paths
}

func (w *world) at(path string) *thing {
	t, ok := w.all(now)[path]
	if !ok {
		panic(fmt.Sprintf("the model has no %q", path))
	}
	return t
}

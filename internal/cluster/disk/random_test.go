//go:build linux

package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// player makes the same changes to a folder and to a world.
type player struct {
	t      *testing.T
	rng    *rand.Rand
	folder string
	world  *world
	open   []opened
	made   int
	did    []string
}

// opened is a file that stays open for some time, whatever happens to its name.
type opened struct {
	*os.File
	thing *thing
	sync  bool // O_DSYNC
}

// moves returns the moves of a player. A move returns its description, or "" if it is not possible now.
func (p *player) moves() []func() (string, error) {
	return []func() (string, error){
		p.create, p.create, p.mkdir, p.symlink, p.link, p.unlink, p.rmdir, p.rename, p.rename, p.exchange,
		p.openFile, p.openFile, p.closeFile, p.write, p.write, p.write, p.write, p.write, p.truncate, p.truncate, p.fallocate,
		p.fsync, p.fsync, p.fdatasync, p.fsyncFolder,
	}
}

func (p *player) move() {
	p.t.Helper()
	moves := p.moves()
	did, err := moves[p.rng.IntN(len(moves))]()
	if did != "" {
		p.did = append(p.did, did)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", did, err)
	}
}

// pick chooses a path of a kind; ok is false if there is none.
func (p *player) pick(kinds string) (path string, t *thing, ok bool) {
	paths := p.world.sorted(func(t *thing) bool { return strings.IndexByte(kinds, t.kind) >= 0 })
	if len(paths) == 0 {
		return "", nil, false
	}
	path = paths[p.rng.IntN(len(paths))]
	return path, p.world.at(path), true
}

// fresh returns a new name in a folder, or one of a few that may exist.
func (p *player) fresh() (parent string, d *thing, name string) {
	parent, d, _ = p.pick("d")
	p.made++
	return parent, d, fmt.Sprintf("%c%d", 'a'+p.rng.IntN(3), p.made)
}

func (p *player) real(path string) string { return filepath.Join(p.folder, path) }

func (p *player) create() (string, error) {
	parent, d, name := p.fresh()
	f, err := os.OpenFile(p.real(filepath.Join(parent, name)), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return "create", err
	}
	t := newThing('f')
	p.world.create(d, name, t)
	p.open = append(p.open, opened{f, t, false})
	return "create " + filepath.Join(parent, name), nil
}

func (p *player) mkdir() (string, error) {
	parent, d, name := p.fresh()
	p.world.create(d, name, newThing('d'))
	return "mkdir " + filepath.Join(parent, name), os.Mkdir(p.real(filepath.Join(parent, name)), 0o700)
}

func (p *player) symlink() (string, error) {
	parent, d, name := p.fresh()
	t := newThing('l')
	t.content = []byte("to" + name)
	p.world.create(d, name, t)
	return "symlink " + filepath.Join(parent, name), os.Symlink(string(t.content), p.real(filepath.Join(parent, name)))
}

func (p *player) link() (string, error) {
	path, t, ok := p.pick("fl")
	if !ok {
		return "", nil
	}
	parent, d, name := p.fresh()
	p.world.link(d, name, t)
	return "link " + path + " as " + filepath.Join(parent, name), os.Link(p.real(path), p.real(filepath.Join(parent, name)))
}

func (p *player) unlink() (string, error) {
	path, _, ok := p.pick("fl")
	if !ok {
		return "", nil
	}
	parent, name := p.split(path)
	p.world.remove(parent, name)
	return "unlink " + path, unix.Unlink(p.real(path))
}

func (p *player) split(path string) (*thing, string) {
	folder := filepath.Dir(path)
	if folder == "." {
		folder = ""
	}
	return p.world.at(folder), filepath.Base(path)
}

func (p *player) rmdir() (string, error) {
	path, t, _ := p.pick("d")
	if path == "" {
		return "", nil
	}
	err := unix.Rmdir(p.real(path))
	if len(t.now) > 0 {
		if !errors.Is(err, unix.ENOTEMPTY) {
			return "rmdir of a folder that is not empty " + path, fmt.Errorf("answered %w", err)
		}
		return "", nil
	}
	parent, name := p.split(path)
	p.world.remove(parent, name)
	return "rmdir " + path, err
}

// rename moves a name to a new one or over another of its kind.
func (p *player) rename() (string, error) {
	path, t, ok := p.pick("fdl")
	if !ok || path == "" {
		return "", nil
	}
	folder, to, name := p.fresh()
	if over, other, ok := p.pick("fl"); ok && t.kind != 'd' && other != nil && p.rng.IntN(2) == 0 {
		to, name = p.split(over)
		folder = filepath.Dir(over)
	}
	if over, other, ok := p.pick("d"); ok && t.kind == 'd' && over != "" && len(other.now) == 0 && p.rng.IntN(2) == 0 {
		to, name = p.split(over)
		folder = filepath.Dir(over)
	}
	target := filepath.Join(folder, name)
	if target == path || strings.HasPrefix(path, target+"/") || strings.HasPrefix(target, path+"/") {
		return "", nil
	}
	from, old := p.split(path)
	p.world.rename(from, old, to, name)
	return "rename " + path + " to " + target, unix.Rename(p.real(path), p.real(target))
}

func (p *player) exchange() (string, error) {
	path, _, ok := p.pick("fdl")
	other, _, _ := p.pick("fdl")
	if !ok || path == other || path == "" || other == "" || strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/") {
		return "", nil
	}
	from, name := p.split(path)
	to, target := p.split(other)
	if from.now[name] == to.now[target] {
		return "", nil
	}
	p.world.exchange(from, name, to, target)
	return "exchange " + path + " and " + other,
		unix.Renameat2(unix.AT_FDCWD, p.real(path), unix.AT_FDCWD, p.real(other), unix.RENAME_EXCHANGE)
}

func (p *player) openFile() (string, error) {
	path, t, ok := p.pick("f")
	if !ok || len(p.open) > 20 {
		return "", nil
	}
	flags, sync := os.O_RDWR, p.rng.IntN(8) == 0
	if sync {
		flags |= unix.O_DSYNC
	}
	f, err := os.OpenFile(p.real(path), flags, 0)
	if err == nil {
		p.open = append(p.open, opened{f, t, sync})
	}
	return fmt.Sprintf("open %s, O_DSYNC %v", path, sync), err
}

func (p *player) one() (opened, int, bool) {
	if len(p.open) == 0 {
		return opened{}, 0, false
	}
	n := p.rng.IntN(len(p.open))
	return p.open[n], n, true
}

func (p *player) closeFile() (string, error) {
	f, n, ok := p.one()
	if !ok {
		return "", nil
	}
	p.open = append(p.open[:n:n], p.open[n+1:]...)
	return "close " + f.Name(), f.Close()
}

// size returns an offset or a length in a file, mostly near page boundaries.
func (p *player) size() int {
	at := p.rng.IntN(6) * pageSize
	if p.rng.IntN(2) == 0 {
		at += p.rng.IntN(200) - 100
	}
	return max(at, 0)
}

func (p *player) write() (string, error) {
	f, _, ok := p.one()
	if !ok {
		return "", nil
	}
	at, data := p.size(), make([]byte, 1+p.rng.IntN(2*pageSize))
	if p.rng.IntN(4) > 0 { // otherwise zeros
		for i := range data {
			data[i] = byte(p.rng.Uint32())
		}
	}
	f.thing.write(at, data)
	_, err := f.WriteAt(data, int64(at))
	if f.sync {
		p.world.sync(f.thing, true)
	}
	return fmt.Sprintf("write %d to %s at %d, O_DSYNC %v", len(data), f.Name(), at, f.sync), err
}

func (p *player) truncate() (string, error) {
	f, _, ok := p.one()
	if !ok {
		return "", nil
	}
	size := p.size()
	p.world.truncate(f.thing, size)
	return fmt.Sprintf("truncate %s to %d", f.Name(), size), f.Truncate(int64(size))
}

func (p *player) fallocate() (string, error) {
	f, _, ok := p.one()
	if !ok {
		return "", nil
	}
	at, length := p.size(), 1+p.size()
	if p.rng.IntN(2) == 0 {
		if at+length > len(f.thing.content) {
			f.thing.write(at+length, nil)
		}
		return fmt.Sprintf("fallocate %s %d+%d", f.Name(), at, length), unix.Fallocate(int(f.Fd()), 0, int64(at), int64(length))
	}
	for i := at; i < min(at+length, len(f.thing.content)); i++ {
		f.thing.content[i] = 0
	}
	return fmt.Sprintf("punch %s %d+%d", f.Name(), at, length),
		unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(at), int64(length))
}

func (p *player) fsync() (string, error) {
	f, _, ok := p.one()
	if !ok {
		return "", nil
	}
	p.world.sync(f.thing, false)
	return "fsync " + f.Name(), f.Sync()
}

func (p *player) fdatasync() (string, error) {
	f, _, ok := p.one()
	if !ok {
		return "", nil
	}
	p.world.sync(f.thing, true)
	return "fdatasync " + f.Name(), unix.Fdatasync(int(f.Fd()))
}

func (p *player) fsyncFolder() (string, error) {
	path, d, _ := p.pick("d")
	p.world.sync(d, false)
	return "fsync folder " + path, syncFolder(p.real(path))
}

// TestRandomOperationsMatchModel checks that random operations give the same files as a model, before and after
// each loss of unsynced data.
func TestRandomOperationsMatchModel(t *testing.T) {
	const games, losses, most = 12, 8, 120
	parent := fast(t)
	n := newNode(t, parent)
	for seed := range uint64(games) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			for _, name := range entries(t, n.Dir()) {
				if err := os.RemoveAll(filepath.Join(n.Dir(), name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := n.Sync(); err != nil {
				t.Fatal(err)
			}
			p := &player{t: t, rng: rand.New(rand.NewPCG(seed, 0)), folder: n.Dir(), world: &world{root: newThing('d')}}
			for range losses {
				p.did = p.did[:0]
				for range p.rng.IntN(most) {
					p.move()
				}
				p.world.compare(t, p.folder)
				for _, f := range p.open {
					if err := f.Close(); err != nil {
						t.Error(err)
					}
				}
				p.open = nil
				if p.rng.IntN(4) == 0 {
					p.world.syncAll()
					if err := n.Sync(); err != nil {
						t.Fatal(err)
					}
				}
				p.world.lose()
				powerCut(t, n)
				p.world.compare(t, p.folder)
				if t.Failed() {
					t.Fatalf("after\n%s", strings.Join(p.did, "\n"))
				}
			}
			if graves := entries(t, filepath.Join(parent, ".n0.disk", "grave")); len(graves) > 0 {
				t.Errorf("in the grave after a loss: %v", graves)
			}
		})
	}
}

func entries(t *testing.T, folder string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

package host

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"stroppy/internal/cluster/system"
	"stroppy/internal/cluster/wrap"
)

// LeftoverKind is the kind of a Leftover.
type LeftoverKind string

const (
	LeftMount   LeftoverKind = "mount"   // a file system mounted below a folder whose name begins with stroppy-
	LeftGroup   LeftoverKind = "group"   // a control group whose name begins with stroppy-
	LeftFolder  LeftoverKind = "folder"  // a folder whose name begins with stroppy-, with its contents
	LeftProcess LeftoverKind = "process" // a process with its descendants
	LeftShared  LeftoverKind = "shared"  // files of libfaketime in /dev/shm for a process
	LeftObjects LeftoverKind = "objects" // objects in Kubernetes, in the notation of that package
	LeftFault   LeftoverKind = "fault"   // a fault of servers that this program did not start; Name is the command that heals it
)

// Leftover is one thing that stays behind if this program is killed before it removes it.
type Leftover struct {
	Kind  LeftoverKind `json:"kind"`
	Name  string       `json:"name,omitempty"` // path of a mount, a group or a folder, or the identification of objects
	PID   int          `json:"pid,omitempty"`  // of a process
	Start string       `json:"start,omitempty"`
}

// Prefix begins the names of all that this program makes. So a damaged or forged record cannot cause the removal
// of anything else. The command of a LeftFault is the user's, so only its owner can write the record.
const Prefix = "stroppy"

// ProcessLeftover returns the Leftover for a started process.
func ProcessLeftover(p *Process) Leftover {
	return Leftover{Kind: LeftProcess, PID: p.PID(), Start: p.id().start}
}

func (l Leftover) String() string {
	switch l.Kind {
	case LeftProcess:
		return "process " + strconv.Itoa(l.PID)
	case LeftShared:
		return "shared memory of process " + strconv.Itoa(l.PID)
	case LeftObjects:
		return "objects in Kubernetes"
	case LeftFault:
		return "the fault that this command heals: " + l.Name
	}
	return string(l.Kind) + " " + l.Name
}

// check returns an error if this program cannot have made the thing.
func (l Leftover) check() error {
	clean := filepath.IsAbs(l.Name) && filepath.Clean(l.Name) == l.Name
	if (l.Kind == LeftProcess || l.Kind == LeftShared) && l.PID > 1 || l.Kind == LeftObjects && strings.Contains(l.Name, `"`+Prefix+"-") ||
		(l.Kind == LeftFolder || l.Kind == LeftGroup) && clean && strings.HasPrefix(filepath.Base(l.Name), Prefix+"-") ||
		l.Kind == LeftMount && clean && strings.Contains(l.Name, "/"+Prefix+"-") || l.Kind == LeftFault && l.Name != "" {
		return nil
	}
	return fmt.Errorf("%s does not have a name that stroppy gives", l)
}

// Record is a small file that names what this program makes, each thing before it is made. It survives this program,
// and is in a folder of the user. Its owner holds a lock on it, which the kernel releases when the owner ends. Its
// methods may be called from several goroutines.
type Record struct {
	mu      sync.Mutex
	file    *os.File // nil once closed
	folders []string // removed by Close
}

// entry is one line of a record. The first line names the owner.
type entry struct {
	Owner *owner    `json:"owner,omitempty"`
	Kind  string    `json:"kind,omitempty"`
	Began time.Time `json:"began,omitzero"`
	URL   string    `json:"url,omitempty"`
	Made  *Leftover `json:"made,omitempty"`
}

// owner is the program that made a record.
type owner struct {
	PID   int    `json:"pid"`
	Boot  string `json:"boot"`  // the kernel's id of the boot
	Space string `json:"space"` // the PID namespace
}

// thisProcess reads boot_id of random(4) and the link of namespaces(7). Both are empty if the kernel has none.
func thisProcess() owner {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/pid")
	return owner{PID: os.Getpid(), Boot: string(bytes.TrimSpace(boot)), Space: space}
}

// NewRecord begins a record. kind describes its subject, such as etcd:3.
func NewRecord(kind string) (_ *Record, err error) {
	folder, err := stateFolder()
	if err != nil {
		return nil, err
	}
	defer wrap.Error(&err, "begin a cleanup record")
	file, err := os.OpenFile(filepath.Join(folder, RandomName()+recordSuffix), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	r, self := &Record{file: file}, thisProcess()
	if err = system.TryLock(file); err == nil {
		err = r.write(entry{Owner: &self, Kind: kind, Began: time.Now()})
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// recordSuffix ends the names of locked records. Records of earlier versions are not locked; they end in .jsonl and
// are ignored.
const recordSuffix = ".record"

// RandomName returns eight random hexadecimal digits.
func RandomName() string {
	var b [4]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

// Add records a thing that is about to be made.
func (r *Record) Add(what Leftover) error { return r.write(entry{Made: &what}) }

// SetURL records the address of the cluster without its password.
func (r *Record) SetURL(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("record the cluster's URL: it cannot be parsed")
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return r.write(entry{URL: u.String()})
}

// TempFolder records and makes an empty folder in parent that any user may enter. Close removes it.
func (r *Record) TempFolder(parent string) (path string, err error) {
	defer wrap.Error(&err, "make a temporary folder")
	if parent, err = filepath.Abs(parent); err != nil {
		return "", err
	}
	path = filepath.Join(parent, Prefix+"-"+RandomName())
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s exists already, try again", path)
	}
	if err := r.Add(Leftover{Kind: LeftFolder, Name: path}); err != nil {
		return "", err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.folders = append(r.folders, path)
	return path, nil
}

// write appends one line by one call. A line is written whole, or this program was killed before it made the thing.
func (r *Record) write(e entry) (err error) {
	defer wrap.Error(&err, "write the cleanup record")
	if e.Made != nil {
		if err := e.Made.check(); err != nil {
			return err
		}
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return errors.New("the record is closed")
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// Close removes the temporary folders and the record, after all else in it was removed. It may be called again.
func (r *Record) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	for _, folder := range r.folders {
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("remove a temporary folder: %w", err)
		}
	}
	err := errors.Join(os.Remove(r.file.Name()), r.file.Close())
	r.file = nil
	if err != nil {
		return fmt.Errorf("remove the cleanup record: %w", err)
	}
	return nil
}

// stateFolder returns the folder of this user's records and makes it if needed. It returns an error if anybody else
// could write there.
func stateFolder() (string, error) {
	if err := system.Supported(); err != nil {
		return "", err
	}
	path := statePath()
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make the folder for cleanup records: %w", err)
	}
	if info := ownFolder(path); info == nil || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s must be a folder that belongs to you and that nobody else may enter: remove it or repair its owner and mode", path)
	}
	return path, nil
}

// statePath returns the path of that folder, which need not exist.
func statePath() string {
	// The environment may be another user's, for example after sudo -E.
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" && ownFolder(runtime) != nil {
		return filepath.Join(runtime, Prefix)
	}
	return filepath.Join(os.TempDir(), Prefix+"-"+strconv.Itoa(os.Geteuid()))
}

// ownFolder describes a folder of this user. It returns nil for anything else, such as a link to a folder.
func ownFolder(path string) os.FileInfo {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return nil
	}
	if uid, known := system.Owner(info); !known || uid != os.Geteuid() {
		return nil
	}
	return info
}

// RecordInfo is the content of a record.
type RecordInfo struct {
	Kind  string
	URL   string // address of the cluster; empty until it answers
	Alive bool   // the program that made it is running
	Began time.Time
	Made  []Leftover

	owner // of the record
	path  string
}

// Records lists the records of this user, the oldest first. It leaves out programs in other containers, because their
// state cannot be seen here.
func Records() ([]RecordInfo, error) {
	records, _, err := readRecords()
	return records, err
}

// readRecords is like Records. damaged holds the paths of records that do not name their owner: it is just writing
// the first line, or was killed while doing so.
func readRecords() (records []RecordInfo, damaged []string, err error) {
	folder, err := stateFolder()
	if err != nil {
		return nil, nil, err
	}
	defer wrap.Error(&err, "list the records")
	paths, err := filepath.Glob(filepath.Join(folder, "*"+recordSuffix))
	if err != nil {
		return nil, nil, err
	}
	self := thisProcess()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // its owner has closed it since
		}
		if err != nil {
			return nil, nil, err
		}
		info, ok := parseRecord(text)
		if !ok {
			damaged = append(damaged, path)
			continue
		}
		info.path = path
		if info.Boot != self.Boot || info.Space == self.Space {
			info.Alive = locked(path)
			records = append(records, info)
		}
	}
	slices.SortFunc(records, func(a, b RecordInfo) int { return a.Began.Compare(b.Began) })
	return records, damaged, nil
}

// locked reports whether the owner of a record is alive.
func locked(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return system.Locked(file)
}

// parseRecord reads a record up to the first incomplete line.
func parseRecord(text []byte) (RecordInfo, bool) {
	var info RecordInfo
	for line := range bytes.Lines(text) {
		var e entry
		if line[len(line)-1] != '\n' || json.Unmarshal(line, &e) != nil {
			break
		}
		if e.Owner != nil {
			info.owner, info.Kind, info.Began = *e.Owner, e.Kind, e.Began
		}
		if e.URL != "" {
			info.URL = e.URL
		}
		if e.Made != nil && e.Made.check() == nil {
			info.Made = append(info.Made, *e.Made)
		}
	}
	return info, info.PID != 0
}

// Signal sends a signal to the program that made the record, if it is running.
func (i RecordInfo) Signal(signal syscall.Signal) error {
	if !locked(i.path) {
		return nil
	}
	if err := system.Kill(i.PID, signal); err != nil {
		return fmt.Errorf("send %v to process %d, which made %s: %w", signal, i.PID, i.Kind, err)
	}
	return nil
}

package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/report"
)

// These are the names of the files in a run's directory, beside those in package report.
const (
	ScenarioFile = "scenario.yaml"
	FaultsFile   = "faults.jsonl"
	// ConnectionsFile has a line for each time that a client's session came to another server.
	ConnectionsFile = "connections.jsonl"
	LogFile         = "log.txt"
	// ViolationsFile has a line for each transaction that shows a violation.
	ViolationsFile = "violations.jsonl"
	HistoryDir     = "history"
)

// Directory holds all files of one run.
type Directory struct {
	Path string
	log  *os.File
}

// ErrNotEmpty is the error of a requested directory that is not empty.
var ErrNotEmpty = errors.New("it is not empty")

// UnusableError reports that a directory cannot be used, and that another one can: the call was wrong, not the run.
type UnusableError struct {
	Path string
	Err  error
	Of   string // the intended content, such as a comparison; empty: a run
}

func (e *UnusableError) Error() string {
	what := "name another with --out"
	if errors.Is(e.Err, ErrNotEmpty) {
		what += ", or remove it"
	}
	return fmt.Sprintf("use %s as the %s's directory: %v: %s", e.Path, cmp.Or(e.Of, "run"), e.Err, what)
}

func (e *UnusableError) Unwrap() error { return e.Err }

// Unusable returns the error of a directory that could not be read, made or written to. It is an *UnusableError,
// unless the machine failed, as with a full disk.
func Unusable(path string, err error) error {
	for _, reason := range []error{ErrNotEmpty, fs.ErrPermission, fs.ErrExist, fs.ErrNotExist, syscall.EROFS, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL} {
		if errors.Is(err, reason) {
			return &UnusableError{Path: path, Err: err}
		}
	}
	return fmt.Errorf("make the run's directory: %w", err)
}

// DefaultPath names a run's directory after its start, its workload and the database.
func DefaultPath(root string, started time.Time, workload, database string) string {
	return filepath.Join(root, fmt.Sprintf("%s-%s-%s", started.Format("20060102-150405"), workload, database))
}

// Vacant returns the error of Unusable unless path does not exist or is empty.
func Vacant(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return Unusable(path, err)
	case len(entries) > 0:
		return Unusable(path, ErrNotEmpty)
	}
	return nil
}

// Unused returns path, or path with the first number, of which nothing is there yet.
func Unused(path string) string {
	for i, try := 2, path; ; i++ {
		if _, err := os.Lstat(try); err != nil {
			return try
		}
		try = fmt.Sprintf("%s-%d", path, i)
	}
}

// NewDirectory makes a run's directory. It refuses a directory that is not empty, so that no run overwrites another.
// It returns the errors of Vacant.
func NewDirectory(path string) (*Directory, error) {
	if err := Vacant(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, Unusable(path, err)
	}
	d, err := open(path, os.O_EXCL)
	if errors.Is(err, fs.ErrExist) { // another process was faster
		return nil, errors.Join(Vacant(path), err)
	}
	if err != nil {
		return nil, Unusable(path, err)
	}
	return d, nil
}

// Discard removes a directory in which nothing was recorded, and keeps any other. Files named in worthless count as
// nothing.
func (d *Directory) Discard(worthless ...string) (removed bool, err error) {
	trivial := append(worthless, LogFile, FaultsFile, ScenarioFile, history.OpeningFolder)
	entries, err := os.ReadDir(d.Path)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !slices.Contains(trivial, e.Name()) }) {
		return false, err
	}
	_ = d.Close() // Windows removes no open file; what the log lacks is removed with it
	err = os.RemoveAll(d.Path)
	return err == nil, err
}

// OpenDirectory opens the directory of an earlier run, to check it again.
func OpenDirectory(path string) (*Directory, error) {
	d, err := open(path, 0)
	if errors.Is(err, fs.ErrPermission) { // a run can be checked where nothing can be written
		return &Directory{Path: path}, nil
	}
	return d, err
}

func open(path string, flag int) (*Directory, error) {
	log, err := os.OpenFile(filepath.Join(path, LogFile), flag|os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open the run's log: %w", err)
	}
	return &Directory{Path: path, log: log}, nil
}

// History returns the folder of the history and the end state.
func (d *Directory) History() string { return filepath.Join(d.Path, HistoryDir) }

// Write writes a file and puts it in place at once: nobody ever sees half of it.
func (d *Directory) Write(name string, data []byte) error {
	return d.WriteFrom(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func (d *Directory) writeJSON(name string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(d.Path, name), err)
	}
	return d.Write(name, append(data, '\n'))
}

// Append adds a line to a file, which is made if it is not there.
func (d *Directory) Append(name string, line []byte) error {
	file, err := os.OpenFile(filepath.Join(d.Path, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	return errors.Join(err, file.Close())
}

// WriteFrom is like Write for data that are made while they are written.
func (d *Directory) WriteFrom(name string, write func(io.Writer) error) error {
	if err := report.WriteFile(d.Path, name, write); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(d.Path, name), err)
	}
	return nil
}

// Close closes the log; once more does nothing.
func (d *Directory) Close() error {
	if d.log == nil {
		return nil
	}
	if err := d.log.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// Logger writes to the run's log; scrub takes secrets out of every value.
func (d *Directory) Logger(scrub func(string) string) *slog.Logger {
	if d.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch v := a.Value.Any().(type) {
			case string:
				a.Value = slog.StringValue(scrub(v))
			case error:
				a.Value = slog.StringValue(scrub(v.Error()))
			}
			return a
		},
	}))
}

package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"stroppy/internal/db/address"
)

// options holds the parameters of a URL with all defaults.
type options struct {
	path        string // absolute
	synchronous string
	journal     string
	busyTimeout time.Duration // the longest wait for a lock
	cacheKiB    int64         // page cache of each connection
}

// style describes the URLs of SQLite.
var style = address.Style{Product: "SQLite"}

// parseURL parses sqlite:PATH[?parameter=value&…]. The path ends at the first question mark. With
// journal=delete, the default is synchronous=extra: full does not sync the directory after the journal was
// deleted, so a power failure right after a commit can undo it
// (https://www.sqlite.org/pragma.html#pragma_synchronous).
func parseURL(text string) (options, error) {
	o := options{journal: "wal", busyTimeout: 10 * time.Second, cacheKiB: 8 << 10}
	rest, ok := strings.CutPrefix(text, "sqlite:")
	if !ok {
		return o, fmt.Errorf("the address %q does not start with %q", text, "sqlite:")
	}
	path, query, _ := strings.Cut(rest, "?")
	if err := checkName(path); err != nil {
		return o, err
	}
	err := style.Read(query, address.Options{
		"synchronous":  address.Word(&o.synchronous, "extra", "full", "normal", "off"),
		"journal":      address.Word(&o.journal, "wal", "delete"),
		"busy_timeout": address.Time(&o.busyTimeout, 0),
		"cache_size":   address.Number(&o.cacheKiB, "number of KiB", 1, 1<<30),
	})
	if err != nil {
		return o, err
	}
	if o.synchronous == "" {
		o.synchronous = "full"
		if o.journal == "delete" {
			o.synchronous = "extra"
		}
	}
	if o.path, err = filepath.Abs(path); err != nil {
		return o, fmt.Errorf("the path %q cannot be made absolute: %v", path, err)
	}
	return o, nil
}

// checkName refuses names that SQLite or a person would not take for a file name.
func checkName(path string) error {
	switch {
	case path == "":
		return errors.New("the address names no file: write sqlite:PATH")
	case strings.HasPrefix(path, ":memory:"), strings.HasPrefix(path, "file::memory:"):
		return errors.New("SQLite in memory keeps nothing that could be checked: use memory: for a database in memory")
	case strings.HasPrefix(path, "file:"):
		return errors.New("the path is an SQLite URI: write sqlite:PATH, and no file: before it")
	case strings.HasPrefix(path, "///"):
		return fmt.Errorf("the path follows sqlite: at once: write sqlite:/%s", strings.TrimLeft(path, "/"))
	case strings.HasPrefix(path, "//"):
		return errors.New("the address names a host: write sqlite:PATH without the two slashes")
	case strings.ContainsRune(path, 0):
		return errors.New("the path holds a zero byte: no file can be called so")
	}
	return nil
}

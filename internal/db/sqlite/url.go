package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const scheme = "sqlite:"

// The parameters, and the values of the two that take one of several words. With
// journal=delete the default is synchronous=extra, because there full does not
// sync the directory after the journal was deleted, so that a power loss right
// after a commit can undo it: https://www.sqlite.org/pragma.html#pragma_synchronous
var (
	journalWords     = []string{"wal", "delete"}
	synchronousWords = []string{"extra", "full", "normal", "off"}
	parameterNames   = []string{"synchronous", "journal", "busy_timeout", "cache_size"}
)

const (
	defaultBusyTimeout = 10 * time.Second
	defaultCacheKiB    = 8 << 10
	maxCacheKiB        = 1 << 30
)

// options are what a URL asks for, every default filled in.
type options struct {
	path        string // absolute
	synchronous string
	journal     string
	busyTimeout time.Duration // the longest wait for a lock
	cacheKiB    int64         // page cache of each connection
}

// parseURL reads sqlite:PATH[?parameter=value&…]. The path is taken as it is,
// up to the first question mark; the parameters are encoded as in any URL.
func parseURL(text string) (options, error) {
	o := options{journal: "wal", busyTimeout: defaultBusyTimeout, cacheKiB: defaultCacheKiB}
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok {
		return o, fmt.Errorf("the address %q does not start with %q", text, scheme)
	}
	path, query, _ := strings.Cut(rest, "?")
	if err := checkName(path); err != nil {
		return o, err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return o, fmt.Errorf("the parameters %q cannot be read (%v): write them as name=value&name=value", query, err)
	}
	for name, v := range values {
		if len(v) > 1 {
			return o, fmt.Errorf("the parameter %s is given %d times: give it once", name, len(v))
		}
		if err := o.set(name, v[0]); err != nil {
			return o, err
		}
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

// checkName refuses what SQLite would not take for a file's name, or a person
// would not.
func checkName(path string) error {
	switch {
	case path == "":
		return errors.New("the address names no file: write sqlite:PATH")
	case strings.HasPrefix(path, ":memory:"), strings.HasPrefix(path, "file::memory:"):
		return errors.New("SQLite in memory keeps nothing that could be checked: use memory: for a database in memory")
	case strings.HasPrefix(path, "file:"):
		return errors.New("the path is an SQLite URI: write sqlite:PATH, and no file: before it")
	case strings.HasPrefix(path, "//"):
		return errors.New("the address names a host: write sqlite:PATH without the two slashes")
	case strings.ContainsRune(path, 0):
		return errors.New("the path holds a zero byte: no file can be called so")
	}
	return nil
}

func (o *options) set(name, value string) error {
	switch name {
	case "synchronous":
		return word(name, value, synchronousWords, &o.synchronous)
	case "journal":
		return word(name, value, journalWords, &o.journal)
	case "busy_timeout":
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("the parameter busy_timeout is %q: give a duration such as 10s or 500ms", value)
		}
		o.busyTimeout = d
	case "cache_size":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 || n > maxCacheKiB {
			return fmt.Errorf("the parameter cache_size is %q: give a number of KiB from 1 to %d", value, maxCacheKiB)
		}
		o.cacheKiB = n
	default:
		return fmt.Errorf("no parameter is called %q: take one of %s", name, strings.Join(parameterNames, ", "))
	}
	return nil
}

func word(name, value string, known []string, to *string) error {
	value = strings.ToLower(value)
	if !slices.Contains(known, value) {
		return fmt.Errorf("the parameter %s is %q: take one of %s", name, value, strings.Join(known, ", "))
	}
	*to = value
	return nil
}

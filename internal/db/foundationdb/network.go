//go:build fdb

package foundationdb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"stroppy/internal/db"
)

// The C library is set up once in a process. Its API version and its options cannot be changed afterwards.
var setUp struct {
	sync.Mutex
	done bool
	with library
}

// start sets the library up with these options. It returns an error if the library was set up with other options.
func (l library) start() error {
	setUp.Lock()
	defer setUp.Unlock()
	if setUp.done {
		if setUp.with != l {
			return db.Fatalf(openLibrary, "a process sets it up once, and another URL has done it with other values of api_version, tls_…, external_… or client_threads: give all URLs the same")
		}
		return nil
	}
	if err := l.checkFiles(); err != nil {
		return db.Fatalf(openLibrary, "%w", err)
	}
	if err := fdb.APIVersion(l.api); err != nil {
		return db.Fatalf(openLibrary, "ask for version %d of its API: %w: install foundationdb-clients of version 7.3, or lower api_version", l.api, err)
	}
	options := fdb.Options()
	for _, o := range []struct {
		name, value string
		set         func(string) error
	}{
		{"tls_certificate", l.certificate, options.SetTLSCertPath},
		{"tls_key", l.key, options.SetTLSKeyPath},
		{"tls_ca", l.ca, options.SetTLSCaPath},
		{"tls_verify_peers", l.verifyPeers, func(value string) error { return options.SetTLSVerifyPeers([]byte(value)) }},
		{"external_client", l.externalClient, options.SetExternalClientLibrary},
		{"external_clients", l.clientsDir, options.SetExternalClientDirectory},
	} {
		if o.value == "" {
			continue
		}
		if err := o.set(o.value); err != nil {
			return db.Fatalf(openLibrary, "%s=%s: %w", o.name, o.value, err)
		}
	}
	if l.threads > 1 {
		if err := options.SetClientThreadsPerVersion(int64(l.threads)); err != nil {
			return db.Fatalf(openLibrary, "client_threads=%d: %w", l.threads, err)
		}
	}
	setUp.done, setUp.with = true, l
	return nil
}

const openLibrary = "set up FoundationDB's client library"

// numberOf returns the code of a library's error; 0 for another error.
func numberOf(err error) int {
	if e, ok := errors.AsType[fdb.Error](err); ok {
		return e.Code
	}
	return 0
}

// said returns the library's text of an error without the code, because the caller shows the code.
func said(err error) error {
	number := numberOf(err)
	if c, known := codeOf(number); known {
		return fmt.Errorf("FoundationDB says %s", c.name)
	}
	return err
}

// canceller returns a function that cancels a transaction. The function refers to the transaction, because the binding
// frees a transaction without references even during a call.
func canceller(tr fdb.Transaction) func() {
	return func() {
		tr.Cancel()
		runtime.KeepAlive(tr)
	}
}

// whileUsed cancels a transaction when ctx ends, and keeps the transaction until end is called.
func whileUsed(ctx context.Context, tr fdb.Transaction) (end func()) {
	stop := context.AfterFunc(ctx, canceller(tr))
	return func() {
		stop()
		runtime.KeepAlive(tr)
	}
}

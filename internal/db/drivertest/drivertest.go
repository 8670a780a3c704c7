// Package drivertest holds the test helpers that every driver shares, whatever the model of its database.
package drivertest

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/address"
)

func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Close closes c when the test ends, and expects that it can be closed.
func Close(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func Open[D db.Database](t testing.TB, open func(context.Context, string) (D, error), url string) D {
	t.Helper()
	d, err := open(t.Context(), url)
	Must(t, err)
	Close(t, d)
	return d
}

// Account holds the parts of a URL that a driver has read.
type Account struct{ Servers, User, Password string }

// Passwords tests how a driver reads URLs with passwords that have any two special characters. Each URL must be read
// correctly or refused. No part of the password may be in the error or in the servers. Each of ends is tried as the
// text after the servers. If a password has a character of refused, the error must explain how to write the password.
func Passwords(t *testing.T, scheme, servers string, ends []string, refused string, read func(url string) (Account, error)) {
	t.Helper()
	const special = "/?#@:%,&=;[] +'\"\\"
	for _, first := range special {
		for _, second := range special {
			password := "s3cr3t" + string(first) + "w0rd" + string(second) + "x9y8"
			for _, end := range ends {
				a, err := read(scheme + "://u:" + password + "@" + servers + end)
				shown := a.Servers
				if err != nil {
					shown = err.Error()
				} else if decoded, err := url.PathUnescape(password); err != nil || a != (Account{servers, "u", decoded}) {
					t.Errorf("%s: %+v, %v", password, a, err)
				}
				for _, piece := range []string{"s3cr3t", "w0rd", "x9y8"} {
					if strings.Contains(shown, piece) {
						t.Errorf("%s: %q has a piece of it", password, shown)
					}
				}
				if !strings.ContainsAny(password, refused) {
					continue
				}
				if unescaped := new(address.UnescapedError); !errors.As(err, &unescaped) || !strings.Contains(shown, "%2F") ||
					strings.Contains(refused, "@") && !strings.Contains(shown, "%40") {
					t.Errorf("%s gives %q, which does not explain how to write it", password, shown)
				}
			}
		}
	}
}

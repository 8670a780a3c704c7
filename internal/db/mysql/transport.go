package mysql

import (
	"errors"
	"net"
	"strings"

	client "github.com/go-sql-driver/mysql"

	addresses "stroppy/internal/db/address"
	"stroppy/internal/db/wire"
)

// transport holds the parameters of a connection with the names of MySQL's URIs
// (https://dev.mysql.com/doc/refman/8.4/en/connecting-using-uri-or-key-value-pairs.html).
type transport struct {
	mode   string // of TLS, in lower case
	files  wire.TLSFiles
	socket string // the path of a Unix socket
}

// These are the modes of TLS (https://dev.mysql.com/doc/refman/8.4/en/connection-options.html#option_general_ssl-mode).
const (
	disabled       = "disabled"
	preferred      = "preferred"
	required       = "required"
	verifyCA       = "verify_ca"
	verifyIdentity = "verify_identity"
)

// inURL states how a URL avoids a refusal.
var inURL = map[wire.Refusal]string{
	wire.NeedsTLS: "ssl-mode=REQUIRED", wire.LacksTLS: "ssl-mode=DISABLED", wire.Untrusted: "ssl-ca=FILE", wire.WrongHost: "or ssl-mode=VERIFY_CA",
	wire.NeedsCertificate: certificateInURL,
}

const certificateInURL = "ssl-cert=FILE&ssl-key=FILE"

// options returns the parameters. Some programs write them with an underscore or without a sign.
func (t *transport) options() addresses.Options {
	all := addresses.Options{"socket": addresses.Text(&t.socket)}
	tls := addresses.Options{
		"ssl-mode": addresses.Word(&t.mode, disabled, preferred, required, verifyCA, verifyIdentity),
		"ssl-ca":   addresses.Text(&t.files.CA), "ssl-cert": addresses.Text(&t.files.Certificate), "ssl-key": addresses.Text(&t.files.Key),
	}
	for name, read := range tls {
		for _, sign := range []string{"-", "_", ""} {
			all[strings.Replace(name, "-", sign, 1)] = read
		}
	}
	return all
}

// apply sets TLS, unless no parameter is about it. As in MySQL's clients, ssl-ca alone means VERIFY_CA, and a
// certificate REQUIRED. library is the library's own parameter.
func (t *transport) apply(c *client.Config, library string) error {
	none := t.files == (wire.TLSFiles{})
	switch {
	case t.mode == "" && none, t.mode == disabled && none && library == "":
		return nil
	case library != "":
		return errors.New("tls and parameters that begin with ssl are given: leave tls out")
	case t.mode == disabled:
		return errors.New("ssl-mode=DISABLED uses no certificates: leave out the parameters that name their files")
	case t.mode == "" && t.files.CA != "":
		t.mode = verifyCA
	case t.mode == "":
		t.mode = required
	case t.files.CA != "" && t.mode != verifyCA && t.mode != verifyIdentity:
		return errors.New("ssl-ca is used with ssl-mode=VERIFY_CA or VERIFY_IDENTITY only: write one of them, or leave ssl-ca out")
	}
	var err error
	if c.TLS, err = t.files.Config(); err != nil {
		return err
	}
	c.AllowFallbackToPlaintext = t.mode == preferred
	switch t.mode {
	case verifyCA:
		wire.AnyName(c.TLS)
	case preferred, required:
		c.TLS.InsecureSkipVerify = true
	}
	return nil
}

// at returns the configuration for one host.
func (t *transport) at(config *client.Config, host string) *client.Config {
	c := config.Clone()
	c.Addr = host
	if c.TLS != nil {
		c.TLS.ServerName, _, _ = net.SplitHostPort(host)
	}
	if t.socket != "" {
		c.Net, c.Addr = "unix", t.socket
	}
	return c
}

// usesTLS reports whether a connection uses TLS, and whether it has a certificate of the client.
func usesTLS(c *client.Config) (secure, certified bool) {
	return c.TLS != nil || c.TLSConfig != "" && c.TLSConfig != "false", c.TLS != nil && len(c.TLS.Certificates) > 0
}

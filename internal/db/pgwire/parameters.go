package pgwire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/address"
	"stroppy/internal/db/wire"
)

// unsupported lists parameters of libpq that mean nothing here, each with the reason and what to do.
var unsupported = map[string]string{
	"oauth_client_id":     noOAuth,
	"oauth_client_secret": noOAuth,
	"oauth_issuer":        noOAuth,
	"oauth_scope":         noOAuth,
	"scram_client_key":    "it holds a key in place of a password: write the password",
	"scram_server_key":    "it holds a key in place of a password: write the password",
	"sslkeylogfile":       "it would write the keys of TLS into a file: leave it out",
}

const noOAuth = "a log-in by OAuth needs a person and a browser: take a user with a password or a certificate"

// parameters holds the parameters of libpq that package pgconn leaves to the program, and the parameters of Stroppy
// (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS).
type parameters struct {
	answer         time.Duration
	whole          bool // prepare=false
	name           string
	addresses      []netip.Addr
	balanced       bool
	owner          string
	dialer         wire.Dialer
	minTLS, maxTLS uint16
	crl, crlFolder string
}

func (p *parameters) options() address.Options {
	keep := &p.dialer.KeepAlive
	return address.Options{
		"answer_timeout":            address.Time(&p.answer, time.Millisecond),
		"prepare":                   address.Choice(&p.whole, "true", "false"),
		"fallback_application_name": address.Text(&p.name),
		"hostaddr":                  p.readAddresses,
		"load_balance_hosts":        address.Choice(&p.balanced, "disable", "random"),
		"requirepeer":               address.Text(&p.owner),
		"keepalives": func(value string) error {
			n, err := integer(value)
			keep.Enable = n != 0
			return err
		},
		"keepalives_idle":     span(&keep.Idle, time.Second, -1),
		"keepalives_interval": span(&keep.Interval, time.Second, -1),
		"keepalives_count": func(value string) (err error) {
			if keep.Count, err = integer(value); keep.Count <= 0 {
				keep.Count = -1
			}
			return err
		},
		"tcp_user_timeout":         span(&p.dialer.UserTimeout, time.Millisecond, 0),
		"ssl_min_protocol_version": tlsVersion(&p.minTLS),
		"ssl_max_protocol_version": tlsVersion(&p.maxTLS),
		"sslcrl":                   address.Text(&p.crl),
		"sslcrldir":                address.Text(&p.crlFolder),
		"sslcompression":           only("TLS has no compression here", "0"),
		"gssencmode":               only(noKerberos, "disable", "prefer"),
		"gssdelegation":            only(noKerberos, "0"),
		"gsslib":                   address.Text(new(string)), // it chooses a library for Kerberos, which no connection uses
		"replication":              only("it opens a session that copies the log", "false", "off", "no", "0"),
	}
}

const noKerberos = "Kerberos is not spoken here"

// only returns an option for values without an effect here. why is the reason that others are refused.
func only(why string, values ...string) address.Option {
	return func(value string) error {
		if slices.Contains(values, value) {
			return nil
		}
		return fmt.Errorf("is not supported, because %s: write %s, or leave it out", why, strings.Join(values, " or "))
	}
}

func integer(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, errors.New("is no whole number")
	}
	return n, nil
}

// span returns an option for a number of units, where system stands for zero or less: the system's default.
func span(to *time.Duration, unit, system time.Duration) address.Option {
	return func(value string) error {
		n, err := integer(value)
		if *to = time.Duration(n) * unit; n <= 0 {
			*to = system
		}
		return err
	}
}

func tlsVersion(to *uint16) address.Option {
	return func(value string) error {
		versions := map[string]uint16{"tlsv1": tls.VersionTLS10, "tlsv1.1": tls.VersionTLS11, "tlsv1.2": tls.VersionTLS12, "tlsv1.3": tls.VersionTLS13}
		if *to = versions[strings.ToLower(value)]; *to == 0 {
			return errors.New("is no version of TLS: write TLSv1, TLSv1.1, TLSv1.2 or TLSv1.3")
		}
		return nil
	}
}

func (p *parameters) readAddresses(value string) error {
	for text := range strings.SplitSeq(value, ",") {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return errors.New("is no list of IP addresses with commas: write a name as the host of the URL")
		}
		p.addresses = append(p.addresses, addr)
	}
	return nil
}

// take removes the parameters of the client from those that go to the server, and applies them.
func (p *parameters) take(config *pgconn.Config) error {
	given := config.RuntimeParams
	for name, why := range unsupported {
		if _, there := given[name]; there {
			return fmt.Errorf("the parameter %s is not supported, because %s", name, why)
		}
	}
	for name, read := range p.options() {
		text, there := given[name]
		if !there {
			continue
		}
		delete(given, name)
		if err := read(text); err != nil {
			return fmt.Errorf("%s=%s %w", name, text, err)
		}
	}
	if given["client_encoding"] == "auto" { // the encoding of this program's texts
		given["client_encoding"] = "UTF8"
	}
	if _, there := given[applicationName]; !there {
		given[applicationName] = p.name
	}
	if p.balanced {
		config.LookupFunc = inTurn(config.LookupFunc)
	}
	if err := p.applyAddresses(config); err != nil {
		return err
	}
	return p.applyTLS(config)
}

// inTurn returns a function that looks a host up and begins with the next of its addresses each time.
func inTurn(lookup pgconn.LookupFunc) pgconn.LookupFunc {
	var made atomic.Uint32
	return func(ctx context.Context, host string) ([]string, error) {
		list, err := lookup(ctx, host)
		if len(list) < 2 {
			return list, err
		}
		first := int(made.Add(1)) % len(list)
		return slices.Concat(list[first:], list[:first]), err
	}
}

// tries returns the attempts that make a connection, in their order.
func tries(config *pgconn.Config) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, config.Fallbacks...)
}

// applyAddresses replaces the hosts by their addresses. The host stays the name that the certificate must have.
func (p *parameters) applyAddresses(config *pgconn.Config) error {
	if p.addresses == nil {
		return nil
	}
	all, each := tries(config), 1
	if len(all) > 1 && (all[0].TLSConfig == nil) != (all[1].TLSConfig == nil) {
		each = 2 // with TLS and without, of sslmode=prefer or allow
	}
	if len(all) != each*len(p.addresses) {
		return fmt.Errorf("hostaddr has another number of addresses (%d) than the URL has hosts (%d): write one for each host", len(p.addresses), len(all)/each)
	}
	for i, t := range all {
		if filepath.IsAbs(t.Host) {
			return errors.New("hostaddr and the folder of a Unix socket are given: leave one of them out")
		}
		t.Host = p.addresses[i/each].String()
	}
	config.Host = all[0].Host
	return nil
}

func (p *parameters) applyTLS(config *pgconn.Config) error {
	var lists revocations
	if p.crl != "" || p.crlFolder != "" {
		var err error
		if lists, err = readRevocations(p.crl, p.crlFolder); err != nil {
			return fmt.Errorf("the list of revoked certificates (sslcrl, sslcrldir) cannot be used: %w", err)
		}
	}
	if p.maxTLS != 0 && cmp.Or(p.minTLS, tls.VersionTLS12) > p.maxTLS {
		return errors.New("ssl_min_protocol_version, TLSv1.2 by default, is later than ssl_max_protocol_version: change one of them")
	}
	for _, t := range tries(config) {
		c := t.TLSConfig
		switch {
		case c == nil:
			continue
		case lists == nil:
		case c.InsecureSkipVerify && c.VerifyPeerCertificate == nil:
			return errors.New("sslcrl and sslcrldir need sslmode=verify-ca or verify-full, because no other mode checks certificates")
		default:
			c.VerifyConnection = lists.verify(c.RootCAs)
		}
		c.MinVersion, c.MaxVersion = p.minTLS, p.maxTLS
	}
	return nil
}

// dial makes a connection. On a Unix socket, the server must belong to the owner that requirepeer names.
func (p *parameters) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := p.dialer.DialContext(ctx, network, address)
	if err != nil || p.owner == "" || network != "unix" {
		return conn, err
	}
	owner, err := wire.PeerUser(conn)
	if err == nil && owner != p.owner {
		err = db.Fatalf("requirepeer="+p.owner, "the server belongs to %s: correct the parameter, or the folder of the socket", owner)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

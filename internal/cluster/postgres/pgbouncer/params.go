package pgbouncer

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/cluster"
)

const (
	paramPooler = "pooler"
	// paramSetting is the prefix of settings of PgBouncer.
	paramSetting = "pooler."
)

// The pool modes that allow transactions of several statements.
const (
	Session     = "session" // a client has a server session until it disconnects
	transaction = "transaction"
)

// ownSettings are the settings that stroppy itself sets.
var ownSettings = []string{
	"listen_addr", "listen_port", "unix_socket_dir", "auth_type", "auth_file", "auth_hba_file", "auth_query", "auth_user",
	"admin_users", "pool_mode", "pidfile", "logfile", "syslog", "user", "conffile", "so_reuseport",
}

// poolSize is the number of server sessions of a pooler in transaction mode, PgBouncer's default_pool_size.
const poolSize = 20

// Params are the parameters of a cluster for the pooler.
type Params struct {
	Mode     string // Session or transaction; empty: there is no pooler
	settings map[string]string
	given    []string // names of the settings that the user gave
}

// Parse splits off the parameters of the pooler, and returns the options of the servers behind it. The error is a
// *cluster.ParamError. The parameters are:
//
//	pooler=transaction   a client has a server session for one transaction
//	pooler=session       a client has a server session until it disconnects
//	pooler.NAME=VALUE    a setting of PgBouncer, such as pooler.default_pool_size=50
func Parse(o cluster.Options) (Params, cluster.Options, error) {
	given, others := url.Values{}, url.Values{}
	for name, values := range o.Params {
		if name == paramPooler || strings.HasPrefix(name, paramSetting) {
			given[name] = values
		} else {
			others[name] = values
		}
	}
	p := Params{settings: map[string]string{}}
	set := cluster.Settings("PgBouncer", "_", ownSettings, p.settings)
	known := map[string]func(string) error{
		paramPooler: cluster.OneOf(func(value string) { p.Mode = value }, Session, transaction),
	}
	for name := range given {
		if setting, ok := strings.CutPrefix(name, paramSetting); ok {
			known[name] = func(value string) error { return set(setting, value) }
		}
	}
	err := cluster.Params{Known: known}.Read(given)
	if err == nil && p.Mode == "" && len(given) > 0 {
		for name := range given {
			err = &cluster.ParamError{Param: name, Reason: fmt.Sprintf("it is a setting of PgBouncer, which is not requested: add %s=%s or %s=%s",
				paramPooler, transaction, paramPooler, Session)}
		}
	}
	if err != nil || p.Mode == "" {
		o.Params = others
		return p, o, err
	}
	p.given = slices.Sorted(maps.Keys(p.settings))
	clients := o.MaxConnections(1000)
	size := poolSize
	if p.Mode == Session { // each client has a session as long as it is connected
		size = o.MaxConnections(100)
	}
	for name, value := range map[string]string{
		"pool_mode":         p.Mode,
		"default_pool_size": strconv.Itoa(size), "max_client_conn": strconv.Itoa(clients), "listen_backlog": "4096",
		// The defaults are 15 s each; during this time a new primary would not be checked.
		"server_login_retry": "0.2", "server_connect_timeout": "2",
		"tcp_user_timeout": "5000", // ms until a server whose machine acknowledges nothing is given up
		"log_connections":  "0", "log_disconnections": "0",
	} {
		if _, chosen := p.settings[name]; !chosen {
			p.settings[name] = value
		}
	}
	size, err = strconv.Atoi(p.settings["default_pool_size"])
	if err != nil || size < 1 {
		return p, o, &cluster.ParamError{Param: paramSetting + "default_pool_size", Reason: "it must be a number of connections, at least 1"}
	}
	o.Connections, o.Params = size, others
	return p, o, nil
}

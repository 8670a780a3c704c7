package postgres

import (
	"net/url"
	"time"

	"stroppy/internal/cluster"
)

// params are what a cluster can be told behind its question mark.
type params struct {
	synchronous bool          // sync: the primary waits for a standby
	strict      bool          // strict: it waits even when there is none
	patience    time.Duration // timeout: how long a silent server is waited for
	settings    map[string]string
}

// ownSettings are those by which a cluster finds its nodes and their roles.
var ownSettings = []string{
	"config_file", "data_directory", "hba_file", "hot_standby", "ident_file", "listen_addresses", "port",
	"primary_conninfo", "primary_slot_name", "recovery_target", "recovery_target_timeline", "synchronous_standby_names",
	"unix_socket_directories",
}

// parseParams reads the parameters. The error is a *cluster.ParamError.
func parseParams(values url.Values) (params, error) {
	p := params{synchronous: true, patience: time.Second, settings: map[string]string{}}
	var fsync bool
	err := cluster.Params{
		Kind: "PostgreSQL's cluster",
		Known: map[string]func(string) error{
			"sync":   cluster.OnOff(&p.synchronous),
			"strict": cluster.OnOff(&p.strict),
			"fsync": func(value string) error {
				p.settings["fsync"] = value
				return cluster.OnOff(&fsync)(value)
			},
			"timeout": cluster.Silence(&p.patience),
		},
		Set: cluster.Settings(product, "_.", ownSettings, p.settings),
	}.Read(values)
	if err == nil && p.strict && !p.synchronous {
		err = &cluster.ParamError{Param: "strict", Reason: "a primary that waits for no standby cannot be strict about it: leave out sync=off"}
	}
	return p, err
}

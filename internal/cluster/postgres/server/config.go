package server

import (
	"maps"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"stroppy/internal/cluster"
)

// params are the parameters of a cluster.
type params struct{ settings map[string]string }

// OwnSettings are the settings by which a cluster finds its nodes and their roles, and by which a killed server
// leaves nothing in /dev/shm.
var OwnSettings = []string{
	"config_file", "data_directory", "dynamic_shared_memory_type", "hba_file", "hot_standby", "ident_file", "listen_addresses", "port",
	"primary_conninfo", "primary_slot_name", "recovery_target", "recovery_target_timeline", "synchronous_standby_names",
	"unix_socket_directories",
}

// parseParams reads the parameters. The error is a *cluster.ParamError.
func parseParams(values url.Values) (params, error) {
	p := params{settings: map[string]string{}}
	return p, cluster.Params{
		Kind:  "a PostgreSQL server",
		Known: map[string]func(string) error{"fsync": Fsync(p.settings)},
		Set:   cluster.Settings(Product, "_.", OwnSettings, p.settings),
	}.Read(values)
}

// Fsync stores the parameter fsync in settings.
func Fsync(settings map[string]string) func(value string) error {
	return func(value string) error {
		settings["fsync"] = value
		return cluster.OnOff(new(bool))(value)
	}
}

func (n *node) conf() string { return filepath.Join(n.folder, "postgresql.conf") }

// hba returns the path of the file with the access rules.
func (n *node) hba() string { return filepath.Join(n.folder, "pg_hba.conf") }

// configuration returns the text of postgresql.conf.
func (n *node) configuration() string {
	c := n.cluster
	all := map[string]string{
		"listen_addresses":           n.Host().Addr().String(),
		"port":                       strconv.Itoa(int(n.endpoint.Port())),
		"unix_socket_directories":    n.sockets,
		"cluster_name":               n.Name(),
		"max_connections":            strconv.Itoa(c.Options.MaxConnections(500)),
		"dynamic_shared_memory_type": "mmap", // files in the data folder, so that a kill leaves none elsewhere
	}
	maps.Copy(all, c.params.settings)
	return "include " + quoted(filepath.Join(n.Dir(), "postgresql.conf")) + "\n" +
		cluster.SettingLines(all, func(name, value string) string { return name + " = " + quoted(value) })
}

// quoted returns a value in the notation of postgresql.conf.
func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

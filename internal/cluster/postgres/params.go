package postgres

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"stroppy/internal/cluster"
)

// params are what a cluster can be told behind its question mark.
type params struct {
	synchronous bool          // sync: the primary waits for a standby
	strict      bool          // strict: it waits even when there is none
	patience    time.Duration // timeout: how long a silent server is waited for
	settings    map[string]string
}

const (
	paramSync    = "sync"
	paramStrict  = "strict"
	paramFsync   = "fsync"
	paramTimeout = "timeout"
	paramSet     = "set." // before the name of a setting of PostgreSQL
)

// ownSettings are those by which a cluster finds its nodes and their roles.
var ownSettings = []string{
	"config_file", "data_directory", "hba_file", "hot_standby", "ident_file", "listen_addresses", "port",
	"primary_conninfo", "primary_slot_name", "recovery_target", "recovery_target_timeline", "synchronous_standby_names",
	"unix_socket_directories",
}

// parseParams reads the parameters. The error is a *cluster.ParamError.
func parseParams(values url.Values) (params, error) {
	p := params{synchronous: true, patience: time.Second, settings: map[string]string{}}
	for name := range values {
		value := values.Get(name)
		var err error
		switch setting, isSetting := strings.CutPrefix(name, paramSet); {
		case isSetting:
			err = p.set(setting, value)
		case name == paramSync:
			p.synchronous, err = onOff(value)
		case name == paramStrict:
			p.strict, err = onOff(value)
		case name == paramFsync:
			if _, err = onOff(value); err == nil {
				p.settings["fsync"] = value
			}
		case name == paramTimeout:
			if p.patience, err = time.ParseDuration(value); err != nil || p.patience < minPatience || p.patience > maxPatience {
				err = fmt.Errorf("it must be a time from %v to %v, such as 1s", minPatience, maxPatience)
			}
		default:
			err = unknownParam(name)
		}
		if err != nil {
			return p, &cluster.ParamError{Param: name, Reason: err.Error()}
		}
	}
	if p.strict && !p.synchronous {
		return p, &cluster.ParamError{Param: paramStrict, Reason: "a primary that waits for no standby cannot be strict about it: leave out sync=off"}
	}
	return p, nil
}

// A shorter time calls a busy machine dead; a longer one than this is longer
// than the servers' own time-outs.
const minPatience, maxPatience = 200 * time.Millisecond, time.Minute

func onOff(value string) (bool, error) {
	switch value {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither on nor off", value)
}

func (p *params) set(name, value string) error {
	lower := strings.ToLower(name)
	switch {
	case lower == "" || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "":
		return fmt.Errorf("%q is no name of a setting of PostgreSQL", name)
	case slices.Contains(ownSettings, lower):
		return fmt.Errorf("the setting %s is not for you to set: the cluster's own value makes it work", lower)
	case strings.ContainsAny(value, "\n\x00"):
		return fmt.Errorf("the value of the setting %s must be one line", lower)
	}
	p.settings[lower] = value
	return nil
}

func unknownParam(name string) error {
	known := []string{paramSync, paramStrict, paramFsync, paramTimeout}
	near := slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(name, a) - levenshtein.ComputeDistance(name, b)
	})
	return fmt.Errorf("PostgreSQL's cluster has no such parameter; the nearest is %s, and set.NAME=VALUE sets a setting of the server's", near)
}

package pgbouncer

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/postgres/server"
)

// Find finds PgBouncer and checks the settings. The error is a host.MissingError if PgBouncer is not installed, and a
// *cluster.ParamError for a wrong setting.
func (p Params) Find(ctx context.Context) (program string, err error) {
	if program, err = find(); err == nil {
		err = p.check(ctx, program)
	}
	return program, err
}

// Start starts the pooler before a server in a new folder, which Stop removes. All clients work as the superuser.
func (p Params) Start(ctx context.Context, program, dir string, before netip.AddrPort) (*Pooler, error) {
	return start(ctx, program, dir, before, server.Superuser, p.settings)
}

// checkLimit bounds the check of the settings, which takes 10 ms on an idle machine.
const checkLimit = 5 * time.Second

// nobody is a user that does not exist, so PgBouncer fails to change to it. It does so after it has read its
// configuration and before it listens (main in src/main.c).
const nobody = "stroppy-has-no-such-user"

// check makes PgBouncer read the given settings before anything is started. The error is a *cluster.ParamError for
// the first unknown setting or invalid value. PgBouncer reports other problems when it starts.
func (p Params) check(ctx context.Context, program string) error {
	if len(p.given) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "stroppy-pgbouncer-")
	if err != nil {
		return fmt.Errorf("check the settings of PgBouncer: %w", err)
	}
	defer os.RemoveAll(dir)
	// No machine has this address (RFC 5737), in case PgBouncer gets as far as listening.
	text := "[databases]\n[pgbouncer]\nlisten_addr = 192.0.2.1\nlisten_port = 6432\nunix_socket_dir =\n" + settingLines(p.settings)
	config := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("check the settings of PgBouncer: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	said, _ := exec.CommandContext(limited, program, "-u", nobody, config).CombinedOutput() // it always fails
	for _, name := range p.given {
		switch {
		case strings.Contains(string(said), "unknown parameter: pgbouncer/"+name+"\n"):
			return &cluster.ParamError{Param: paramSetting + name, Reason: "PgBouncer has no such setting"}
		case strings.Contains(string(said), " for parameter "+name+" in configuration"):
			return &cluster.ParamError{Param: paramSetting + name, Reason: fmt.Sprintf("PgBouncer does not accept the value %q", p.settings[name])}
		}
	}
	return nil
}

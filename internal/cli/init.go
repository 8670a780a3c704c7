package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"stroppy/internal/exit"
	"stroppy/internal/live"
	"stroppy/internal/registry"
	"stroppy/internal/scenario"
	"stroppy/internal/starter"
)

// initCommand writes a first scenario for the tables of a database.
func (a *app) initCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "init --db URL", Short: "Write a first scenario for the tables of a database",
		Long: "This command reads the tables of an existing database, if it has SQL and a list of its tables. It\n" +
			"writes a scenario of the workload script, with a script for each table that reads its rows, and with\n" +
			"the constraints as invariants: primary, unique and foreign keys, and CHECKs. The scenario runs as it is.\n" +
			"It changes nothing in the database.",
		Args: noArguments,
	}
	read := a.settings(c, keys("db", "local-address"))
	out := c.Flags().StringP("out", "o", "", "write the scenario into this `FILE`, which must not exist yet; by default it is printed")
	force := c.Flags().Bool("force", false, "replace the file")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := read(nil)
		switch {
		case err != nil:
			return err
		case config.DB == "":
			return exit.Usagef("`%s` needs a database: name it with --db or STROPPY_DB", c.CommandPath())
		case *force && *out == "":
			return exit.Usagef("--force replaces a file: name it with --out")
		}
		if _, err := os.Lstat(*out); *out != "" && err == nil && !*force {
			return exit.Usagef("write the scenario: %s exists: name another file, or replace it with --force", *out)
		}
		if kind, err := registry.Find(config.DB); err == nil && kind.KeyValue != nil {
			if err := starter.Listed(kind.KeyValue); err != nil {
				return exit.With(exit.Usage, err)
			}
		}
		s := a.Begin(live.NewFeed())
		defer s.Stop()
		const left = "nothing was changed"
		ctx, err := config.ConnectFrom(s.Context)
		if err != nil {
			return err
		}
		database, err := registry.Look(ctx, config.DB)
		if err != nil {
			return s.Cause(err, left)
		}
		defer database.Close()
		if err := starter.Listed(database); err != nil {
			return exit.With(exit.Usage, err)
		}
		schema, err := starter.Read(ctx, database)
		if err != nil {
			return s.Cause(err, left)
		}
		s.Stop()
		url, secret := scenario.WithoutSecrets(config.DB)
		command := "stroppy init --db " + config.Address()
		return a.writeScenario(*out, schema.Scenario(url, command, secret), *force)
	}
	return c
}

// writeScenario writes a scenario into a file, which must not exist unless force is set; empty: it is printed.
func (a *app) writeScenario(path string, text []byte, force bool) error {
	if path == "" {
		_, err := a.Stdout.Write(text)
		return err
	}
	flag := os.O_EXCL
	if force {
		flag = os.O_TRUNC
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist):
		return exit.Usagef("write the scenario: %s exists: name another file, or replace it with --force", path)
	case err != nil:
		return exit.With(exit.Usage, fmt.Errorf("write the scenario: %w", err))
	}
	if _, err := file.Write(text); err != nil {
		return errors.Join(fmt.Errorf("write the scenario: %w", err), file.Close())
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write the scenario: %w", err)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s is written; run it with: stroppy run -f %s\n", path, scenario.Quote(path))
	return err
}

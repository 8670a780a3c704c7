//go:build !embedded

package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/exit"
	"stroppy/internal/live"
	"stroppy/internal/registry"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/workers"
)

// workersFolder is the folder in the run's directory in which workers record.
const workersFolder = "workers"

// assigned holds the settings of a run for its workers.
type assigned struct {
	Settings []scenario.Setting
	Named    scenario.Set
}

// OneProcess returns an error if the run has several workers and a database that only one process can open.
func (c *Config) OneProcess() error {
	kind, err := registry.Find(c.RunDatabase(""))
	if c.Workers == 0 || err != nil || !kind.InMemory {
		return c.oneMachine()
	}
	return exit.Usagef("workers is %d and %s: is in the memory of one process: leave --workers out, or "+
		"take another database", c.Workers, kind.Schemes[0])
}

// oneMachine returns an error if workers of other machines cannot open the database or cannot join.
func (c *Config) oneMachine() error {
	if c.WorkersListen == "" {
		return nil
	}
	if url := c.RunDatabase(""); c.Cluster == "" && registry.Embedded(url) {
		return exit.Usagef("workers join from other machines, and %s is a file on this machine: leave "+
			"--workers-listen out, or name a server with --db", scenario.Redact(url))
	}
	if _, err := live.Address(c.WorkersListen); err != nil {
		return exit.Usagef("workers-listen: %w", err)
	}
	return nil
}

// startWorkers starts the configured workers, or lets them join. It returns nil if none are configured.
func (a *App) startWorkers(s *Session, config *Config, servers *Cluster, url, dir string) (_ *workers.Coordinator, err error) {
	if config.Workers == 0 {
		return nil, nil
	}
	var pods podCluster
	if config.WorkersOn == scenario.Pods {
		if pods, url, err = servers.podsFor(); err != nil {
			return nil, err
		}
	}
	settings, err := json.Marshal(config.assign(url))
	if err != nil {
		return nil, err
	}
	o := workers.Options{
		Count: config.Workers, Version: registry.Version(), Clock: run.SharedClock, Settings: settings,
		Folder: filepath.Join(dir, workersFolder), Token: workers.NewToken(), Lost: config.WorkersLost,
		OnLost: func(why error) { s.Note("%v: the others go on", why) },
	}
	tokenFile := "" // made for these workers
	ctx, fail := context.WithCancelCause(s.Context)
	defer fail(nil)
	switch {
	case pods != nil:
		err = a.startPods(ctx, fail, config, pods, &o)
	case config.WorkersListen != "":
		tokenFile, err = a.letJoin(s, config, &o)
	default:
		err = a.startHere(&o)
	}
	if err != nil {
		return nil, err
	}
	c, err := workers.Start(ctx, o)
	if tokenFile != "" {
		if gone := os.Remove(tokenFile); !errors.Is(gone, fs.ErrNotExist) { // with its folder, where no worker came
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(o.Folder))
	}
	return c, nil
}

// podCluster is a cluster that can run workers as pods.
type podCluster interface {
	InsideURL() (string, error) // of the database, for them
	NearAddress() (string, error)
	StartWorkers(ctx context.Context, count int, address, token string) error
}

// podsFor returns the cluster for workers as pods, and the URL of the database for these pods.
func (r *Cluster) podsFor() (pods podCluster, url string, err error) {
	if r != nil {
		if pods, ok := r.cluster.(podCluster); ok {
			url, err = pods.InsideURL()
			return pods, url, err
		}
	}
	return nil, "", exit.Usagef("workers-on is %s, and the run has no cluster in Kubernetes: give one "+
		"with --cluster %sKIND:N", scenario.Pods, scenario.InKubernetes)
}

// startPods starts the workers as pods, which join this process. It passes an error of the start to fail, which ends the
// wait for the workers.
func (a *App) startPods(ctx context.Context, fail context.CancelCauseFunc, config *Config, pods podCluster, o *workers.Options) (err error) {
	if config.WorkersListen != "" {
		o.Listen, err = live.Address(config.WorkersListen)
	} else if o.Listen, err = pods.NearAddress(); err == nil {
		o.Listen = net.JoinHostPort(o.Listen, "0")
	}
	if err != nil {
		return err
	}
	a.Hide(scenario.Scrubber("", o.Token))
	o.Wait = config.WorkersWait
	o.Listening = func(address string) {
		go func() {
			if err := pods.StartWorkers(ctx, config.Workers, address, o.Token); err != nil {
				fail(err)
			}
		}()
	}
	return nil
}

// startHere makes the coordinator start the workers as processes of this machine.
func (a *App) startHere(o *workers.Options) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to start the workers: %w", err)
	}
	environment := append(a.workerEnvironment(), scenario.TokenVariable+"="+o.Token)
	o.Command = func(_ int, address, folder string) *exec.Cmd {
		command := exec.Command(program, WorkerCommand, address, folder)
		command.Env = environment
		return command
	}
	return nil
}

// workerEnvironment returns the environment of this call without settings, which workers get in another way.
func (a *App) workerEnvironment() []string {
	return slices.DeleteFunc(slices.Clone(a.Environ), func(v string) bool { return strings.HasPrefix(v, scenario.Prefix) })
}

// assign returns the settings with which a worker opens its clients.
func (c *Config) assign(url string) assigned {
	list := assigned{[]scenario.Setting{{Key: "db", Value: url, Source: "the run's db"}}, c.Named}
	for _, one := range c.Settings() {
		if value := one.Get(); value != "" && !one.Local && !slices.Contains(notAssigned, one.Name) {
			list.Settings = append(list.Settings, scenario.Setting{Key: one.Name, Value: value, Source: "the run's " + one.Name})
		}
	}
	return list
}

// notAssigned lists the settings that workers do not need.
var notAssigned = []string{"db", "cluster", "kubernetes", "node-resources", "keep", "nemesis", "probe", "yes", "max-outage", "max-degradation", "threshold", "workers", "workers-on", "workers-listen", "workers-token-file", "workers-wait", "workers-lost", "expect", "no-load", "no-check"}

// OpenPart opens a worker's part of the clients.
func OpenPart(ctx context.Context, a *workers.Assignment) (_ *workers.Opened, err error) {
	var given assigned
	if err := json.Unmarshal(a.Settings, &given); err != nil {
		return nil, fmt.Errorf("read the settings of the run: %w", err)
	}
	merged, _, err := registry.Workloads().Merge(given.Settings)
	if err != nil {
		return nil, err
	}
	var config Config
	if config.Plan, err = merged.Plan(given.Named); err != nil {
		return nil, err
	}
	if ctx, err = config.ConnectFrom(ctx); err != nil {
		return nil, err
	}
	database, err := registry.Open(ctx, config.DB, config.Isolation)
	if err != nil {
		return nil, err
	}
	part := &workers.Opened{Close: database.Close}
	defer func() {
		if err != nil {
			err = errors.Join(err, part.Close())
		}
	}()
	config.NoLoad = true  // the run has loaded the data
	if config.Seed != 0 { // the run has drawn it
		named := scenario.Set{"seed": true}
		maps.Copy(named, config.Named)
		config.Named = named
	}
	w, err := config.bind(database)
	if err != nil {
		return nil, err
	}
	w.Join(a.LoadID, a.Run)
	if _, err := w.Attach(ctx); err != nil {
		return nil, err
	}
	part.Header = w.Header()
	o := &part.Options
	*o = run.LoadOptions(&config.Plan, part.Header)
	o.First, o.All = a.First, a.All
	part.Close = func() error { return errors.Join(run.CloseClients(o), database.Close()) }
	if part.Servers, err = run.OpenClients(ctx, w, o, a.First, a.Clients); err != nil {
		return nil, err
	}
	if a.Background {
		if o.Background, err = w.Background(ctx); err != nil {
			return nil, err
		}
	}
	return part, nil
}

// WorkerCommand is the name of the command by which this program is a worker.
const WorkerCommand = "worker"

// letJoin lets workers join from other machines, and shows the command. It returns the path of the token file if it
// made that. The file is not needed once they have joined.
func (a *App) letJoin(s *Session, config *Config, o *workers.Options) (made string, err error) {
	if o.Listen, err = live.Address(config.WorkersListen); err != nil {
		return "", exit.Usagef("workers-listen: %w", err)
	}
	file := config.WorkersTokenFile
	switch given := a.Getenv(scenario.TokenVariable); {
	case given != "" && file != "":
		return "", exit.Usagef("both %s and --workers-token-file give the token of the workers: leave one of them out",
			scenario.TokenVariable)
	case given != "":
		if err := workers.CheckToken(given); err != nil {
			return "", exit.Usagef("%s is no token: %w", scenario.TokenVariable, err)
		}
		o.Token = given
	default:
		file = cmp.Or(file, filepath.Join(o.Folder, "token"))
		token, err := ReadToken(file)
		if errors.Is(err, fs.ErrNotExist) {
			made, token, err = file, o.Token, keepToken(file, o.Token)
		}
		if err != nil {
			return "", err
		}
		o.Token = token
	}
	a.Hide(scenario.Scrubber("", o.Token))
	o.Wait = config.WorkersWait
	o.Listening = func(address string) { s.Note("%s", joinText(config.Workers, address, file)) }
	o.Joined = func(what string) { s.Note("%s", what) }
	return made, nil
}

// keepToken writes a token into a new file.
func keepToken(path, token string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		var file *os.File
		if file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_, err = file.WriteString(token + "\n")
			err = errors.Join(err, file.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("write the workers' token: %w", err)
	}
	return nil
}

// ReadToken reads a token; where there is no file the error is fs.ErrNotExist.
func ReadToken(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if err := workers.CheckToken(token); err != nil {
		return "", exit.Usagef("%s has no token: %w", path, err)
	}
	return token, nil
}

// joinText returns the command that a person types on the other machines.
func joinText(count int, address, file string) string {
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	command := "stroppy " + WorkerCommand + " --join " + scenario.Quote(net.JoinHostPort(host, port))
	if file == "" {
		return fmt.Sprintf("waiting for %d workers: start each, with %s set as here, with: %s",
			count, scenario.TokenVariable, command)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		path = file
	}
	return fmt.Sprintf("waiting for %d workers: copy %s to their machines, and start each with: %s --token-file %s",
		count, path, command, scenario.Quote(filepath.Base(path)))
}

package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/isolation"
	"stroppy/internal/pace"
	"stroppy/internal/setting"
)

// Settings returns all settings, bound to the scenario, in the order of files and help.
func (s *Scenario) Settings() []setting.Setting {
	own := s.Config.Settings()
	for i := range own {
		own[i].Group = setting.Workload
	}
	return slices.Concat(s.general(), own, s.closing())
}

// Get returns the value of a setting; empty where the scenario does not have it.
func (s *Scenario) Get(name string) string {
	for _, one := range s.Settings() {
		if one.Name == name {
			return one.Get()
		}
	}
	return ""
}

// unlessZero returns a setting that refuses 0.
func unlessZero[V comparable](s setting.Setting, value *V) setting.Setting {
	get := s.Get
	s.Get = func() string {
		if *value == *new(V) {
			return ""
		}
		return get()
	}
	return s
}

// count returns the setting of the number of transactions, at least 1.
func (s *Scenario) count() setting.Setting {
	count := setting.Whole(&s.Count, "count", "transactions to run, instead of --duration").In(setting.Load).Also("transactions")
	parse := count.Set
	count.Set = func(t string) error {
		err := parse(t)
		switch {
		case s.Count > MaxCount:
			return fmt.Errorf("it may be at most %d", int64(MaxCount))
		case err == nil && s.Count == 0:
			return errors.New("it must be 1 or more")
		}
		return err
	}
	return unlessZero(count, &s.Count).Sized(nil)
}

// maxRetries is the largest number of retries.
const maxRetries = 1_000_000

// retries returns the setting of the number of retries. pgbench counts tries, and 0 means any number of them.
func (s *Scenario) retries() setting.Setting {
	retries := setting.Small(&s.Retries, "retries", "new tries of a transaction that was aborted").In(setting.Load).Between(0, maxRetries)
	retries.Aliases = []setting.Alias{{
		Name: "max-tries", Help: "the same as pgbench counts it: the first try, too; 0 is any number", Says: "how often a transaction is tried",
		Convert: func(text string) (string, error) {
			tries, err := setting.ParseWhole(text)
			switch {
			case err != nil:
				return "", err
			case tries == 0:
				return strconv.Itoa(maxRetries), nil
			case tries > maxRetries+1:
				return "", fmt.Errorf("it may be at most %d", maxRetries+1)
			}
			return strconv.FormatUint(tries-1, 10), nil
		},
	}}
	return retries
}

// latencyLimit returns the setting of the limit of the latency. A number without a unit is in milliseconds, as for
// pgbench.
func (s *Scenario) latencyLimit() setting.Setting {
	limit := setting.Duration(&s.LatencyLimit, "latency-limit", "count committed transactions that take longer; with a rate, skip those that are later than this before they are sent; 0 is no limit").In(setting.Load).Short("L")
	parse := limit.Set
	limit.Set = func(text string) error {
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			text += "ms"
		}
		return parse(text)
	}
	return limit
}

// general returns the settings of every workload.
func (s *Scenario) general() []setting.Setting {
	return []setting.Setting{
		setting.Text(&s.Workload, "workload", "NAME", "what to run").In(setting.Workload),
		setting.Text(&s.DB, "db", "URL", "the database's URL; 'stroppy list databases' shows the forms").In(setting.Database),
		setting.Text(&s.Cluster, "cluster", "KIND[:N]", "start a cluster on this machine and test it, or own:FILE, servers that you started; 'stroppy list clusters' shows the kinds").In(setting.Database),
		setting.Switch(&s.Kubernetes, "kubernetes", "start the cluster in Kubernetes, as --cluster k8s/KIND does").In(setting.Database).LocalOnly(),
		setting.Custom(&s.Resources, "node-resources", "NAME=N,NAME=N", "resources of each node in Kubernetes, such as cpu=1,memory=8G,disk=100G",
			parseResources, strings.Clone).In(setting.Database),
		setting.Switch(&s.Keep, "keep", "leave the cluster in Kubernetes after the run").In(setting.Database).LocalOnly(),
		setting.Text(&s.LocalAddress, "local-address", "ADDR,ADDR", "addresses of this machine for connections, in turn; a server takes about 28,000 from one address").In(setting.Database),
		setting.Lines(&s.Nemesis, "nemesis", "FAULT", "a fault to inject, such as 'kill leader every 20s for 5s'; may be given several times").In(setting.Faults),
		setting.Text(&s.Probe, "probe", "COMMAND", "a command that succeeds while a fault by exec is in effect; without it the exit code of exec counts").In(setting.Faults).IdleIf(func() string {
			if s.Nemesis != "" {
				return ""
			}
			return "the run has no faults: add some with nemesis"
		}),
		setting.Switch(&s.Yes, "yes", "hurt servers that stroppy did not start, and add columns to tables that it did not make, without a question").In(setting.Faults).LocalOnly(),
		setting.Duration(&s.MaxOutage, "max-outage", "longest time without a commit that a fault may cause; 0 allows any").In(setting.Faults),
		setting.Share(&s.MaxDegradation, "max-degradation", "largest loss of throughput after the last fault; 0 allows any").In(setting.Faults),
		setting.Lines(&s.Thresholds, "threshold", "FIGURE<LIMIT", "a limit on a figure of result.json, such as 'p99<50ms' or 'tps>1000'; exit code 5 if it is missed; may be given several times").In(setting.Proof),
		setting.Whole(&s.Seed, "seed", "seed of all random choices; 0 draws one").In(setting.Workload).OfData(),
		setting.Small(&s.Clients, "clients", "clients, each with its own connection").In(setting.Load).Between(1, MaxClients).Short("c").Also("threads", "connections", "vus").Sized(nil),
		s.scaleDown(),
		setting.Small(&s.Workers, "workers", "processes that share the clients; 0 runs all clients in this one").In(setting.Load).Between(0, MaxWorkers),
		setting.Text(&s.WorkersOn, "workers-on", "NAME", "machines (the default): this machine, or those that join; pods: pods beside the cluster in Kubernetes").In(setting.Load).OneOf(Machines, Pods).IdleIf(s.withoutWorkers),
		setting.Text(&s.WorkersListen, "workers-listen", "ADDR", "address at which workers of other machines join with 'stroppy worker': PORT of this machine, or HOST:PORT; port 0 is any").In(setting.Load).LocalOnly().IdleIf(s.withoutWorkers),
		setting.Text(&s.WorkersTokenFile, "workers-token-file", "FILE", "file with the token of the workers, made if missing; by default STROPPY_WORKER_TOKEN, or 'workers/token' in the run's directory").In(setting.Load).LocalOnly().IdleIf(s.withoutJoining),
		setting.Duration(&s.WorkersWait, "workers-wait", "how long to wait until all workers have joined").In(setting.Load).LocalOnly().IdleIf(s.withoutJoining),
		setting.Small(&s.WorkersLost, "workers-lost", "workers that may be lost during the load phase without an end of the run").In(setting.Load).Between(0, MaxWorkers).IdleIf(s.withoutWorkers),
		unlessZero(setting.Duration(&s.Duration, "duration", "length of the load phase"), &s.Duration).In(setting.Load).Short("d").Also("time"),
		s.count(),
		setting.Duration(&s.Warmup, "warmup", "time before the measurement begins, part of the load phase").In(setting.Load),
		setting.Custom(&s.Rate, "rate", "RATE",
			"transactions per second, all clients together, such as 1000 or '1000 for 30s, 1000..5000 for 1m'; 0 sends as fast as answers come",
			pace.Parse, pace.Plan.String).In(setting.Load),
		setting.Text(&s.Arrival, "arrival", "NAME", "arrivals within the rate: uniform (the default) or poisson").In(setting.Load).OneOf(pace.Uniform.String(), pace.Poisson.String()),
		setting.Duration(&s.Think, "think-time", "pause of a client between two transactions without a rate; the mean with --arrival poisson").In(setting.Load).Formerly("think"),
		setting.Whole(&s.MaxBacklog, "max-backlog", "transactions that may be due and not sent; more are shed and counted").In(setting.Load).Between(1, maxBacklog).IdleIf(func() string {
			if !s.Rate.Closed() {
				return ""
			}
			return "rate is 0, which leaves nothing waiting: give a rate, such as --rate 1000"
		}),
		setting.Text(&s.Isolation, "isolation", "NAME", "isolation level as the database names it; by default its own").In(setting.Database),
		setting.Text(&s.Mode, "mode", "MODE", "how statements travel: pipelined, interactive or procedure").In(setting.Database).OneOf("pipelined", "interactive", "procedure"),
		unlessZero(setting.Custom(&s.Expect, "expect", "LEVEL", "the level that the verdict is about; by default the claim of the database",
			parseLevel, isolation.Level.String), &s.Expect).In(setting.Proof),
		s.retries(),
		s.latencyLimit(),
		setting.Switch(&s.Connect, "connect", "open a new connection for each transaction, as pgbench does; SQL databases only").In(setting.Load).Short("C"),
		setting.Duration(&s.GiveUp, "unreachable-timeout", "end the run if no client reaches the database for this time").In(setting.Load).Formerly("give-up"),
	}
}

// withoutWorkers and withoutJoining say why nothing reads a setting of workers that join.
func (s *Scenario) withoutWorkers() string {
	if s.Workers > 0 {
		return ""
	}
	return "workers is 0: give how many there are, such as --workers 2"
}

func (s *Scenario) withoutJoining() string {
	if s.WorkersListen != "" || s.WorkersOn == Pods {
		return ""
	}
	return "no worker joins by itself: give --workers-listen"
}

func parseLevel(text string) (isolation.Level, error) {
	level, err := isolation.Parse(text)
	if err != nil {
		err = fmt.Errorf("it must be one of %s", strings.Join(setting.Names(isolation.Levels(), isolation.Level.String), ", "))
	}
	return level, err
}

func (s *Scenario) closing() []setting.Setting {
	return []setting.Setting{
		setting.Switch(&s.NoLoad, "no-load", "use the data that are already loaded").In(setting.Workload),
		setting.Switch(&s.LiveCheck, "live-check", "also check every two seconds of the load phase, and report a violation at once").In(setting.Proof),
		setting.Switch(&s.StopOnViolation, "stop-on-violation", "--live-check, and end the load phase with the first violation").In(setting.Proof),
		setting.Switch(&s.NoCheck, "no-check", "do not check; the verdict is then unknown").In(setting.Proof),
		setting.Text(&s.Out, "out", "DIR", "the run's directory; by default stroppy-runs/TIME-WORKLOAD-DB").In(setting.Output).LocalOnly().Short("o"),
		setting.Text(&s.Serve, "serve", "ADDR", "show the report live at this address: PORT of this machine, or HOST:PORT").In(setting.Output).LocalOnly(),
		setting.Text(&s.Metrics, "metrics", "ADDR", "metrics for Prometheus at this address: PORT, or HOST:PORT").In(setting.Output).LocalOnly(),
		setting.Switch(&s.JSON, "json", "print result.json on standard output and nothing else there").In(setting.Output).LocalOnly(),
	}
}

// Key is the name of a setting as a flag, a variable and a key of a file.
type Key struct {
	Name string
	setting.Setting
	Alias     *setting.Alias // nil: the setting's own name
	Workloads []string       // that have it; none: all
}

// Keys returns all names of settings, each once: first the common ones, then the settings of each workload.
func (w Workloads) Keys() []Key {
	var keys []Key
	places := map[string]int{}
	one := func(name string, s *setting.Setting, alias *setting.Alias, owners []string) {
		at, there := places[name]
		if !there {
			at = len(keys)
			places[name] = at
			keys = append(keys, Key{Name: name, Setting: *s, Alias: alias})
		}
		keys[at].Workloads = append(keys[at].Workloads, owners...)
	}
	add := func(list []setting.Setting, owners ...string) {
		for i := range list {
			s := &list[i]
			one(s.Name, s, nil, owners)
			for k := range s.Aliases {
				one(s.Aliases[k].Name, s, &s.Aliases[k], owners)
			}
		}
	}
	general := w.Default()
	add(general.general())
	for _, spec := range w {
		add(spec.Config().Settings(), spec.Name)
	}
	add(general.closing())
	return keys
}

// AppliesTo reports whether a workload has the key.
func (k *Key) AppliesTo(workload string) bool {
	return len(k.Workloads) == 0 || slices.Contains(k.Workloads, workload)
}

// Switch reports whether the key needs no value.
func (k *Key) Switch() bool { return k.Setting.Switch() || k.Alias != nil && k.Alias.Values != nil }

// Variable returns the environment variable of the key, such as STROPPY_PAYROLL_SHARE.
func (k *Key) Variable() string { return setting.Variable(Prefix, k.Name) }

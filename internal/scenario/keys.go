package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/isolation"
	"stroppy/internal/pace"
)

// Key is one setting. Flag, variable and YAML file call it by the same name.
type Key struct {
	Name  string // as the flag and the file spell it, such as payroll-share
	Usage string // one line for the help
	Value string // what stands for the value in the help; empty for a switch
	Lines bool   // its value is any number of lines: a flag given several times, a list in a file
	Local bool   // it belongs to one run on one machine, so that scenario.yaml leaves it out

	set func(s *Scenario, text string) error
	get func(s *Scenario) string

	workloads []string                 // that have it; none: all
	idle      func(s *Scenario) string // see Idle; nil: it never is
}

// Switch says that the key is on or off, so that its flag needs no value.
func (k *Key) Switch() bool { return k.Value == "" }

// Variable returns the environment variable of the key, such as STROPPY_PAYROLL_SHARE.
func (k *Key) Variable() string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(k.Name, "-", "_"))
}

// Get returns the key's value in s as text that a file or a flag would take;
// empty where it is not set.
func (k *Key) Get(s *Scenario) string { return k.get(s) }

// Idle says why nothing in s would read the key, and what to give with it, to stand
// in a sentence; empty where something does.
func (k *Key) Idle(s *Scenario) string {
	if k.idle == nil {
		return ""
	}
	return k.idle(s)
}

// unless gives a key what its Idle says.
func unless(k Key, idle func(s *Scenario) string) Key {
	k.idle = idle
	return k
}

// Keys returns all keys in the order in which files and help show them.
func Keys() []Key {
	return slices.Concat(generalKeys(), bankKeys(), workloadKeys(), closingKeys())
}

// generalKeys are those that every workload has, but for how its keys are chosen.
func generalKeys() []Key {
	return []Key{
		text("workload", "what to run: bank, tpcb, events or kv", "NAME", func(s *Scenario) *string { return &s.Workload }),
		text("db", "the database's URL; sqlite:PATH, postgres://…, etcd://…, memory:, noop:", "URL", func(s *Scenario) *string { return &s.DB }),
		text("cluster", "start a database cluster on this machine and test it, such as postgres:2 or etcd:3; instead of --db", "KIND[:N]", func(s *Scenario) *string { return &s.Cluster }),
		lines("nemesis", "a fault to inject, such as 'kill leader every 20s for 5s'; may be given several times", "FAULT", func(s *Scenario) *string { return &s.Nemesis }),
		duration("max-outage", "longest time without a commit that a fault may cause; 0 allows any", func(s *Scenario) *time.Duration { return &s.MaxOutage }),
		share("max-degradation", "largest loss of throughput from before the first fault to after the last; 0 allows any", func(s *Scenario) *float64 { return &s.MaxDegradation }),
		whole("seed", "what all random choices derive from; 0 draws one", func(s *Scenario) *uint64 { return &s.Seed }),
		small("clients", "clients, each with its own connection", func(s *Scenario) *int { return &s.Clients }),
		duration("duration", "length of the load phase", func(s *Scenario) *time.Duration { return &s.Duration }),
		count(),
		duration("warmup", "time before the measurement begins, part of the load phase", func(s *Scenario) *time.Duration { return &s.Warmup }),
		rate(),
		text("arrival", "how transactions lie within the rate: uniform (the default), or poisson (Poisson arrivals)", "NAME", func(s *Scenario) *string { return &s.Arrival }),
		duration("think", "a client's pause between two transactions where no rate is given; its mean with --arrival poisson", func(s *Scenario) *time.Duration { return &s.Think }),
		unless(whole("max-backlog", "transactions of a rate that may be due and not sent; more are shed and counted", func(s *Scenario) *uint64 { return &s.MaxBacklog }), closedLoop),
		of(zipfian(), Bank, TPCB, KV),
		of(unless(real("zipf-exponent", "how uneven --zipfian is", func(s *Scenario) *float64 { return &s.ZipfExponent }), allAlike), Bank, TPCB, KV),
		text("isolation", "isolation level as the database names it; its own default if not given", "NAME", func(s *Scenario) *string { return &s.Isolation }),
		text("mode", "how statements travel: pipelined, interactive or procedure", "MODE", func(s *Scenario) *string { return &s.Mode }),
		expect(),
		small("retries", "new tries of a transaction that was aborted", func(s *Scenario) *int { return &s.Retries }),
		duration("give-up", "end the run when no client has reached the database for so long", func(s *Scenario) *time.Duration { return &s.GiveUp }),
	}
}

// bankKeys are those of the bank alone.
func bankKeys() []Key {
	return []Key{
		of(whole("accounts", "accounts of the bank", func(s *Scenario) *uint64 { return &s.Accounts }), Bank),
		of(text("update", "style of the transaction: atomic, locked or rmw", "STYLE", func(s *Scenario) *string { return &s.Update }), Bank),
		of(real("audits", "audits per second that run beside the transfers", func(s *Scenario) *float64 { return &s.Audits }), Bank),
		of(whole("audit-sample", "accounts that one audit reads; 0 reads all of up to 100,000, and 10,000 of more", func(s *Scenario) *uint64 { return &s.AuditSample }), Bank),
		of(real("payroll-share", "share of payrolls, 0 to 1", func(s *Scenario) *float64 { return &s.PayrollShare }), Bank),
		of(small("payroll-legs", "people that one payroll pays", func(s *Scenario) *int { return &s.PayrollLegs }), Bank),
		of(real("joint-share", "share of transfers allowed by a rule over two accounts, 0 to 1", func(s *Scenario) *float64 { return &s.JointShare }), Bank),
		of(real("inquiry-share", "share of transactions that only read, 0 to 1", func(s *Scenario) *float64 { return &s.InquiryShare }), Bank),
		of(real("large-share", "share of transfers large enough to overdraw, 0 to 1", func(s *Scenario) *float64 { return &s.LargeShare }), Bank),
		of(text("lock-order", "order in which a transaction takes its accounts: key or random", "ORDER", func(s *Scenario) *string { return &s.LockOrder }), Bank),
	}
}

func closingKeys() []Key {
	return []Key{
		flag("no-load", "use the data that is already loaded", func(s *Scenario) *bool { return &s.NoLoad }),
		flag("no-check", "do not check; the verdict is then unknown", func(s *Scenario) *bool { return &s.NoCheck }),
		local(text("out", "the run's directory; stroppy-runs/TIME-WORKLOAD-DB if not given", "DIR", func(s *Scenario) *string { return &s.Out })),
		local(text("serve", "show the report live in a browser at this address of this machine: PORT, or HOST:PORT", "ADDR", func(s *Scenario) *string { return &s.Serve })),
		local(text("metrics", "give metrics to Prometheus at this address, under /metrics: PORT, or HOST:PORT", "ADDR", func(s *Scenario) *string { return &s.Metrics })),
		local(flag("json", "print result.json on standard output and nothing else there", func(s *Scenario) *bool { return &s.JSON })),
	}
}

func local(k Key) Key {
	k.Local = true
	return k
}

func text(name, usage, value string, field func(*Scenario) *string) Key {
	return Key{Name: name, Usage: usage, Value: value,
		set: func(s *Scenario, t string) error { *field(s) = t; return nil },
		get: func(s *Scenario) string { return *field(s) },
	}
}

// lines is a text of any number of lines, of which empty ones do not count.
func lines(name, usage, value string, field func(*Scenario) *string) Key {
	k := text(name, usage, value, field)
	k.Lines = true
	k.set = func(s *Scenario, t string) error {
		var kept []string
		for line := range strings.Lines(t) {
			if line = strings.TrimSpace(line); line != "" {
				kept = append(kept, line)
			}
		}
		*field(s) = strings.Join(kept, "\n")
		return nil
	}
	return k
}

// share is a number that may be written in per cent.
func share(name, usage string, field func(*Scenario) *float64) Key {
	k := real(name, usage, field)
	k.Value = "SHARE"
	parse := k.set
	k.set = func(s *Scenario, t string) error {
		percent, ok := strings.CutSuffix(t, "%")
		if err := parse(s, percent); err != nil {
			return fmt.Errorf("it must be a share, such as 20%% or 0.2")
		}
		if ok {
			*field(s) /= 100
		}
		return nil
	}
	return k
}

func whole(name, usage string, field func(*Scenario) *uint64) Key {
	return Key{Name: name, Usage: usage, Value: "N",
		set: func(s *Scenario, t string) (err error) { *field(s), err = parseWhole(t); return err },
		get: func(s *Scenario) string { return strconv.FormatUint(*field(s), 10) },
	}
}

func small(name, usage string, field func(*Scenario) *int) Key {
	return Key{Name: name, Usage: usage, Value: "N",
		set: func(s *Scenario, t string) error {
			n, err := parseWhole(t)
			if err == nil && n > math.MaxInt32 {
				err = fmt.Errorf("it may be at most %d", math.MaxInt32)
			}
			*field(s) = int(n & math.MaxInt32)
			return err
		},
		get: func(s *Scenario) string { return strconv.Itoa(*field(s)) },
	}
}

func real(name, usage string, field func(*Scenario) *float64) Key {
	return Key{Name: name, Usage: usage, Value: "X",
		set: func(s *Scenario, t string) error {
			x, err := strconv.ParseFloat(t, 64)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("it must be a number, such as 0.5")
			}
			*field(s) = x
			return nil
		},
		get: func(s *Scenario) string { return strconv.FormatFloat(*field(s), 'g', -1, 64) },
	}
}

// rate is a plan; a plain number is one, too.
func rate() Key {
	return Key{Name: "rate", Value: "RATE",
		Usage: "transactions per second, all clients together, such as 1000 or '1000 for 30s, 1000..5000 for 1m'; 0 sends as fast as answers come",
		set:   func(s *Scenario, t string) (err error) { s.Rate, err = pace.Parse(t); return err },
		get:   func(s *Scenario) string { return s.Rate.String() },
	}
}

// zipfian is short for a distribution where the workload has some, and is then told
// as that.
func zipfian() Key {
	k := flag("zipfian", "choose few accounts often instead of all alike", func(s *Scenario) *bool { return &s.Zipfian })
	get := k.get
	k.get = func(s *Scenario) string {
		if s.Workload == KV {
			return ""
		}
		return get(s)
	}
	return k
}

func flag(name, usage string, field func(*Scenario) *bool) Key {
	return Key{Name: name, Usage: usage,
		set: func(s *Scenario, t string) error {
			if t != "true" && t != "false" {
				return fmt.Errorf("it must be true or false")
			}
			*field(s) = t == "true"
			return nil
		},
		get: func(s *Scenario) string { return strconv.FormatBool(*field(s)) },
	}
}

func duration(name, usage string, field func(*Scenario) *time.Duration) Key {
	return Key{Name: name, Usage: usage, Value: "TIME",
		set: func(s *Scenario, t string) error {
			d, err := time.ParseDuration(t)
			switch {
			case err != nil:
				return fmt.Errorf("it must be a time with its unit, such as 10s or 1m30s")
			case d < 0:
				return fmt.Errorf("a time cannot be negative")
			}
			*field(s) = d
			return nil
		},
		get: func(s *Scenario) string {
			if *field(s) == 0 && name == "duration" {
				return ""
			}
			return field(s).String()
		},
	}
}

func count() Key {
	k := whole("count", "transactions to run, instead of --duration", func(s *Scenario) *uint64 { return &s.Count })
	parse := k.set
	k.set = func(s *Scenario, t string) error {
		if err := parse(s, t); err != nil {
			return err
		}
		if s.Count == 0 {
			return fmt.Errorf("it must be 1 or more")
		}
		return nil
	}
	k.get = func(s *Scenario) string {
		if s.Count == 0 {
			return ""
		}
		return strconv.FormatUint(s.Count, 10)
	}
	return k
}

func expect() Key {
	return Key{Name: "expect", Usage: "the level that the verdict is about; what the database claims if not given", Value: "LEVEL",
		set: func(s *Scenario, t string) error {
			level, err := isolation.Parse(t)
			if err != nil {
				return fmt.Errorf("it must be read-uncommitted, read-committed, snapshot-isolation, serializable or strict-serializable")
			}
			s.Expect = level
			return nil
		},
		get: func(s *Scenario) string {
			if s.Expect == isolation.Unknown {
				return ""
			}
			return s.Expect.String()
		},
	}
}

func parseWhole(t string) (uint64, error) {
	n, err := strconv.ParseUint(t, 10, 64)
	switch {
	case err == nil:
		return n, nil
	case strings.HasPrefix(t, "-"):
		return 0, fmt.Errorf("it cannot be negative")
	default:
		return 0, fmt.Errorf("it must be a whole number, such as 1000")
	}
}

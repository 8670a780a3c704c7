package tpcb

import (
	"fmt"
	"math"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
	"stroppy/internal/workload/recording"
	"stroppy/internal/workload/sampling"
)

// Spec is the workload as the commands know it.
func Spec() workload.Spec {
	return workload.Spec{
		Name: Name, About: "the transaction of TPC-B on pgbench's own tables; the sums and every row are checked",
		Data: "tpcb data",
		Config: func() workload.Config {
			c := DefaultConfig()
			return &c
		},
		Loaded: loaded,
		Check:  recording.Checker(Name, checks),
		Checks: Checks,
		Objects: func(h history.Header) workload.Objects {
			f, _ := recorded(h) // of a header that says nothing every row is unknown
			return &Names{f.size}
		},
		Format: workload.FormatAmounts(func(n int64) string { return strconv.FormatInt(n, 10) }),
	}
}

// loaded returns scale and ratio of the data that a recording is of.
func loaded(h history.Header) map[string]string {
	if _, err := recorded(h); err != nil {
		return nil
	}
	return map[string]string{"scale": h.Keys[factScale], "ratio": h.Keys[factRatio]}
}

// Settings implements workload.Config.
func (c *Config) Settings() []setting.Setting {
	list := []setting.Setting{
		setting.Whole(&c.Scale, "scale", "how often the rows of --ratio are there").OfData().Between(1, 1_000_000),
		c.ratio().OfData(),
		setting.Switch(&c.History, "history", "each transaction adds a row to the history"),
		setting.Switch(&c.Versions, "versions", "each row counts the transactions that touched it, so that their order can be checked; not what pgbench makes").OfData(),
	}
	for i := range list {
		list[i].Group = setting.Workload
	}
	return append(list, sampling.Settings(&c.Zipfian, &c.ZipfExponent)...)
}

func (c *Config) ratio() setting.Setting {
	return setting.Setting{
		Name: "ratio", Value: "B:T:A", Help: "branches, tellers and accounts of one scale",
		Set: func(t string) error {
			ratio, ok := parseRatio(t)
			if !ok {
				return fmt.Errorf("it must be three numbers from 1 to %d, such as 1:10:100000", math.MaxInt32)
			}
			c.Ratio = ratio
			return nil
		},
		Get: func() string { return ratioText(c.Ratio) },
	}
}

// Validate implements workload.Config.
func (c *Config) Validate() error { return nil }

// New implements workload.Config.
func (c *Config) New(database db.Database, o workload.Options) (workload.Workload, error) {
	t := *c
	t.Clients, t.Seed, t.Isolation, t.Mode = o.Clients, o.Seed, o.Isolation, o.Mode
	t.AnyRows = !o.Given("versions")
	if !o.Given("scale") && !o.Given("ratio") {
		t.Scale, t.Ratio = 0, [noKind]uint64{}
	}
	return New(database, t)
}

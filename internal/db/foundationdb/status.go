package foundationdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stroppy/internal/db"
)

// status holds the fields that the driver reads from the machine-readable status
// (https://apple.github.io/foundationdb/mr-status.html).
type status struct {
	Client struct {
		Coordinators struct {
			Coordinators []struct {
				Address   string
				Reachable bool
			}
		}
	}
	Cluster struct {
		Generation        int64
		DatabaseAvailable bool  `json:"database_available"`
		DegradedProcesses int64 `json:"degraded_processes"`
		Configuration     struct {
			Redundancy string `json:"redundancy_mode"`
			Engine     string `json:"storage_engine"`
		}
		Data struct {
			State struct {
				Healthy bool
				Name    string
			}
			KVBytes    int64  `json:"total_kv_size_bytes"`
			MovingData moving `json:"moving_data"`
		}
		Recovery struct {
			Name string
		} `json:"recovery_state"`
		FaultTolerance struct {
			Data int `json:"max_zone_failures_without_losing_data"`
		} `json:"fault_tolerance"`
		QOS struct {
			WorstDataLag       lag      `json:"worst_data_lag_storage_server"`
			WorstDurabilityLag lag      `json:"worst_durability_lag_storage_server"`
			Limit              float64  `json:"transactions_per_second_limit"`
			Released           *float64 `json:"released_transactions_per_second"`
			LogQueue           *float64 `json:"worst_queue_bytes_log_server"`
			StorageQueue       *float64 `json:"worst_queue_bytes_storage_server"`
			LimitedBy          struct {
				Name string
			} `json:"performance_limited_by"`
		}
		Workload struct {
			Transactions struct{ Started, Committed, Conflicted rate }
			Operations   struct{ Reads, Writes rate }
			Bytes        struct{ Read, Written rate }
		}
		Latency struct {
			Start  *float64 `json:"transaction_start_seconds"`
			Read   *float64 `json:"read_seconds"`
			Commit *float64 `json:"commit_seconds"`
		} `json:"latency_probe"`
		Processes map[string]process
	}
}

// lag is missing while the cluster recovers.
type lag struct{ Seconds *float64 }

// moving is missing while nothing distributes the data.
type moving struct {
	InFlight *float64 `json:"in_flight_bytes"`
	InQueue  *float64 `json:"in_queue_bytes"`
}

func (m moving) bytes() *float64 {
	if m.InFlight == nil || m.InQueue == nil {
		return nil
	}
	return new(*m.InFlight + *m.InQueue)
}

// rate is a counter of the cluster, which reports it per second.
type rate struct{ Hz *float64 }

type process struct {
	Address  string
	Version  string
	Command  string `json:"command_line"`
	Excluded bool
	Roles    []struct{ Role string }
}

func parseStatus(text []byte) (s status, err error) {
	if err = json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read FoundationDB's status: %w", err)
	}
	return s, nil
}

// sorted returns the processes in the order of their addresses.
func (s *status) sorted() []process {
	return slices.SortedFunc(maps.Values(s.Cluster.Processes), func(a, b process) int { return strings.Compare(a.Address, b.Address) })
}

// describe adds the facts about the cluster that a reader needs.
func (s *status) describe(info *db.Info) {
	var versions, knobs []string
	excluded := 0
	for _, p := range s.sorted() {
		versions = append(versions, p.Version)
		if p.Excluded {
			excluded++
		}
		for argument := range strings.FieldsSeq(p.Command) {
			if knob, is := strings.CutPrefix(argument, "--knob_"); is {
				knobs = append(knobs, knob)
			}
		}
	}
	distinct := func(list []string) string {
		slices.Sort(list)
		return strings.Join(slices.Compact(list), ", ")
	}
	c := &s.Cluster
	info.Version = distinct(versions)
	info.Add("processes", "%d, %d of them excluded", len(c.Processes), excluded)
	info.Add("coordinators", "%d", len(s.Client.Coordinators.Coordinators))
	info.Add("redundancy mode", "%s", c.Configuration.Redundancy)
	info.Add("storage engine", "%s", c.Configuration.Engine)
	info.Add("zones that may fail without loss of data", "%d", c.FaultTolerance.Data)
	if len(knobs) > 0 {
		info.Add("knobs of the servers", "%s", distinct(knobs))
	}
}

// sample is one line about the state of the cluster.
type sample struct {
	Available     bool                `json:"database_available"`
	Recovery      string              `json:"recovery_state"`
	Generation    int64               `json:"generation"` // grows with each recovery
	Data          string              `json:"data_state"`
	Healthy       bool                `json:"data_healthy"`
	Spare         int                 `json:"max_zone_failures_without_losing_data"`
	MovingBytes   *float64            `json:"moving_bytes"`
	DataLag       *float64            `json:"worst_data_lag_seconds"`
	DurabilityLag *float64            `json:"worst_durability_lag_seconds"`
	Limit         float64             `json:"transactions_per_second_limit"`
	LimitedBy     string              `json:"performance_limited_by"`
	Roles         map[string][]string `json:"roles"` // by the address of the process
	Excluded      []string            `json:"excluded,omitempty"`
	Unreachable   []string            `json:"unreachable_coordinators,omitempty"`
}

// sample returns roles, lag and recovery as JSON.
func (s *status) sample() ([]byte, error) {
	c := &s.Cluster
	line := sample{
		Available: c.DatabaseAvailable, Recovery: c.Recovery.Name, Generation: c.Generation,
		Data: c.Data.State.Name, Healthy: c.Data.State.Healthy, Spare: c.FaultTolerance.Data,
		MovingBytes: c.Data.MovingData.bytes(),
		DataLag:     c.QOS.WorstDataLag.Seconds, DurabilityLag: c.QOS.WorstDurabilityLag.Seconds,
		Limit: c.QOS.Limit, LimitedBy: c.QOS.LimitedBy.Name, Roles: map[string][]string{},
	}
	for _, p := range s.sorted() {
		roles := []string{}
		for _, r := range p.Roles {
			roles = append(roles, r.Role)
		}
		slices.Sort(roles)
		line.Roles[p.Address] = roles
		if p.Excluded {
			line.Excluded = append(line.Excluded, p.Address)
		}
	}
	for _, one := range s.Client.Coordinators.Coordinators {
		if !one.Reachable {
			line.Unreachable = append(line.Unreachable, one.Address)
		}
	}
	return json.Marshal(line)
}

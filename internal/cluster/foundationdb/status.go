package foundationdb

import (
	"encoding/json"
	"fmt"
	"slices"
)

// status is the part of the machine-readable status that is used here
// (https://apple.github.io/foundationdb/mr-status.html).
type status struct {
	Client struct {
		Coordinators struct {
			Coordinators []struct {
				Address   string
				Reachable bool
			}
		}
		Database struct {
			Available bool
		} `json:"database_status"`
	}
	Cluster struct {
		Data struct {
			State struct {
				Healthy bool
				Name    string
			}
		}
		Recovery struct {
			Name string
		} `json:"recovery_state"`
		FaultTolerance struct {
			Data int `json:"max_zone_failures_without_losing_data"`
		} `json:"fault_tolerance"`
		Processes map[string]process
	}
}

type process struct {
	Address  string
	Excluded bool
	Roles    []struct{ Role string }
}

func parseStatus(text []byte) (s status, err error) {
	if err = json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read the status of FoundationDB: %w", err)
	}
	return s, nil
}

// whole returns an error unless the data and the logs survive the loss of spare zones. The state of the data alone is
// not enough: it is healthy before the logs have been recruited again, and then a second loss would be fatal.
func (s *status) whole(spare int) error {
	c := &s.Cluster
	switch {
	case !s.Client.Database.Available:
		return fmt.Errorf("the database is not available, its recovery is at %q", c.Recovery.Name)
	case c.Recovery.Name != "fully_recovered":
		return fmt.Errorf("its recovery is at %q", c.Recovery.Name)
	case !c.Data.State.Healthy:
		return fmt.Errorf("its data are in the state %q", c.Data.State.Name)
	case c.FaultTolerance.Data < spare:
		return fmt.Errorf("the loss of %d nodes would now be a loss of data", spare)
	}
	return nil
}

// joined returns nil if all these processes belong to the cluster and none is excluded.
func (s *status) joined(addresses []string) error {
	for _, address := range addresses {
		p, found := s.at(address)
		if !found {
			return fmt.Errorf("the process at %s has not joined", address)
		}
		if p.Excluded {
			return fmt.Errorf("the process at %s is excluded", address)
		}
	}
	return nil
}

func (s *status) at(address string) (process, bool) {
	for _, p := range s.Cluster.Processes {
		if p.Address == address {
			return p, true
		}
	}
	return process{}, false
}

// controller returns the address of the cluster controller's process, or "" if it is not known.
func (s *status) controller() string {
	for _, p := range s.Cluster.Processes {
		for _, r := range p.Roles {
			if r.Role == "cluster_controller" {
				return p.Address
			}
		}
	}
	return ""
}

// coordinated returns nil if these are the coordinators and all answer.
func (s *status) coordinated(want []string) error {
	for _, c := range s.Client.Coordinators.Coordinators {
		if !c.Reachable {
			return fmt.Errorf("the coordinator at %s does not answer", c.Address)
		}
	}
	if !s.sameCoordinators(want) {
		return fmt.Errorf("the coordinators are not at %v", want)
	}
	return nil
}

// sameCoordinators reports whether these are the coordinators, answering or not.
func (s *status) sameCoordinators(want []string) bool {
	var have []string
	for _, c := range s.Client.Coordinators.Coordinators {
		have = append(have, c.Address)
	}
	slices.Sort(have)
	return slices.Equal(have, slices.Sorted(slices.Values(want)))
}

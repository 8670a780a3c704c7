// Package foundationdb starts real FoundationDB clusters on this machine.
//
// It needs the programs fdbserver and fdbcli on PATH; 7.3 is the version that it was seen
// with. A client of such a cluster needs FoundationDB's C library, so that clusters are
// there only where Stroppy was built with the tag fdb; without it Start says what to
// install and how to build.
package foundationdb

import (
	"fmt"
	"net/url"
	"strconv"

	"stroppy/internal/cluster"
)

// params are what stands behind the question mark.
type params struct {
	redundancy string // single, double or triple
	storage    string // ssd or memory
	processes  int    // of fdbserver on a node
	exclude    bool   // a node is excluded before it is replaced
	knobs      map[string]string
}

// maxProcesses bounds the processes of a node, which take 100 MB each.
const maxProcesses = 8

// nodesFor is how many nodes a redundancy needs to survive the loss of one and be whole
// again (https://apple.github.io/foundationdb/configuration.html#choosing-a-redundancy-mode).
var nodesFor = map[string]int{"single": 1, "double": 3, "triple": 5}

// testKnobs make files small and failures seen early, for short tests. Their defaults
// are those of a database that must not take a slow answer for a dead server.
var testKnobs = map[string]string{
	"sqlite_chunk_size_pages":                 "256",
	"disk_queue_file_extension_bytes":         "1048576",
	"disk_queue_file_shrink_bytes":            "1048576",
	"initial_failure_reaction_delay":          "1",
	"data_distribution_failure_reaction_time": "4",
	"failure_detection_delay":                 "1",
	"failure_min_delay":                       "1",
	"failure_max_delay":                       "1.5",
}

// parseParams reads the parameters of a cluster of so many nodes. The error is a
// *cluster.ParamError.
func parseParams(values url.Values, nodes int) (params, error) {
	p := params{redundancy: Redundancy(nodes), storage: "ssd", processes: 1, knobs: map[string]string{}}
	given := map[string]string{}
	err := cluster.Params{
		Known: map[string]func(string) error{
			"redundancy": func(value string) error {
				p.redundancy = value
				return CheckRedundancy(value, nodes)
			},
			"storage": cluster.OneOf(func(value string) { p.storage = value }, "ssd", "memory"),
			"processes": func(value string) (err error) {
				if p.processes, err = strconv.Atoi(value); err != nil || p.processes < 1 || p.processes > maxProcesses {
					return fmt.Errorf("it must be a number from 1 to %d", maxProcesses)
				}
				return nil
			},
			"exclude": cluster.OnOff(&p.exclude),
			"knobs":   cluster.OneOf(func(string) { p.knobs = testKnobs }, "test"),
		},
		Set:  cluster.Settings("FoundationDB", "_", nil, given),
		Kind: "a cluster of FoundationDB",
	}.Read(values)
	if len(given) > 0 {
		for name, value := range p.knobs {
			if _, own := given[name]; !own {
				given[name] = value
			}
		}
		p.knobs = given
	}
	return p, err
}

// Redundancy is that of so many nodes where none is asked for.
func Redundancy(nodes int) string {
	if nodes >= nodesFor["double"] {
		return "double"
	}
	return "single"
}

// CheckRedundancy says why so many nodes do not have a redundancy.
func CheckRedundancy(value string, nodes int) error {
	least, known := nodesFor[value]
	if !known {
		return fmt.Errorf("%q is none of single, double and triple", value)
	}
	if nodes < least {
		return fmt.Errorf("%s needs %d nodes or more, and there are %d", value, least, nodes)
	}
	return nil
}

// coordinators is how many of so many nodes have one: an odd number, of which a majority
// has to run.
func coordinators(nodes int) int {
	switch {
	case nodes >= 5:
		return 5
	case nodes >= 3:
		return 3
	}
	return 1
}

// Package foundationdb starts real FoundationDB clusters on this machine.
//
// It needs the programs fdbserver and fdbcli on PATH. It was tested with version 7.3. A client needs FoundationDB's C
// library, so Stroppy must be built with the tag fdb. Without the tag, Start returns an error that describes the
// installation and the build.
package foundationdb

import (
	"fmt"
	"maps"
	"net/url"

	"stroppy/internal/cluster"
)

// params are the parameters of a cluster.
type params struct {
	redundancy string // single, double or triple
	storage    string // ssd or memory
	processes  int    // fdbserver processes per node
	exclude    bool   // a node is excluded before it is replaced
	knobs      map[string]string
}

// maxProcesses bounds the processes of a node, which need 100 MB each.
const maxProcesses = 8

// nodesFor is the number of nodes that a redundancy needs to survive the loss of one node and become healthy again
// (https://apple.github.io/foundationdb/configuration.html#choosing-a-redundancy-mode).
var nodesFor = map[string]int{"single": 1, "double": 3, "triple": 5}

// testKnobs keep files small and detect failures early, for short tests. The defaults suit a database that must not
// mistake a slow answer for a dead server.
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

// parseParams reads the parameters of a cluster with this number of nodes. The error is a *cluster.ParamError.
func parseParams(values url.Values, nodes int) (params, error) {
	p := params{redundancy: Redundancy(nodes), storage: "ssd", processes: 1, knobs: map[string]string{}}
	given := map[string]string{}
	err := cluster.Params{
		Known: map[string]func(string) error{
			"redundancy": func(value string) error {
				p.redundancy = value
				return CheckRedundancy(value, nodes)
			},
			"storage":   cluster.OneOf(func(value string) { p.storage = value }, "ssd", "memory"),
			"processes": cluster.Number(&p.processes, 1, maxProcesses),
			"exclude":   cluster.OnOff(&p.exclude),
			"knobs":     cluster.OneOf(func(string) { p.knobs = testKnobs }, "test"),
		},
		Set:  cluster.Settings("FoundationDB", "_", nil, given),
		Kind: "a cluster of FoundationDB",
	}.Read(values)
	if len(given) > 0 {
		p.knobs = maps.Clone(p.knobs)
		maps.Copy(p.knobs, given)
	}
	return p, err
}

// Redundancy returns the default redundancy for a number of nodes.
func Redundancy(nodes int) string {
	if nodes >= nodesFor["double"] {
		return "double"
	}
	return "single"
}

// CheckRedundancy returns an error if a number of nodes is too small for a redundancy.
func CheckRedundancy(value string, nodes int) error {
	least, known := nodesFor[value]
	if !known {
		return fmt.Errorf("%q is not single, double or triple", value)
	}
	if nodes < least {
		return fmt.Errorf("%s needs at least %d nodes, but there are %d", value, least, nodes)
	}
	return nil
}

// coordinators returns how many nodes are coordinators: an odd number, of which a majority must run.
func coordinators(nodes int) int {
	switch {
	case nodes >= 5:
		return 5
	case nodes >= 3:
		return 3
	}
	return 1
}

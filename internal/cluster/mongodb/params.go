package mongodb

import (
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster"
)

// params are the parameters of a cluster.
type params struct {
	shards          int // 0: no sharded cluster
	electionTimeout time.Duration
	cache           string     // --wiredTigerCacheSizeGB
	client          url.Values // of the URL
	settings        []string   // NAME=VALUE
}

// minCache and maxCache bound the cache of a node, in gigabytes. minCache is mongod's minimum; several nodes share
// the machine.
const minCache, maxCache = 0.25, 64

// maxShards is the largest sensible number of shards on one machine.
const maxShards = 4

// parseParams reads the parameters of replica sets of nodes.
func parseParams(values url.Values, nodes int) (params, error) {
	p := params{electionTimeout: time.Second, cache: strconv.FormatFloat(minCache, 'f', -1, 64), client: url.Values{}}
	var timeout time.Duration
	forClient := func(name string) func(string) { return func(value string) { p.client.Set(name, value) } }
	err := cluster.Params{
		Known: map[string]func(string) error{
			"election_timeout": cluster.Between(&p.electionTimeout, 200*time.Millisecond, time.Minute, "1s"),
			"shards":           cluster.Number(&p.shards, 1, maxShards),
			"cache": func(value string) error {
				if size, err := strconv.ParseFloat(value, 64); err != nil || !(size >= minCache && size <= maxCache) {
					return fmt.Errorf("it must be a number of gigabytes from %v to %v", minCache, maxCache)
				}
				p.cache = value
				return nil
			},
			"w": func(value string) error {
				if n, err := strconv.Atoi(value); value != "majority" && (err != nil || n < 1 || n > nodes) {
					return fmt.Errorf("it must be majority or a number of members from 1 to %d", nodes)
				}
				p.client.Set("w", value)
				return nil
			},
			"readConcernLevel": cluster.OneOf(forClient("readConcernLevel"), "snapshot", "majority", "local"),
			"readPreference":   cluster.OneOf(forClient("readPreference"), "primary", "secondary"),
			"timeout": func(value string) error {
				p.client.Set("timeout", value)
				return cluster.Between(&timeout, time.Millisecond, time.Hour, "5s")(value)
			},
		},
		Set: func(name, value string) error {
			if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789._") != "" {
				return fmt.Errorf("%q is not the name of a parameter of MongoDB", name)
			}
			p.settings = append(p.settings, name+"="+value)
			return nil
		},
		Kind: "a cluster of MongoDB",
	}.Read(values)
	return p, err
}

// query returns the query of the URL: one parameter and the client's options.
func (p params) query(name, value string) string {
	query := maps.Clone(p.client)
	query.Set(name, value)
	return query.Encode()
}

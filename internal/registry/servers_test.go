package registry

import (
	"slices"
	"testing"
)

func TestURLYieldsServerAddresses(t *testing.T) {
	for url, want := range map[string][]string{
		"postgres://u:p@127.0.0.1:5433/db?sslmode=disable": {"127.0.0.1:5433"},
		"postgres://localhost/db":                          {"localhost:5432"},
		"postgres://u:p%40x@h":                             {"h:5432"},
		"mysql://u:p@ss@[::1]:3307/db":                     {"[::1]:3307"},
		"etcd://a,b:2380,c":                                {"a:2379", "b:2380", "c:2379"},
		"redis://h?x=a@b":                                  {"h:6379"},
		"sqlite:bank.db":                                   nil,
		"memory:":                                          nil,
		"other://h":                                        nil,
		"etcd://,":                                         nil,
	} {
		if got := Addresses(url); !slices.Equal(got, want) {
			t.Errorf("the servers of %s are %v, want %v", url, got, want)
		}
	}
}

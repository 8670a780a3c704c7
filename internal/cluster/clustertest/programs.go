package clustertest

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/cluster"
)

// Programs checks that a node takes a program from the folder of the parameter bin. Without this parameter the
// program must come from the first folder on PATH that has it. from is the program on this machine, which must be one
// of the node's processes.
func (k Kind) Programs(t *testing.T, from string) {
	bin := filepath.Join(OpenDir(t), "named")
	Must(t, os.Symlink(filepath.Dir(from), bin))
	for _, how := range []string{"bin", "PATH"} {
		t.Run(how, func(t *testing.T) {
			params := url.Values{}
			maps.Copy(params, k.Params)
			if how == "bin" {
				params.Set("bin", bin)
			} else {
				t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			}
			c := k.Start(t, cluster.Options{Nodes: 1, Loopback: true, Params: params})
			var words []string
			for _, pid := range cluster.LocalNodes(c)[0].PIDs() {
				command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // a process that has ended has none
				words = append(words, strings.Fields(strings.ReplaceAll(string(command), "\x00", " "))...)
			}
			if want := filepath.Join(bin, filepath.Base(from)); !slices.Contains(words, want) {
				t.Errorf("the node's processes are %q, and none of them is %s", words, want)
			}
		})
	}
}

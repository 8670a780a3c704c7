//go:build linux

package disk

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/postgres"
)

// TestSpeed measures what the file system costs: the throughput of pgbench with it
// and without it.
func TestSpeed(t *testing.T) {
	pgbench, err := postgres.PGBin("pgbench")
	if err != nil {
		t.Skip("skipped engine: postgres: install the Debian package postgresql")
	}
	rate := regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)
	for _, memory := range []bool{true} { // on a disk its fsync is all that shows
		tps := map[bool]float64{}
		for _, layer := range []bool{false, true} {
			func() {
				c, _ := startKind(t, "postgres", postgres.StartCluster, cluster.Options{Layer: layer, InMemory: memory})
				defer c.Stop() // which says at the end of the test what went wrong
				url := c.URL()
				if out, err := exec.Command(pgbench, "-i", "-q", "-s", "2", url).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				out, err := exec.Command(pgbench, "-n", "-c", "8", "-j", "2", "-T", "1", "-M", "prepared", url).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if found := rate.FindSubmatch(out); found != nil {
					tps[layer], err = strconv.ParseFloat(string(found[1]), 64)
				}
				if err != nil || tps[layer] == 0 {
					t.Errorf("pgbench says %s", out)
				}
			}()
		}
		t.Logf("in memory %v: %.0f transactions a second with the file system, %.0f without it: %.0f %%", memory, tps[true], tps[false], 100*tps[true]/tps[false])
	}
}

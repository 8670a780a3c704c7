//go:build linux

package disk

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"stroppy/internal/cluster"
	postgres "stroppy/internal/cluster/postgres/server"
)

// BenchmarkPgbench measures pgbench's transactions per second with the file system and without it. The data are in
// memory, because fsync dominates on a disk.
func BenchmarkPgbench(b *testing.B) {
	pgbench, err := postgres.PGBin("pgbench")
	if err != nil {
		b.Skip("skipped engine: postgres: install the Debian package postgresql")
	}
	rate := regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)
	for _, layer := range []bool{false, true} {
		b.Run("layer="+strconv.FormatBool(layer), func(b *testing.B) {
			c, _ := startKind(b, "postgres", postgres.StartCluster, cluster.Options{FaultFS: layer, InMemory: true})
			if out, err := exec.Command(pgbench, "-i", "-q", "-s", "2", c.URL()).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			b.ResetTimer()
			out, err := exec.Command(pgbench, "-n", "-c", "8", "-j", "2", "-t", strconv.Itoa(max(1, b.N/8)), "-M", "prepared", c.URL()).CombinedOutput()
			found := rate.FindSubmatch(out)
			if err != nil || found == nil {
				b.Fatalf("%v: %s", err, out)
			}
			tps, err := strconv.ParseFloat(string(found[1]), 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(tps, "transactions/s")
		})
	}
}

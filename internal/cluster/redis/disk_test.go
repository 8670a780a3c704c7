package redis

import (
	"os"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/disk"
	"stroppy/internal/cluster/host"
)

// TestMain lets this test program serve the file system under a node's data.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == host.FaultFSCommand {
		if err := disk.Serve(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestPowerCutLosesWritesOnlyWithoutFsync checks that a loss of unsynced writes loses acknowledged writes with
// appendfsync=no, and none with appendfsync=always.
func TestPowerCutLosesWritesOnlyWithoutFsync(t *testing.T) {
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skip("skipped engine: FUSE: install the Debian package fuse3: " + err.Error())
	} else {
		clustertest.Must(t, f.Close())
	}
	for _, fsync := range []string{"always", "no"} {
		t.Run("appendfsync="+fsync, func(t *testing.T) {
			c := startOn(t, cluster.Options{Nodes: 1, FaultFS: true}, "appendfsync="+fsync)
			n := c.List()[0]
			p := kind().Pay(t, c)
			p.GoOn(100)
			clustertest.Must(t, n.Kill(t.Context()))
			clustertest.Must(t, n.LoseUnsynced())
			clustertest.Must(t, n.Restart(t.Context()))
			if lost := p.End("a power cut"); (lost > 0) != (fsync == "no") {
				t.Errorf("%d acknowledged payments are lost", lost)
			}
		})
	}
}

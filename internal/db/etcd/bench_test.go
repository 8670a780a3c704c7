//go:build unix

package etcd_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/kvtest"
)

// BenchmarkTransfer runs transfers on a real cluster of three nodes on this machine,
// in memory.
func BenchmarkTransfer(b *testing.B) {
	c := startCluster(b, 3, nil)
	d := drivertest.Open(b, etcd.Open, c.URL())
	transfers := kvtest.Transfers{
		Accounts: 100_000, Size: 8,
		Account: func(dst []byte, i int64) []byte {
			return binary.BigEndian.AppendUint64(append(dst, "bench/a/"...), uint64(i)%100_000)
		},
		Entry: func(dst []byte, id int64) []byte {
			return binary.BigEndian.AppendUint64(append(dst, "bench/l/"...), uint64(id))
		},
		Session: func(b *testing.B) db.KVSession { return newSession(b, d, "") },
	}
	transfers.Load(b, d.Limits().Writes)
	for _, sessions := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) { transfers.Run(b, sessions) })
	}
}

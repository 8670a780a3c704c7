package dbtest

import (
	"fmt"
	"testing"

	"stroppy/internal/workload/bank"
)

func TestBankOnPostgres(t *testing.T) {
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		for _, update := range []string{bank.Atomic, bank.Locked, bank.RMW} {
			for _, mode := range []string{bank.Pipelined, bank.Interactive, bank.Procedure} {
				t.Run(fmt.Sprintf("%s %s %s", isolation, update, mode), func(t *testing.T) {
					c := small()
					c.Isolation, c.Update, c.Mode = isolation, update, mode
					d, _ := openPostgres(t)
					o := runBank(t, d, c, 1000)
					if isolation == "read committed" && update == bank.RMW {
						o.wantLostUpdates(t)
					} else {
						o.wantValid(t)
					}
				})
			}
		}
	}
}

func TestBankOnEtcd(t *testing.T) {
	for _, sample := range []uint64{0, 120} {
		t.Run(fmt.Sprintf("sample %d", sample), func(t *testing.T) {
			c := small()
			c.AuditSample = sample
			c.Audits = 10
			o := runBank(t, openEtcd(t), c, 1000)
			o.wantValid(t)
		})
	}
}

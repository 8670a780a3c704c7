package bank

// The memory that a check of the bank takes, in bytes, as `make bench` measures it.
const (
	checkFixed   = 150 << 20 // whatever the run
	checkAccount = 48
	// checkWhole applies to each transaction of a run that is not proved in one pass. Such a run opens accounts and
	// reads by predicate, or its audits read the past.
	checkWhole = 350
)

// CheckMemory implements workload.Costly.
func (b *Bank) CheckMemory() (fixed, each int64) {
	fixed = checkFixed + checkAccount*int64(b.config.Accounts)
	if b.config.openings() || b.config.AuditAge > 0 {
		each = checkWhole
	}
	return fixed, each
}

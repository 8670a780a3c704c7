package check

// The names of the checks, in the order in which they are told.
const (
	Total        = "total"
	NonNegative  = "non-negative"
	Ledger       = "ledger"
	Durable      = "durable"
	NoGhost      = "no-ghost"
	ExactlyOnce  = "exactly-once"
	Serializable = "serializable"
	Strict       = "strict"
	Audits       = "audits"
)

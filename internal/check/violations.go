package check

import "stroppy/internal/history"

// Violation is one transaction that shows a violation. Of some there is no
// transaction, but an account alone.
type Violation struct {
	Check       string
	Anomaly     string     // of serializable and strict
	Transaction history.ID // 0: none
	Account     string     // as people know it; empty: none
	What        string     // in words
}

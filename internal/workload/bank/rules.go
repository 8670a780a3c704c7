package bank

import "stroppy/internal/history"

// jointOps returns the payer's and the sibling's operation of a joint transfer;
// nil for one that it does not have.
func jointOps(tx *history.Transaction) (payer, other *history.Op) {
	for i := range tx.Ops {
		switch op := &tx.Ops[i]; {
		case !op.Write:
			other = op
		case op.Amount < 0:
			payer = op
		}
	}
	return payer, other
}

// refusal applies the bank's rules to what the transaction has read. With
// guarded the database itself refuses a balance below zero, and only the rule
// over two accounts is left.
func (f *formula) refusal(tx *history.Transaction, guarded bool) history.Reason {
	if !guarded {
		for i := range tx.Ops {
			if op := &tx.Ops[i]; op.Amount < 0 && op.Value+op.Amount < 0 {
				return history.InsufficientFunds
			}
		}
	}
	if tx.Kind != history.Joint {
		return 0
	}
	if payer, other := jointOps(tx); payer == nil || other == nil ||
		payer.Value+other.Value+payer.Amount < f.floor(payer.Object) {
		return history.InsufficientFunds
	}
	return 0
}

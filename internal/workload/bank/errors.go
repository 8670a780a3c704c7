package bank

import "fmt"

// StateError says that what the database holds does not let the workload go
// on: no bank, half a bank, somebody else's tables.
type StateError struct{ Problem string }

func (e *StateError) Error() string { return e.Problem }

func stateErrorf(format string, args ...any) error {
	return &StateError{Problem: fmt.Sprintf(format, args...)}
}

// MismatchError says that the configuration contradicts what the database
// holds, such as another seed or another number of accounts.
type MismatchError struct{ Problem string }

func (e *MismatchError) Error() string { return e.Problem }

func mismatchErrorf(format string, args ...any) error {
	return &MismatchError{Problem: fmt.Sprintf(format, args...)}
}

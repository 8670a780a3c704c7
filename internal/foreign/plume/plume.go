// Package plume reads and writes the text form of register histories. The published black-box testers of isolation
// share it (PolySI, VLDB 2023; Plume, OOPSLA 2024; AWDIT, PLDI 2025). A line is an operation, in the order of its
// session:
//
//	w(KEY,VALUE,SESSION,TRANSACTION)
//	r(KEY,VALUE,SESSION,TRANSACTION)
//
// All are whole numbers. Each value is written once per key. 0 is the value of a key that nobody wrote. The operations
// of a transaction follow each other in their session. Its number is unique in the whole history; -1 stands for all
// aborted transactions.
package plume

import (
	"context"
	"runtime"

	"stroppy/internal/check/sessions"
	"stroppy/internal/foreign"
	"stroppy/internal/isolation"
)

// Format returns the format.
func Format() foreign.Format {
	return foreign.Format{
		Name: "plume", About: "reads and writes of registers as text, a line each: w(KEY,VALUE,SESSION,TRANSACTION), r(…); of Plume, PolySI and AWDIT",
		Levels: sessions.Levels(), Default: isolation.Causal,
		Check: checkFile, Export: export, Registers: true,
	}
}

// checkFile reads and checks the history in a file.
func checkFile(ctx context.Context, path string, expect isolation.Level) (*foreign.Checked, error) {
	h, err := Read(ctx, path)
	if err != nil {
		return nil, err
	}
	// One goroutine does the rest. On other processors the idle workers of the garbage collector would spin while a
	// large slice is cleared. That took a fifth of the processor time.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	found, err := sessions.Check(ctx, h, expect)
	if err != nil {
		return nil, err
	}
	return &foreign.Checked{
		Sessions: len(h.Sessions), Transactions: len(h.Transactions), Operations: len(h.Ops), Objects: found.Keys, Aborted: len(h.Aborted),
		Results: found.Results, Name: h.Name,
	}, nil
}

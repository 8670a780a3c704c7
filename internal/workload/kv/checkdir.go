package kv

import (
	"context"

	"stroppy/internal/check"
	"stroppy/internal/check/registers"
	"stroppy/internal/isolation"
	"stroppy/internal/workload/recording"
)

// CheckDirs makes all checks of the recorded runs in dirs together, which are runs'
// directories against the same records. It needs no database. A directory without a
// readable history is an error; an end state that is not there, or not whole, leaves
// unknown what needs it. Violations are handed to tell as check.Input says; it may
// be nil.
func CheckDirs(ctx context.Context, dirs []string, expect isolation.Level, tell func(check.Violation)) ([]check.Result, error) {
	r, err := recording.Open(dirs, Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := r.Header()
	f := formulaOf(h)
	in := registers.Input{
		Input:   check.Input{Expect: expect, Name: f.name, OnViolation: tell, History: r.Sources()},
		Records: h.Accounts, Place: f.place,
	}

	if in.End, in.Early, err = r.End(ctx); err != nil {
		return nil, err
	}
	return registers.Check(ctx, in)
}

// Checks says in one line what each check holds, in the order in which they are reported.
func Checks() [][2]string {
	return [][2]string{
		{registers.Values, "every read returned, whole, what the load or a transaction that was not refused had written to that record"},
		{registers.Fresh, "no read returned a value that an acknowledged write had replaced before the read began"},
		{registers.NoLostUpdate, "no two transactions that read and write one record had read the same value of it"},
		{registers.Scans, "every scan returned its records in order, and none was missing that was there"},
		{registers.Linearizable, "the reads and writes of each record have an order that agrees with real time"},
		{check.Durable, "every record of the load and of an acknowledged insert is there, with the value of the last acknowledged write, of one beside it or of an unknown one"},
		{check.NoGhost, "nothing is there that no transaction wrote, or one that was refused"},
	}
}

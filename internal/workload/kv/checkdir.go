package kv

import (
	"context"

	"stroppy/internal/check"
	"stroppy/internal/check/registers"
	"stroppy/internal/workload/recording"
)

// checks makes all checks of recorded runs.
func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	f := formulaOf(recorded.Header)
	in := registers.Input{Input: recorded.Input, Records: recorded.Header.Accounts, Place: f.place}
	in.Name = f.name
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

// Package tpcb is the transaction of TPC-B as pgbench has it: an account, a teller
// and a branch each get an amount, and a row of the history says so. Tables,
// columns, types and statements are pgbench's own, so that pgbench runs on what
// this package has loaded, and this package on what `pgbench -i` has loaded.
//
// # Exactly once
//
// pgbench leaves the column filler of its history empty. Here it holds the id of
// the transaction, so that the history says which transactions were applied and
// how often, at the cost of no statement.
//
// The price is that an id cannot be closed: pgbench's history has no key, so a
// look-up that does not find an id keeps nobody from applying it later. Nor can a
// lock on one of the three rows, for the lost transaction may not have reached its
// first row yet. Only a statement more in each transaction could, and then it would
// no longer be pgbench's. So a transaction whose answer was lost stays unknown for
// its client, and the end state, whose history has its id or has not, decides: the
// checks count it as applied or not without doubt. In the rows with versions, which
// are not pgbench's, the id is the key of the history, and in a key-value store it
// is a key of its own; there a look-up writes a tombstone under it, and is right for
// ever.
//
// Without the history nothing shows whether a lost transaction was applied. The
// balances are then checked against what was acknowledged, and as soon as one outcome
// is unknown that comparison is unknown too.
//
// # Data that others have made
//
// What a pgbench before us has left is part of the opening: when its tables are
// driven for the first time, what each row holds beyond the rows of the history is
// written into a table of our own, in one statement. Rows of the history without an
// id are somebody else's and explain balances as ours do.
package tpcb

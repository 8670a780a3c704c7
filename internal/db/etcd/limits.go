package etcd

import "stroppy/internal/db"

// maxRequest leaves room for the framing of a request, which has at most 1.5 MiB by
// default: the server's --max-request-bytes
// (https://etcd.io/docs/v3.5/dev-guide/limit/). A commit is one request.
const maxRequest = 1_500_000

// Limits implements db.Database. The number of writes is what every server takes that
// has the default limits.
func (*Database) Limits() db.Limits {
	return db.Limits{Value: maxRequest, Commit: maxRequest, Writes: maxWrites}
}

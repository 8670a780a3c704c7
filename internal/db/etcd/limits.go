package etcd

// maxRequest leaves room for the framing of a request, which has at most 1.5 MiB by
// default: the server's --max-request-bytes
// (https://etcd.io/docs/v3.5/dev-guide/limit/). A commit is one request.
const maxRequest = 1_500_000

// MaxValue implements db.Limiter.
func (*Database) MaxValue() int { return maxRequest }

// MaxCommit implements db.Limiter.
func (*Database) MaxCommit() int { return maxRequest }

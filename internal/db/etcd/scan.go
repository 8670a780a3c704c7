package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"stroppy/internal/db/optimistic"
)

const (
	firstPage = 100 // entries, while their size is unknown
	// longestPage is the maximum of a page's entries. Pages should be long: a server of 3.4 walks the rest of the range
	// for each page, to count it.
	longestPage = 10_000
	// pageBytes is the target size of the pages after the first.
	pageBytes = 4 << 20
	// pageFactor is the factor by which a page may take longer than a call.
	pageFactor = 10
)

// Scan reads page by page at the revision of the first page. This revision is the newest even if reads=serializable
// lets transactions read older ones. Otherwise a check would take a late member's state for the final data. An empty
// from is the first key, an empty to is the end of all keys. An error of entry ends the scan and is returned unchanged.
func (s *session) Scan(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error {
	if err := s.Usable(); err != nil {
		return err
	}
	request := &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Limit: firstPage}
	if len(from) > 0 {
		request.Key = append([]byte(nil), from...)
	}
	if len(to) > 0 {
		request.RangeEnd = to
	}
	for {
		limited, cancel := context.WithTimeout(ctx, pageFactor*s.db.config.timeout)
		if !request.Serializable {
			limited = requireLeader(limited)
		}
		answer, err := s.link.kv.Range(limited, request)
		cancel()
		if err != nil {
			return s.fail("scan", err, optimistic.Reading)
		}
		size := 0
		for _, kv := range answer.GetKvs() {
			size += len(kv.GetKey()) + len(kv.GetValue())
			if err := entry(kv.GetKey(), kv.GetValue()); err != nil {
				return err
			}
		}
		read := len(answer.GetKvs())
		if !answer.GetMore() || read == 0 {
			return nil
		}
		if request.Revision == 0 {
			request.Revision = answer.GetHeader().GetRevision()
		}
		request.Serializable = true // this member has served the revision
		request.Limit = int64(min(longestPage, max(1, pageBytes/max(1, size/read))))
		request.Key = append(append(request.Key[:0], answer.GetKvs()[read-1].GetKey()...), 0)
	}
}

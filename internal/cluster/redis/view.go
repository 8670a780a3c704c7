package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// view is what a server says of its replication.
type view struct {
	primary bool
	history string // the replication ID: of two servers with the same, offsets can be compared
	offset  int64  // up to which it has the history, in bytes

	moving bool // a primary that is handing its role over

	source  string // host:port that a replica follows
	up      bool   // and it is connected to it, with all that was there when it was
	syncing bool   // it is getting a copy of everything
}

// look asks a server for its view.
func look(ctx context.Context, s *session) (view, error) {
	text, err := s.ask(ctx, "INFO", "replication")
	if err != nil {
		return view{}, err
	}
	return parseView(text)
}

// parseView reads the section Replication of INFO:
// https://redis.io/docs/latest/commands/info/.
func parseView(text string) (v view, err error) {
	told := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			told[name] = value
		}
	}
	v.history = told["master_replid"]
	offset := told["slave_repl_offset"]
	switch told["role"] {
	case "master":
		v.primary, offset = true, told["master_repl_offset"]
		v.moving = told["master_failover_state"] != "no-failover"
	case "slave":
		v.source = told["master_host"] + ":" + told["master_port"]
		v.up = told["master_link_status"] == "up"
		v.syncing = told["master_sync_in_progress"] != "0"
	default:
		return v, fmt.Errorf("the server names its role %q, which is neither master nor slave", told["role"])
	}
	if v.offset, err = strconv.ParseInt(offset, 10, 64); err != nil || v.history == "" {
		return v, fmt.Errorf("the server tells no replication ID and offset: %q and %q", v.history, offset)
	}
	return v, nil
}

// follows tells that the server is a replica of the one with this address.
func (v view) follows(address string) bool { return !v.primary && v.source == address }

// before tells that v has less of a history than other. Whoever has that history
// comes after those that have another, older one.
func (v view) before(other view, history string) bool {
	if mine, others := v.history == history, other.history == history; mine != others {
		return others
	}
	return v.offset < other.offset
}

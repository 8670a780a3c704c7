package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	askTimeout    = time.Second      // of a question to one node, which may hang
	changeTimeout = 10 * time.Second // of a change of the membership, to which etcd gives 6 s
)

// number is 64 bits of etcd's, which its gateway writes as a string.
type number = uint64

// status is the part of etcd's StatusResponse that is looked at here.
type status struct {
	Header struct {
		MemberID number `json:"member_id,string"`
	} `json:"header"`
	Leader   number   `json:"leader,string"`
	Term     number   `json:"raftTerm,string"`
	Index    number   `json:"raftIndex,string"`        // of the last entry that is committed
	Applied  number   `json:"raftAppliedIndex,string"` // of the last entry that is applied
	Problems []string `json:"errors"`                  // alarms, and that there is no leader
}

// member is an entry of etcd's member list.
type member struct {
	ID        number   `json:"ID,string"`
	Name      string   `json:"name"` // empty until it was started
	PeerURLs  []string `json:"peerURLs"`
	IsLearner bool     `json:"isLearner"`
}

func (n *node) status(ctx context.Context) (s status, err error) {
	err = n.ask(ctx, askTimeout, "/v3/maintenance/status", struct{}{}, &s)
	return s, err
}

// members returns the list as the node knows it, which may be old.
func (n *node) members(ctx context.Context) ([]member, error) {
	var answer struct{ Members []member }
	err := n.ask(ctx, askTimeout, "/v3/cluster/member/list", struct{}{}, &answer)
	return answer.Members, err
}

// read makes a linearizable read: the node answers when it has applied what the
// cluster had committed before. A read without the right to it is answered after
// that too (server/etcdserver/v3_server.go, Range).
func (n *node) read(ctx context.Context) error {
	err := n.ask(ctx, askTimeout, "/v3/kv/range", map[string]any{"key": []byte{0}, "count_only": true}, nil)
	if err != nil && strings.Contains(err.Error(), "user name is empty") {
		return nil
	}
	return err
}

// gateway makes each request on a connection of its own, so that none outlives
// the process at its other end.
var gateway = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask makes one request and decodes its answer, unless it is not wanted.
func (n *node) ask(ctx context.Context, limit time.Duration, path string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.client+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := gateway.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var refusal struct{ Message string }
		err = json.NewDecoder(response.Body).Decode(&refusal)
		return fmt.Errorf("%s answered %s to %s: %w", n.Name(), response.Status, path, errors.Join(errors.New(refusal.Message), err))
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

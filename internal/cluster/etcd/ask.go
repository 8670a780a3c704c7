package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	AskTimeout    = time.Second      // of a query to one node, which may hang
	ChangeTimeout = 10 * time.Second // of a change of the members, for which etcd has 6 s
)

func (n *node) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	return ask(ctx, n, AskTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.StatusResponse, error) {
		return c.Status(ctx, n.client.String())
	})
}

// members returns the node's list of members, which may be outdated.
func (n *node) members(ctx context.Context) (*clientv3.MemberListResponse, error) {
	return ask(ctx, n, AskTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.MemberListResponse, error) {
		return c.MemberList(ctx, clientv3.WithSerializable())
	})
}

// read makes a linearizable read. The node answers when it has applied all that was committed before. This also holds
// for a read without permission (server/etcdserver/v3_server.go, Range).
func (n *node) read(ctx context.Context) error {
	_, err := ask(ctx, n, AskTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, "\x00", clientv3.WithCountOnly())
	})
	if errors.Is(err, rpctypes.ErrUserEmpty) {
		return nil
	}
	return err
}

// ask asks the node once.
func ask[T any](ctx context.Context, n *node, limit time.Duration, question func(context.Context, *clientv3.Client) (T, error)) (answer T, err error) {
	if answer, err = Ask(ctx, []string{n.client.String()}, limit, question); err != nil {
		return answer, fmt.Errorf("ask %s: %w", n.Name(), err)
	}
	return answer, nil
}

// Ask asks servers once on a new connection, so that no connection outlives the server process.
func Ask[T any](ctx context.Context, endpoints []string, limit time.Duration, question func(context.Context, *clientv3.Client) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := clientv3.New(clientv3.Config{Context: ctx, Endpoints: endpoints, MaxUnaryRetries: 1, Logger: zap.NewNop()})
	if err != nil {
		return answer, err
	}
	defer c.Close()
	return question(ctx, c)
}

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
	askTimeout    = time.Second      // of a question to one node, which may hang
	changeTimeout = 10 * time.Second // of a change of the membership, to which etcd gives 6 s
)

// status is what the node says of itself.
func (n *node) status(ctx context.Context) (s *clientv3.StatusResponse, err error) {
	err = n.ask(ctx, askTimeout, func(ctx context.Context, c *clientv3.Client) error {
		s, err = c.Status(ctx, n.client)
		return err
	})
	return s, err
}

// members returns the list as the node knows it, which may be old.
func (n *node) members(ctx context.Context) (list *clientv3.MemberListResponse, err error) {
	err = n.ask(ctx, askTimeout, func(ctx context.Context, c *clientv3.Client) error {
		list, err = c.MemberList(ctx, clientv3.WithSerializable())
		return err
	})
	return list, err
}

// read makes a linearizable read: the node answers when it has applied what the
// cluster had committed before. A read without the right to it is answered after
// that too (server/etcdserver/v3_server.go, Range).
func (n *node) read(ctx context.Context) error {
	err := n.ask(ctx, askTimeout, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Get(ctx, "\x00", clientv3.WithCountOnly())
		return err
	})
	if errors.Is(err, rpctypes.ErrUserEmpty) {
		return nil
	}
	return err
}

// ask asks the node once, on a connection of the question's own, so that none
// outlives the process at its other end.
func (n *node) ask(ctx context.Context, limit time.Duration, question func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := clientv3.New(clientv3.Config{Context: ctx, Endpoints: []string{n.client}, MaxUnaryRetries: 1, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := question(ctx, c); err != nil {
		return fmt.Errorf("ask %s: %w", n.Name(), err)
	}
	return nil
}

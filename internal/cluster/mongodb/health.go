package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Healthy returns nil if all servers of a replica set name the same primary, which accepts writes and has committed
// in its term. Each server must have a vote, be primary or secondary, and have applied all that the primary had at
// the beginning. The set must have no other members.
func Healthy(ctx context.Context, servers []Server) error {
	statuses := make([]status, len(servers))
	for i, m := range servers {
		var err error
		if statuses[i], err = m.status(ctx); err != nil {
			return err
		}
	}
	at := slices.IndexFunc(statuses, func(at status) bool { return at.State == statePrimary })
	if at < 0 {
		return errors.New("no node is primary")
	}
	primary, first := servers[at], statuses[at]
	if writable, err := primary.serves(ctx, true); err != nil || !writable {
		return errors.Join(fmt.Errorf("the primary %s does not accept writes yet", primary.Name), err)
	}
	if first.Times.Committed.Term != first.Term {
		return fmt.Errorf("%s has committed nothing as primary", primary.Name)
	}
	for _, m := range servers {
		now, err := m.status(ctx)
		switch {
		case err != nil:
			return err
		case now.State != statePrimary && now.State != stateSecondary:
			return fmt.Errorf("%s is %s", m.Name, now.states()[m.Host])
		case now.primary() != primary.Host || now.Term != first.Term:
			return fmt.Errorf("%s names the primary %q instead of %s", m.Name, now.primary(), primary.Host)
		case now.Times.Applied.before(first.Times.Applied):
			return fmt.Errorf("%s is behind %s", m.Name, primary.Name)
		}
		for _, other := range first.Members {
			if other.Name == m.Host && other.State != statePrimary && other.State != stateSecondary {
				return fmt.Errorf("%s regards %s as %s", primary.Name, m.Name, other.Text)
			}
		}
	}
	return allVote(ctx, servers, primary)
}

// allVote returns nil if the set consists of these servers and each has a vote.
func allVote(ctx context.Context, servers []Server, primary Server) error {
	config, err := primary.config(ctx)
	if err != nil {
		return err
	}
	if len(config.Members) != len(servers) {
		return fmt.Errorf("the replica set has %d members instead of %d", len(config.Members), len(servers))
	}
	for _, m := range servers {
		if at := config.at(m.Host); at < 0 || config.votes(at) != 1 {
			return fmt.Errorf("%s has no vote", m.Name)
		}
	}
	return nil
}

// Primary returns the index of the server that reports itself as a primary that accepts writes, in the highest term
// if there are several.
func Primary(ctx context.Context, servers []Server) (int, error) {
	leader, term := -1, int64(-1)
	var failed []error
	for i, m := range servers {
		s, err := m.status(ctx)
		if err == nil && s.State == statePrimary && s.Term > term {
			var writable bool
			if writable, err = m.serves(ctx, true); writable {
				leader, term = i, s.Term
			}
		}
		failed = append(failed, err)
	}
	if leader < 0 {
		return -1, errors.Join(append(failed, errors.New("no member accepts writes"))...)
	}
	return leader, nil
}

// StepUp makes a member stand for election.
func (m Server) StepUp(ctx context.Context) error {
	_, err := m.run(ctx, changeTimeout, bson.D{{Key: "replSetStepUp", Value: 1}})
	return err
}

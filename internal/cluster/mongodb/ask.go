package mongodb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

const (
	askTimeout    = time.Second      // of a query to one node, which may hang
	changeTimeout = 15 * time.Second // of a change of the set
)

// States of members, from src/mongo/db/repl/member_state.h.
const statePrimary, stateSecondary = 1, 2

// status is the part of the reply to replSetGetStatus that is used here.
type status struct {
	State   int      `bson:"myState"`
	Term    int64    `bson:"term"`
	Members []member `bson:"members"`
	Times   struct {
		Committed opTime `bson:"lastCommittedOpTime"`
		Applied   opTime `bson:"appliedOpTime"`
	} `bson:"optimes"`
}

// member is a node's view of a member.
type member struct {
	Name  string `bson:"name"`
	State int    `bson:"state"`
	Text  string `bson:"stateStr"`
}

// opTime is a position in the log of the set.
type opTime struct {
	Time bson.Timestamp `bson:"ts"`
	Term int64          `bson:"t"`
}

func (t opTime) before(u opTime) bool {
	return t.Term < u.Term || t.Term == u.Term && t.Time.Compare(u.Time) < 0
}

// primary returns the address of the only member that the node regards as primary, or "" if there is none or more
// than one.
func (s *status) primary() (host string) {
	for _, m := range s.Members {
		if m.State != statePrimary {
			continue
		}
		if host != "" {
			return ""
		}
		host = m.Name
	}
	return host
}

// states returns the names of the members' states by their addresses.
func (s *status) states() map[string]string {
	states := map[string]string{}
	for _, m := range s.Members {
		states[m.Name] = m.Text
	}
	return states
}

// Server is a member of a replica set, as a client.
type Server struct {
	Name           string // for errors
	Host           string // HOST:PORT in the set's configuration
	Address        string // HOST:PORT at which it is reached
	User, Password string // of the database admin; empty: none
}

// server returns the node as a Server.
func (n *node) server() Server {
	return Server{Name: n.Name(), Host: n.address.String(), Address: n.address.String()}
}

func (m Server) status(ctx context.Context) (s status, err error) {
	answer, err := m.run(ctx, askTimeout, bson.D{{Key: "replSetGetStatus", Value: 1}})
	if err == nil {
		err = bson.Unmarshal(answer, &s)
	}
	return s, err
}

// serves reports whether the server is a primary that accepts writes or, unless primary is set, a secondary.
func (m Server) serves(ctx context.Context, primary bool) (bool, error) {
	answer, err := m.run(ctx, askTimeout, bson.D{{Key: "isMaster", Value: 1}})
	if err != nil {
		return false, err
	}
	writable, _ := answer.Lookup("ismaster").BooleanOK()
	secondary, _ := answer.Lookup("secondary").BooleanOK()
	return writable || secondary && !primary, nil
}

// config is the configuration of the replica set. Members and settings have more fields than are named here, which
// must be kept.
type config struct {
	ID       string   `bson:"_id"`
	Version  int      `bson:"version"`
	Members  []bson.M `bson:"members"`
	Settings bson.M   `bson:"settings"`
	Protocol int64    `bson:"protocolVersion"`
	Journal  bool     `bson:"writeConcernMajorityJournalDefault"`
}

func (c *config) member(n *node) int { return c.at(n.address.String()) }

// at returns the index of the member with a host, or a negative number.
func (c *config) at(host string) int {
	return slices.IndexFunc(c.Members, func(m bson.M) bool { return m["host"] == host })
}

func (c *config) votes(member int) int {
	votes, _ := c.Members[member]["votes"].(int32)
	return int(votes)
}

// vote sets the votes of the node and makes it a member if it is none. A member without a vote cannot be primary.
func (c *config) vote(n *node, votes int) (changed bool) {
	at := c.member(n)
	if at < 0 {
		at = len(c.Members)
		id := int32(0)
		for _, m := range c.Members {
			other, _ := m["_id"].(int32)
			id = max(id, other+1)
		}
		c.Members = append(c.Members, bson.M{"_id": id, "host": n.address.String(), "votes": int32(1 - votes)})
	}
	if c.votes(at) == votes {
		return false
	}
	c.Members[at]["votes"], c.Members[at]["priority"] = int32(votes), int32(votes)
	return true
}

// expel removes the node from the members.
func (c *config) expel(n *node) (changed bool) {
	at := c.member(n)
	if at >= 0 {
		c.Members = slices.Delete(c.Members, at, at+1)
	}
	return at >= 0
}

func (m Server) config(ctx context.Context) (c config, err error) {
	answer, err := m.run(ctx, askTimeout, bson.D{{Key: "replSetGetConfig", Value: 1}})
	if err == nil {
		err = answer.Lookup("config").Unmarshal(&c)
	}
	return c, err
}

// reconfigure changes the configuration of the set through n, which must be primary. change reports whether there is
// anything to change.
func (m Server) reconfigure(ctx context.Context, change func(*config) bool) error {
	c, err := m.config(ctx)
	if err != nil || !change(&c) {
		return err
	}
	c.Version++
	_, err = m.run(ctx, changeTimeout, bson.D{{Key: "replSetReconfig", Value: c}})
	return err
}

// run runs a command of the database admin at the server.
func (m Server) run(ctx context.Context, limit time.Duration, command bson.D) (answer bson.Raw, err error) {
	err = m.with(ctx, limit, func(ctx context.Context, c *mongo.Client) (err error) {
		answer, err = c.Database("admin").RunCommand(ctx, command).Raw()
		return err
	})
	return answer, err
}

// with calls question once with new connections, so that none outlives the server process.
func (m Server) with(ctx context.Context, limit time.Duration, question func(context.Context, *mongo.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	o := options.Client().SetHosts([]string{m.Address}).SetDirect(true).
		SetReadPreference(readpref.Nearest()).SetServerSelectionTimeout(limit).SetConnectTimeout(limit)
	if m.User != "" {
		o.SetAuth(options.Credential{Username: m.User, Password: m.Password, AuthSource: "admin"})
	}
	c, err := mongo.Connect(o)
	if err == nil {
		err = question(ctx, c)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
		defer cancel()
		_ = c.Disconnect(closing) // the query is answered, and the server drops the rest
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", m.Name, err)
	}
	return nil
}

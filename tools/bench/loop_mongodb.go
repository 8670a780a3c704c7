package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"stroppy/internal/cluster/mongodb"
	"stroppy/tools/try"
)

// mongodb measures a replica set of one member beside bare loops over the official library:
// transfers, and the key-value profile.
func (s *suite) mongodb() {
	engine(s, "mongodb", mongodb.Start, nil, func(url string) {
		client := try.Must(mongo.Connect(options.Client().ApplyURI(url)))
		defer func() { _ = client.Disconnect(context.WithoutCancel(s.ctx)) }()
		data := client.Database("stroppy")
		s.besideLoop("mongodb", url, loopClients, "", []string{"--overdraft-share=0"}, func(ctx context.Context, number int) loop {
			return newMongoTransfers(ctx, data, number)
		})
		args := []string{"--db=" + url, fmt.Sprintf("--clients=%d", loopClients)}
		s.besideReads("mongodb", "a bare loop", loopClients, args, func(ctx context.Context, client int) loop {
			return newMongoReads(ctx, data, client)
		})
	})
}

// mongoSession is one client of a bare loop: a session of the library whose transactions
// ask for the same as ours.
type mongoSession struct {
	*mongo.Session
	source *rand.Rand
	keys   []string // the ids of the collection
}

func newMongoSession(ctx context.Context, collection *mongo.Collection, client int) *mongoSession {
	session := try.Must(collection.Database().Client().StartSession(options.Session().SetDefaultTransactionOptions(
		options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority()))))
	s := &mongoSession{Session: session, source: rand.New(rand.NewPCG(uint64(client), 1))}
	cursor := try.Must(collection.Find(ctx, bson.D{}, options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}).SetLimit(loopAccounts)))
	var documents []struct {
		ID string `bson:"_id"`
	}
	try.Check(cursor.All(ctx, &documents))
	for _, d := range documents {
		s.keys = append(s.keys, d.ID)
	}
	return s
}

func (s *mongoSession) Close() error {
	s.EndSession(context.Background())
	return nil
}

// transact tries again what met another transaction.
func (s *mongoSession) transact(ctx context.Context, do func(ctx context.Context) error) {
	ctx = mongo.NewSessionContext(ctx, s.Session)
	for {
		try.Check(s.StartTransaction())
		err := do(ctx)
		if err == nil {
			try.Check(s.CommitTransaction(ctx))
			return
		}
		_ = s.AbortTransaction(ctx)
		if e := mongo.LabeledError(nil); !errors.As(err, &e) || !e.HasErrorLabel("TransientTransactionError") {
			try.Check(err)
		}
	}
}

// mongoTransfers transfers a cent between two accounts of the bank, as the style atomic
// does it. Its ids are of a run that no history has.
type mongoTransfers struct {
	*mongoSession
	accounts, ledger *mongo.Collection
	cents            [2]bson.Decimal128 // what the accounts get
}

func newMongoTransfers(ctx context.Context, data *mongo.Database, client int) loop {
	l := &mongoTransfers{accounts: data.Collection("stroppy_account"), ledger: data.Collection("stroppy_ledger")}
	for i, text := range []string{"-0.01", "0.01"} {
		l.cents[i] = try.Must(bson.ParseDecimal128(text))
	}
	l.mongoSession = newMongoSession(ctx, l.accounts, client)
	return l
}

// mongoAccount holds the fields read from an account's document, and mongoEntry a document of the ledger.
type (
	mongoAccount struct {
		Balance bson.Decimal128 `bson:"balance"`
		Version int64           `bson:"version"`
		Last    int64           `bson:"last_transfer"`
	}
	mongoEntry struct {
		ID   int64       `bson:"_id"`
		Legs [2]mongoLeg `bson:"legs"`
	}
	mongoLeg struct {
		Object  string          `bson:"object"`
		Amount  bson.Decimal128 `bson:"amount"`
		Version int64           `bson:"version"`
	}
)

func (l *mongoTransfers) Once(ctx context.Context, n uint64) {
	from := l.source.IntN(len(l.keys))
	to := (from + 1 + l.source.IntN(len(l.keys)-1)) % len(l.keys)
	entry := mongoEntry{ID: int64(n + loopRun)}
	l.transact(ctx, func(ctx context.Context) error {
		for i, key := range []string{l.keys[from], l.keys[to]} {
			filter := bson.D{{Key: "_id", Value: key}}
			if i == 0 {
				filter = append(filter, bson.E{Key: "balance", Value: bson.D{{Key: "$gte", Value: l.cents[1]}}})
			}
			var before mongoAccount
			err := l.accounts.FindOneAndUpdate(ctx, filter, bson.D{
				{Key: "$inc", Value: bson.D{{Key: "balance", Value: l.cents[i]}, {Key: "version", Value: int64(1)}}},
				{Key: "$set", Value: bson.D{{Key: "last_transfer", Value: entry.ID}}},
			}).Decode(&before)
			if err != nil {
				return err
			}
			entry.Legs[i] = mongoLeg{key, l.cents[i], before.Version + 1}
		}
		_, err := l.ledger.InsertOne(ctx, &entry)
		return err
	})
}

// mongoReads reads records, and replaces the value of one in ten.
type mongoReads struct {
	*mongoSession
	records *mongo.Collection
	value   string
}

func newMongoReads(ctx context.Context, data *mongo.Database, client int) loop {
	l := &mongoReads{records: data.Collection("stroppy_kv")}
	l.mongoSession = newMongoSession(ctx, l.records, client)
	var first mongoRecord
	try.Check(l.records.FindOne(ctx, bson.D{{Key: "_id", Value: l.keys[0]}}).Decode(&first))
	l.value = strings.Repeat("v", len(first.Value))
	return l
}

type mongoRecord struct {
	ID    string `bson:"_id"`
	Value string `bson:"record_value"`
}

func (l *mongoReads) Once(ctx context.Context, _ uint64) {
	filter, writes := bson.D{{Key: "_id", Value: l.keys[l.source.IntN(len(l.keys))]}}, l.source.IntN(10) == 0
	l.transact(ctx, func(ctx context.Context) error {
		if writes {
			_, err := l.records.UpdateOne(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "record_value", Value: l.value}}}})
			return err
		}
		var record mongoRecord
		return l.records.FindOne(ctx, filter).Decode(&record)
	})
}

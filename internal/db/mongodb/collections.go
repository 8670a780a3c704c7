package mongodb

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"stroppy/internal/db"
)

// changeFactor is the time-out of a change of collections, as a multiple of the time-out of a call.
const changeFactor = 6

// Exists implements db.Records.
func (d *Database) Exists(ctx context.Context, c *db.Collection) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.timeout)
	defer cancel()
	list, err := d.client.Database(d.config.database, options.Database().SetReadPreference(d.preference())).
		ListCollectionNames(ctx, bson.D{{Key: "name", Value: c.Name}})
	if err != nil {
		return false, d.failure("list the collections", err, before)
	}
	return len(list) > 0, nil
}

// Create implements db.Records. The collection's schema contains the fields that must not be negative. In a sharded
// cluster a collection is distributed by a hash of the id.
func (d *Database) Create(ctx context.Context, c *db.Collection) error {
	command := bson.D{{Key: "create", Value: c.Name}}
	fields := bson.D{}
	for _, f := range c.Fields {
		if f.NonNegative {
			fields = append(fields, bson.E{Key: f.Name, Value: bson.D{{Key: "minimum", Value: 0}}})
		}
	}
	if len(fields) > 0 {
		command = append(command, bson.E{Key: "validator", Value: bson.D{{Key: "$jsonSchema", Value: bson.D{{Key: "properties", Value: fields}}}}})
	}
	op := "create the collection " + c.Name
	if err := d.change(ctx, op, d.config.database, command, codeNamespaceExists); err != nil || !d.sharded {
		return err
	}
	const alreadyInitialized = 23 // sharding is already enabled
	if err := d.change(ctx, op, "admin", bson.D{{Key: "enableSharding", Value: d.config.database}}, alreadyInitialized); err != nil {
		return err
	}
	return d.change(ctx, op, "admin", bson.D{
		{Key: "shardCollection", Value: d.config.database + "." + c.Name}, {Key: "key", Value: bson.D{{Key: idName, Value: "hashed"}}},
	}, alreadyInitialized)
}

// Drop implements db.Records.
func (d *Database) Drop(ctx context.Context, c *db.Collection) error {
	const namespaceNotFound = 26
	return d.change(ctx, "drop the collection "+c.Name, d.config.database, bson.D{{Key: "drop", Value: c.Name}}, namespaceNotFound)
}

// change runs a command that changes collections, on a majority of the members. The code done means that there was
// nothing to do.
func (d *Database) change(ctx context.Context, op, database string, command bson.D, done int32) error {
	if d.config.direct {
		return db.Fatalf(op, "directConnection=true is only to read")
	}
	ctx, cancel := context.WithTimeout(ctx, changeFactor*d.config.timeout)
	defer cancel()
	command = append(command, bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}})
	err := d.client.Database(database).RunCommand(ctx, command).Err()
	if err == nil {
		return nil
	}
	if code, _, answered := answerOf(err); answered && code == done {
		return nil
	}
	e := d.failure(op, err, before)
	if e.Class == db.Unavailable {
		e.Err = fmt.Errorf("%w: run the command again", e.Err)
	}
	return e
}

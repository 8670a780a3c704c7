package mongodb

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// TestOpenSessionsReduceFreeConnections checks that open sessions reduce the number of available connections.
func TestOpenSessionsReduceFreeConnections(t *testing.T) {
	d := open(t, freshURL(t))
	before, err := d.FreeConnections(t.Context())
	if err != nil || !before.Known || before.Count == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	for range 10 {
		drivertest.Must(t, session1(t, d, "").Begin(t.Context(), false))
	}
	if after, err := d.FreeConnections(t.Context()); err != nil || after.Count > before.Count || after.Limit != before.Limit {
		t.Errorf("%+v, before %+v, %v", after, before, err)
	}
}

// TestFreeConnectionsAreUnknownWithoutFigures checks that the figures of serverStatus are read, and that free
// connections are unknown without them.
func TestFreeConnectionsAreUnknownWithoutFigures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status bson.D
		want   db.FreeConnections
	}{
		{bson.D{}, db.FreeConnections{}},
		{bson.D{{Key: "connections", Value: bson.D{{Key: "current", Value: int32(7)}, {Key: "available", Value: int32(93)}}}},
			db.FreeConnections{Known: true, Count: 94, Limit: "100 connections, the smaller of net.maxIncomingConnections and what its open files allow",
				Remedy: "raise net.maxIncomingConnections and the limit of open files"}},
	} {
		c, err := parseURL("mongodb://" + standIn(t, 21, test.status))
		drivertest.Must(t, err)
		o, err := c.options(true)
		drivertest.Must(t, err)
		d := &Database{config: c, readOptions: options.RunCmd().SetReadPreference((&Database{config: c}).preference())}
		d.client, err = mongo.Connect(o)
		drivertest.Must(t, err)
		drivertest.Close(t, d)
		test.want.Server = "MongoDB at " + c.name()
		if free, err := d.FreeConnections(t.Context()); err != nil || free != test.want {
			t.Errorf("%+v, %v; want %+v", free, err, test.want)
		}
	}
}

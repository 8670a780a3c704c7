package mongodb

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/isolation"
)

func TestURLIsParsedOrRefused(t *testing.T) {
	c, err := parseURL("mongodb://u:p%40@h1,h2:99/bank?timeout=3s&w=2&readConcernLevel=majority&readPreference=secondary&replicaSet=rs&authSource=admin")
	got := fmt.Sprintln(c.servers, c.user, c.password, c.database, c.timeout, c.w, c.readConcern, c.secondary, c.replicaSet, c.authSource, c.direct)
	if want := "[h1:27017 h2:99] u p@ bank 3s 2 majority true rs admin false\n"; err != nil || got != want {
		t.Errorf("read as %s, %v, want %s", got, err, want)
	}
	if c, err = parseURL("mongodb://h"); err != nil || c.database != "stroppy" || c.w != majority || c.readConcern != snapshot || c.timeout != defaultTimeout {
		t.Errorf("read as %+v, %v", c, err)
	}
	for text, says := range map[string]string{
		"mongo://h":                                           "does not begin with mongodb://",
		"mongodb://h,h":                                       "named twice",
		"mongodb://:p@h":                                      "stand a user and a password",
		"mongodb://u@h":                                       "stand a user and a password",
		"mongodb://h/a.b":                                     "no name of a database",
		"mongodb://h?timeout=no":                              "is no time",
		"mongodb://h?timeuot=3s":                              "timeout",
		"mongodb://h?w=0":                                     "neither majority",
		"mongodb://h?w=8":                                     "neither majority",
		"mongodb://h?readConcernLevel=strong":                 "snapshot",
		"mongodb://h1,h2?directConnection=true":               "is for one server",
		"mongodb+srv://h1.a.b,h2.a.b":                         "one host without a port",
		"mongodb+srv://h.a.b:1":                               "one host without a port",
		"mongodb+srv://h.a.b?directConnection=true":           "use only one of them",
		"mongodb://h?authMechanism=GSSAPI":                    "authMechanism=GSSAPI is not supported: take one of SCRAM-SHA-256",
		"mongodb://h?authMechanism=MONGODB-X509":              "write tlsCertificateKeyFile=FILE and no password",
		"mongodb://u:p@h?authMechanism=MONGODB-X509&tls=true": "write tlsCertificateKeyFile=FILE and no password",
	} {
		if _, err := parseURL(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestErrorsContainNoPartOfThePassword(t *testing.T) {
	drivertest.Passwords(t, "mongodb", "h1:98,h2:99", []string{"", "/bank", "/bank?timeout=3s"}, "/?#", func(text string) (drivertest.Account, error) {
		c, err := parseURL(text)
		return drivertest.Account{User: c.user, Password: c.password, Servers: strings.Join(c.servers, ",")}, err
	})
}

func TestURLsOfApplicationsAreAccepted(t *testing.T) {
	c, err := parseURL("mongodb+srv://u:p%40@cluster0.ab1cd.mongodb.net/bank?retryWrites=true&w=majority&appName=Cluster0")
	if got := fmt.Sprintln(c.servers, c.srv, c.user, c.password, c.database, c.appName, c.noRetry); err != nil || got != "[cluster0.ab1cd.mongodb.net] true u p@ bank Cluster0 false\n" {
		t.Errorf("%s, %v", got, err)
	}
	if err := CheckURL("mongodb+srv://u:p@cluster0.ab1cd.mongodb.net/bank"); err != nil {
		t.Errorf("a look-up was tried: %v", err)
	}
}

// TestUnreachableServerIsReportedInTime checks that an unreachable server is reported in one sentence within ten
// seconds.
func TestUnreachableServerIsReportedInTime(t *testing.T) {
	for text, says := range map[string]string{
		"mongodb://127.0.0.1:1":                          "open MongoDB: MongoDB 127.0.0.1:1: connection refused: check the address",
		"mongodb://u:s3cr3t@127.0.0.1:1":                 "open MongoDB: MongoDB 127.0.0.1:1: connection refused: check the address",
		"mongodb://127.0.0.1:1,127.0.0.1:2":              "open MongoDB: MongoDB 127.0.0.1:1,127.0.0.1:2: connection refused: check the address",
		"mongodb://h.invalid":                            "open MongoDB: MongoDB h.invalid:27017: ",
		"mongodb://h?tls=true&tlsCAFile=/nonexistent/ca": "/nonexistent/ca",
	} {
		began := time.Now()
		_, err := Open(t.Context(), text)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "\n") || took > 10*time.Second {
			t.Errorf("%s: %v after %v, want %q", text, err, took, says)
		}
		if class := db.ClassOf(err); class != db.Unavailable && class != db.Fatal {
			t.Errorf("%s is of class %v", text, class)
		}
	}
}

// TestClaimFollowsURLParameters checks that the claim follows from the URL's parameters, unless an isolation is named.
func TestClaimFollowsURLParameters(t *testing.T) {
	for _, tc := range []struct {
		params, isolation string
		level             isolation.Level
		says              string
	}{
		{"", "", isolation.SnapshotIsolation, ""},
		{"readConcernLevel=local", "", isolation.ReadUncommitted, ""},
		{"readConcernLevel=local", "Snapshot", isolation.SnapshotIsolation, ""},
		{"readConcernLevel=majority", "", isolation.ReadCommitted, ""},
		{"w=1", "", isolation.SnapshotIsolation, "write concern 1"},
		{"readPreference=secondary", "", isolation.ReadCommitted, "secondary"},
		{"readPreference=secondary", local, isolation.ReadUncommitted, "secondary"},
	} {
		c, err := parseURL("mongodb://h?" + tc.params)
		drivertest.Must(t, err)
		claim, err := (&Database{config: c}).Claim(tc.isolation)
		if err != nil || claim.Level != tc.level || !strings.Contains(claim.Source, tc.says) {
			t.Errorf("%s at %q claims %+v, %v, want %v", tc.params, tc.isolation, claim, err, tc.level)
		}
	}
}

// TestMemberIsReachedAtItsMappedAddress checks that the parameter via maps a member's name in the replica set to
// another address.
func TestMemberIsReachedAtItsMappedAddress(t *testing.T) {
	t.Parallel()
	at := standIn(t, 21, bson.D{{Key: "version", Value: "8.0.0"}}, "db-1.db:27017")
	c, err := parseURL("mongodb://db-0.db:27017/bank?replicaSet=rs&via=db-0.db:27017=" + at + ",db-1.db:27017=" + at)
	drivertest.Must(t, err)
	if c.via.of("db-0.db:27017") != at || c.via.of("db-2.db:27017") != "db-2.db:27017" {
		t.Errorf("the addresses are %v", c.via)
	}
	o, err := c.options(true)
	drivertest.Must(t, err)
	client, err := mongo.Connect(o) // it replaces db-0 by the only member, db-1
	drivertest.Must(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	var built struct{ Version string }
	if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "buildInfo", Value: 1}}).Decode(&built); err != nil || built.Version != "8.0.0" {
		t.Errorf("it answers %+v, %v", built, err)
	}
	for _, wrong := range []string{"", "db-0.db:27017", "db-0.db=127.0.0.1:1", "db-0.db:27017=127.0.0.1"} {
		if _, err := parseURL("mongodb://db-0.db:27017/bank?via=" + wrong); err == nil || !strings.Contains(err.Error(), "via") {
			t.Errorf("via=%s: %v", wrong, err)
		}
	}
}

package pgbouncer

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
)

// TestPgBouncerChecksSettingsBeforeStart checks that PgBouncer itself verifies the settings before a server is started.
func TestPgBouncerChecksSettingsBeforeStart(t *testing.T) {
	program, err := find()
	clustertest.Need(t, "pgbouncer", err)
	for query, says := range map[string]string{
		"pooler=session":                         "",
		"pooler=session&pooler.query_timeout=12": "",
		"pooler=transaction&pooler.autodb_idle_timeout=60&pooler.verbose=2":   "",
		"pooler=session&pooler.nonsense=1":                                    "pooler.nonsense: PgBouncer has no such setting",
		"pooler=session&pooler.query_timeout=soon":                            `pooler.query_timeout: PgBouncer does not accept the value "soon"`,
		"pooler=transaction&pooler.query_timeout=12&pooler.verbose_nonsense=": "pooler.verbose_nonsense: PgBouncer has no",
	} {
		values, err := url.ParseQuery(query)
		clustertest.Must(t, err)
		p, _, err := Parse(cluster.Options{Nodes: 1, Params: values})
		clustertest.Must(t, err)
		err = p.check(t.Context(), program)
		if wrong, ok := errors.AsType[*cluster.ParamError](err); (says == "") != (err == nil) || err != nil && (!ok || !strings.Contains(wrong.Error(), says)) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestParamsRejectInvalidValues checks that the pooler's parameters are read, and that invalid ones are named.
func TestParamsRejectInvalidValues(t *testing.T) {
	read := func(values url.Values) (Params, error) {
		p, _, err := Parse(cluster.Options{Nodes: 1, Params: values})
		return p, err
	}
	clustertest.Params(t, read, map[string]string{
		"pooler=transaction&pooler.default_pool_size=50": "",
		"pooler=session&fsync=off":                       "",
		"fsync=off":                                      "",
		"pooler=statement":                               "one of session, transaction",
		"pooler.default_pool_size=50":                    "add pooler=transaction",
		"pooler=session&pooler.listen_port=1":            "cannot be changed",
		"pooler=session&pooler.default_pool_size=no":     "a number of connections",
	})
	p, o, err := Parse(cluster.Options{Nodes: 1, Connections: 10_000, Params: url.Values{"pooler": {transaction}, "pooler.default_pool_size": {"50"}}})
	clustertest.Must(t, err)
	if o.Connections != 50 || p.settings["max_client_conn"] != "10050" || len(o.Params) != 0 {
		t.Errorf("10,000 clients over 50 connections: %+v, %+v", p, o)
	}
	if p, o, err = Parse(cluster.Options{Nodes: 1, Connections: 300, Params: url.Values{"pooler": {Session}}}); err != nil || o.Connections < 300 || p.settings["default_pool_size"] != "350" {
		t.Errorf("300 clients with a session each: %+v, %+v, %v", p, o, err)
	}
}

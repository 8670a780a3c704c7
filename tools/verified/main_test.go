package main

import (
	"os"
	"strings"
	"testing"
)

// TestThePageIsTheRecord holds that nobody has written the table by hand.
func TestThePageIsTheRecord(t *testing.T) {
	rows, err := readRows("../../" + recordFile)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../" + pageFile)
	if err != nil {
		t.Fatal(err)
	}
	made, err := withTable(page, table(rows))
	if err != nil {
		t.Fatal(err)
	}
	if string(made) != string(page) {
		t.Errorf("the table of %s is not that of %s: run go run ./tools/verified", pageFile, recordFile)
	}
}

// TestOfTests counts what tests report that have passed, and nothing else.
func TestOfTests(t *testing.T) {
	const log = `{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"    x_test.go:9: verified {\"database\":\"PostgreSQL\",\"version\":\"15.14 (Debian 15.14-0)\",\"workload\":\"bank\",\"faults\":[\"pause n1\",\"kill leader\"]}\n"}
{"Action":"output","Package":"p","Test":"B","Output":"    x_test.go:9: verified {\"database\":\"PostgreSQL\",\"version\":\"15.14\",\"workload\":\"kv\"}\n"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"fail","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"    x_test.go:9: verified {\"database\":\"etcd\",\"version\":\"v3.4.23\",\"workload\":\"events\"}\n"}
{"Action":"output","Package":"p","Test":"D","Output":"    x_test.go:9: verified {\"database\":\"PostgreSQL\",\"version\":\"15.14\",\"workload\":\"bank\",\"faults\":[\"kill\"]}\n"}
{"Action":"pass","Package":"p","Test":"D"}
{"Action":"pass","Package":"p","Test":"C"}
`
	list, err := ofTests([]byte(log))
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for _, e := range list {
		rows = add(rows, e)
	}
	const want = `| database | version | bank | tpcb | kv | events | append |
|---|---|---|---|---|---|---|
| etcd | 3.4.23 | not yet | not yet | not yet | no fault | not yet |
| PostgreSQL | 15.14 | no fault, kill, pause | not yet | not yet | not yet | not yet |
`
	if got := table(rows); got != want {
		t.Errorf("the table is\n%s\nnot\n%s", got, want)
	}
	if _, err := ofTests([]byte(strings.Replace(log, `\"workload\":\"kv\"`, `\"workload\":`, 1))); err == nil {
		t.Error("a report that cannot be read is taken")
	}
	if _, err := ofTests([]byte("no JSON\n")); err == nil {
		t.Error("a log that is none is taken")
	}
}

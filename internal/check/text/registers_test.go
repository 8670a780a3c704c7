package text

import (
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// clause is a fact with its expected text.
type clause struct {
	fact fact.Fact
	want string
}

// wantClauses compares the clauses of facts with the expected ones.
func wantClauses(t *testing.T, s Speaker, list []clause) {
	t.Helper()
	for _, c := range list {
		if got := s.Clause(c.fact); got != c.want {
			t.Errorf("%s: got\n\t%q, want\n\t%q", c.fact.Fact(), got, c.want)
		}
	}
}

func member(kind string, client, sequence uint64) fact.Member {
	return fact.Member{ID: history.NewID(1, client, sequence), Kind: kind}
}

func TestRegisterClauses(t *testing.T) {
	read, update, other := member("read", 4, 17), member("update", 2, 5), member("insert", 3, 9)
	scan, load := member("scan", 4, 17), fact.Member{}
	const key = fact.Object("kv/0005 (record 3)")
	wantClauses(t, Speaker{check.Words{One: "transaction"}}, []clause{
		{fact.RegisterForeignKey{Reader: scan, Bytes: 1024},
			"scan 1-4-17 returned a key that neither the load nor a transaction makes, with a value of 1,024 bytes"},
		{fact.RegisterDamagedValue{Reader: read, Object: key, Bytes: 1},
			"read 1-4-17 found a value of 1 byte in kv/0005 (record 3) that nobody wrote like this"},
		{fact.RegisterDamagedValue{Reader: read, Object: key, Bytes: 1024, Compared: 3, Pieces: []fact.Piece{
			{From: 0, To: 511, Known: true, Writer: update.ID}, {From: 512, To: 1022, Known: true}, {From: 1023, To: 1023},
		}}, "read 1-4-17 found a value of 1,024 bytes in kv/0005 (record 3) that nobody wrote like this: bytes 0 to 511 are of 1-2-5, 512 to 1022 of the load, byte 1023 of nobody (3 values compared)"},
		{fact.RegisterDamagedValue{Reader: read, Object: key, Bytes: 64, Compared: 1, Pieces: []fact.Piece{
			{From: 0, To: 0}, {From: 1, To: 63, Known: true, Writer: update.ID},
		}}, "read 1-4-17 found a value of 64 bytes in kv/0005 (record 3) that nobody wrote like this: byte 0 is of nobody (1 value compared), 1 to 63 of 1-2-5"},
		{fact.RegisterUnwrittenValue{Reader: read, Writer: fact.Member{ID: update.ID}, Object: key},
			"read 1-4-17 found the value of transaction 1-2-5 in kv/0005 (record 3), where transaction 1-2-5 wrote nothing"},
		{fact.RegisterOtherLength{Reader: read, Writer: load, Object: key, Found: 100, Written: 1024},
			"read 1-4-17 found the value of the load in kv/0005 (record 3) with 100 bytes, and it was written with 1,024 bytes"},
		{fact.RegisterMissingRecord{Reader: read, Object: key},
			"read 1-4-17 did not find kv/0005 (record 3), which the load made"},
		{fact.RegisterDirtyRead{Reader: read, Writer: update, Object: key, Outcome: history.Aborted},
			"read 1-4-17 found the value of update 1-2-5 in kv/0005 (record 3), and update 1-2-5 was aborted"},
		{fact.RegisterDirtyRead{Reader: read, Writer: update, Object: key, Outcome: history.Committed, Ahead: 5},
			"read 1-4-17 found the value of update 1-2-5 in kv/0005 (record 3), and ended before the last try of update 1-2-5 began; earlier tries were refused"},
		{fact.RegisterStaleRead{Reader: read, Object: key, Writer: update, By: other, Ago: 3200 * time.Microsecond},
			"read 1-4-17 found the value of update 1-2-5 in kv/0005 (record 3), but insert 1-3-9 wrote there later and was acknowledged 3.2 ms before read 1-4-17 began"},
		{fact.RegisterStaleRead{Reader: read, Object: key, Absent: true, By: other, Seen: true, Ago: time.Millisecond, AtLeast: true},
			"read 1-4-17 did not find kv/0005 (record 3), but insert 1-3-9 wrote there later and others had seen its value at least 1 ms before read 1-4-17 began"},
		{fact.RegisterLostUpdate{First: update, Second: other, Object: key},
			"update 1-2-5 and insert 1-3-9 both read the value of the load in kv/0005 (record 3), and both wrote in its place"},
		{fact.RegisterScanOrder{Scan: scan, Object: key},
			"scan 1-4-17 returned kv/0005 (record 3) after a key that is the same or greater"},
		{fact.RegisterScanCount{Scan: scan, Limit: 1, Found: 3}, "scan 1-4-17 asked for 1 record and returned 3"},
		{fact.RegisterScanLoaded{Scan: scan, Object: key},
			"scan 1-4-17 left out kv/0005 (record 3), which the load made"},
		{fact.RegisterScanInsert{Scan: scan, Object: key, Insert: other, Ago: time.Second},
			"scan 1-4-17 left out kv/0005 (record 3), although insert 1-3-9 was acknowledged 1 s before the scan began"},
		{fact.RegisterNoOrder{Object: key, Reason: fact.ReadBeforeWrite, First: update},
			"the reads and writes of kv/0005 (record 3) have no order: the value of update 1-2-5 was read before the last try of update 1-2-5 began"},
		{fact.RegisterNoOrder{Object: key, Reason: fact.BeforeAndAfter, First: load, Second: update},
			"the reads and writes of kv/0005 (record 3) have no order: the value of the load must be there both before and after the value of update 1-2-5 in real time"},
		{fact.RegisterNoOrder{Object: key, Reason: fact.ReplacedTwice, First: update, Second: other},
			"the reads and writes of kv/0005 (record 3) have no order: update 1-2-5 and insert 1-3-9 both read one value and wrote in its place"},
		{fact.RegisterNoOrder{Object: key, Reason: fact.ReplacedEarly, First: load, Second: update},
			"the reads and writes of kv/0005 (record 3) have no order: the value of update 1-2-5 follows from the value of the load, and had been seen or acknowledged before the latter was written or last read"},
		{fact.RegisterNoOrder{Object: key, Reason: fact.ReplacedCircle, First: update, Second: other},
			"the reads and writes of kv/0005 (record 3) have no order: the values of update 1-2-5 and insert 1-3-9 each follow from the other"},
		{fact.RegisterEndDamaged{Object: key, Bytes: 64},
			"in the end state kv/0005 (record 3) holds 64 bytes that nobody wrote like this"},
		{fact.RegisterEndLength{Object: key, Writer: update, Found: 64, Written: 80},
			"in the end state kv/0005 (record 3) holds the value of update 1-2-5 with 64 bytes, and it was written with 80 bytes"},
		{fact.RegisterEndMissing{Object: key}, "the load made kv/0005 (record 3), and it is not in the end state"},
		{fact.RegisterEndLost{Object: key, Absent: true, Lost: other, Writes: 1},
			"insert 1-3-9 wrote kv/0005 (record 3) and was acknowledged, but the end state has no such record"},
		{fact.RegisterEndLost{Object: key, Holds: load, Lost: update, Writes: 3},
			"update 1-2-5 wrote kv/0005 (record 3) and was acknowledged, but the end state holds the value of the load, which was there before that write began (3 writes of this record are lost)"},
		{fact.RegisterEndRepeated{Found: 1001, Loaded: 1000},
			"the end state has 1,001 records of the load, and the load made 1,000"},
		{fact.RegisterUnexpected{Text: `a key "kv/x" with a value of 7 bytes, which neither the load nor a transaction makes`},
			"the end state has a key \"kv/x\" with a value of 7 bytes, which neither the load nor a transaction makes"},
		{fact.RegisterEndUnwritten{Object: key, Writer: update},
			"in the end state kv/0005 (record 3) holds the value of update 1-2-5, and update 1-2-5 wrote nothing there"},
		{fact.RegisterEndRefused{Object: key, Writer: update, Outcome: history.Aborted},
			"in the end state kv/0005 (record 3) holds the value of update 1-2-5, and update 1-2-5 was aborted"},
		{fact.RegisterReplaced{Reader: read, Object: key, Value: load, Writer: update},
			"read 1-4-17 found the value of the load in kv/0005 (record 3), and update 1-2-5 wrote in its place"},
		{fact.RegisterReplaced{Reader: read, Object: key, Absent: true, Writer: other},
			"read 1-4-17 did not find kv/0005 (record 3), and insert 1-3-9 wrote it"},
		{fact.RegisterReadOf{Writer: update, Outcome: history.Aborted, Object: key, Reader: read},
			"update 1-2-5 wrote kv/0005 (record 3) and was aborted, and read 1-4-17 found that value"},
		{fact.RegisterEnded{First: update, Second: read, Apart: time.Millisecond},
			"update 1-2-5 was acknowledged 1 ms before read 1-4-17 began"},
		{fact.RegisterSeenBefore{First: update, Second: read},
			"others had seen the value of update 1-2-5 before read 1-4-17 began"},
		{fact.RegisterDidRead{Writer: update}, "read the value of update 1-2-5"},
		{fact.RegisterDidMiss{}, "found no record"},
		{fact.RegisterDidOmit{}, "did not return it"},
		{fact.RegisterDidWrite{}, "wrote its own value"},
		{fact.RegisterValues{Values: 1200}, "1,200 values were read, each as the load or a transaction wrote it"},
		{fact.RegisterValues{Values: 1}, "1 value was read, each as the load or a transaction wrote it"},
		{fact.RegisterFresh{}, "no read returned what an acknowledged write had replaced before the read began"},
		{fact.RegisterUpdates{Updates: 12},
			"12 transactions both read and wrote a record, no two in place of one value"},
		{fact.RegisterScans{Scans: 3}, "3 scans were made, each in order and with all that had to be there"},
		{fact.RegisterOrder{Records: 1},
			"1 record was written, and the reads and writes of each have an order that agrees with real time"},
		{fact.RegisterEnd{Records: 1000},
			"the end state has 1,000 records, each with a value that the last acknowledged write allows"},
		{fact.RegisterWritten{Records: 1000, Writes: 40},
			"the end state has 1,000 records, each with a value of the load or of one of 40 writes that nobody refused"},
		{fact.RegisterOtherRuns{Runs: []uint64{7}},
			"values were read of run 7, whose recording was not given: give its directory too"},
		{fact.RegisterOtherRuns{Runs: []uint64{2, 3, 4}, More: 2},
			"values were read of the runs 2, 3, 4 and 2 more, whose recordings were not given: give their directories too"},
		{fact.RegisterTooMany{Most: 1 << 27}, "scans are compared only with loads of at most 134,217,728 records"},
	})
}

// wantHeadings compares the sentences of two findings of a kind with the expected ones.
func wantHeadings(t *testing.T, s Speaker, list []clause) {
	t.Helper()
	for _, c := range list {
		f := check.Finding{Count: 1200, Instances: []fact.Fact{c.fact}}
		if got, _ := s.title(&f); got != c.want {
			t.Errorf("%s: got\n\t%q, want\n\t%q", c.fact.Fact(), got, c.want)
		}
	}
}

func TestRegisterHeadings(t *testing.T) {
	wantHeadings(t, Speaker{check.Words{One: "transaction"}}, []clause{
		{fact.RegisterForeignKey{}, "1,200 records returned with a key that nobody makes"},
		{fact.RegisterDamagedValue{}, "1,200 damaged values read"},
		{fact.RegisterUnwrittenValue{}, "1,200 values read of a transaction that wrote nothing there"},
		{fact.RegisterOtherLength{}, "1,200 values read with another length than was written"},
		{fact.RegisterMissingRecord{}, "1,200 reads without a record that the load made"},
		{fact.RegisterDirtyRead{}, ""},
		{fact.RegisterStaleRead{}, ""},
		{fact.RegisterLostUpdate{}, ""},
		{fact.RegisterScanOrder{}, "1,200 scans out of order"},
		{fact.RegisterScanCount{}, "1,200 scans with too many records"},
		{fact.RegisterScanLoaded{}, "1,200 gaps in scans where the load made a record"},
		{fact.RegisterScanInsert{}, ""},
		{fact.RegisterNoOrder{}, "1,200 records without an order of reads and writes"},
		{fact.RegisterEndDamaged{}, "1,200 damaged records in the end state"},
		{fact.RegisterEndLength{}, "1,200 records in the end state with another length than was written"},
		{fact.RegisterEndMissing{}, "1,200 records of the load lost"},
		{fact.RegisterEndLost{}, "1,200 records with acknowledged writes that are lost"},
		{fact.RegisterUnexpected{}, "1,200 rows in the end state that nobody makes"},
		{fact.RegisterEndUnwritten{},
			"1,200 records in the end state of a transaction that wrote nothing there"},
		{fact.RegisterEndRefused{}, "1,200 records in the end state of a refused transaction"},
	})
}

// TestFindingOfRegisters checks that the heading, or the name of the anomaly, precedes the first instance.
func TestFindingOfRegisters(t *testing.T) {
	s := Speaker{check.Words{One: "transaction"}}
	missing := fact.RegisterMissingRecord{Reader: member("read", 4, 17), Object: "key 3"}
	dirty := fact.RegisterDirtyRead{Reader: member("read", 4, 17), Writer: member("update", 2, 5), Object: "key 3", Outcome: history.Aborted}
	for _, c := range []struct {
		finding check.Finding
		want    string
	}{
		{check.Finding{Count: 1, Instances: []fact.Fact{missing}}, "1 read without a record that the load made: read 1-4-17 did not find key 3, which the load made."},
		{check.Finding{Count: 2, Instances: []fact.Fact{missing}}, "2 reads without a record that the load made, first: read 1-4-17 did not find key 3, which the load made."},
		{check.Finding{Count: 2, Anomaly: "dirty read (G1a)", Instances: []fact.Fact{dirty}},
			"Dirty read (G1a): 2 times, first: read 1-4-17 found the value of update 1-2-5 in key 3, and update 1-2-5 was aborted."},
	} {
		if got := s.Finding(&c.finding); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

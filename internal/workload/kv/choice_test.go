package kv

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/setting"
)

func mixed() Config {
	return Config{
		Records: 1000, Seed: 7, KeySize: 32, ValueLow: 64, ValueHigh: 200, Connections: 2, InFlight: 2,
		Mix: Mix{0.4, 0.2, 0.1, 0.1, 0.2, Uniform}, ScanLength: 10, ZipfExponent: 0.99,
	}
}

// prepare makes so many transactions of one client.
func prepare(c Config, run, client uint64, count int) []history.Transaction {
	h := newChooser(&c, newFormula(c.Seed, c.Records, c.shape()), run, client)
	var list []history.Transaction
	for range count {
		var tx history.Transaction
		h.Next(&tx)
		list = append(list, tx)
	}
	return list
}

// TestSeedRunAndClientDetermineChoices checks that the same client of the same run makes the same choices. Another
// client, run or seed makes other choices.
func TestSeedRunAndClientDetermineChoices(t *testing.T) {
	for _, distribution := range []string{Uniform, Zipfian, Latest} {
		c := mixed()
		c.Distribution = distribution
		one := prepare(c, 1, 0, 500)
		if !reflect.DeepEqual(one, prepare(c, 1, 0, 500)) {
			t.Errorf("%s: the same client chose otherwise", distribution)
		}
		other := c
		other.Seed = 8
		for name, list := range map[string][]history.Transaction{
			"client": prepare(c, 1, 1, 500), "run": prepare(c, 2, 0, 500), "seed": prepare(other, 1, 0, 500),
		} {
			same := 0
			for i := range list {
				if list[i].Kind == one[i].Kind && list[i].Ops[0].Object == one[i].Ops[0].Object {
					same++
				}
			}
			if same > 50 {
				t.Errorf("%s: another %s made %d of 500 choices alike", distribution, name, same)
			}
		}
	}
}

// TestTransactionKindsFollowTheirShares checks that each kind comes as often as requested, and has its operation.
func TestTransactionKindsFollowTheirShares(t *testing.T) {
	c := mixed()
	const count = 50_000
	seen := map[history.Kind]int{}
	for _, tx := range prepare(c, 1, 0, count) {
		seen[tx.Kind]++
		op := tx.Ops[0]
		bounds := map[history.Kind][2]int64{
			get: {0, 0}, scan: {0, 0}, put: {64, 200}, insert: {64, 200}, modify: {64, 200},
		}[tx.Kind]
		if len(tx.Ops) != 1 || op.Write == tx.Kind.ReadOnly() || op.Amount < bounds[0] || op.Amount > bounds[1] ||
			(tx.Kind == scan) != (tx.Limit >= 1) || tx.Limit > 10 {
			t.Fatalf("%v has the operations %+v", tx.Kind, tx.Ops)
		}
		if loaded := op.Object < c.Records; loaded == (tx.Kind == insert) {
			t.Fatalf("%v is on record %d of %d that were loaded", tx.Kind, op.Object, c.Records)
		}
	}
	for kind, share := range map[history.Kind]float64{
		get: c.Reads, put: c.Updates, insert: c.Inserts, scan: c.Scans, modify: c.Modifies,
	} {
		if got := float64(seen[kind]) / count; got < share-0.01 || got > share+0.01 {
			t.Errorf("the share of %v is %.3f, not %.3f", kind, got, share)
		}
	}
}

// TestMixOfOneKindHasNoOther checks that a mix of one kind has no other kind, whatever rounding does.
func TestMixOfOneKindHasNoOther(t *testing.T) {
	for kind, c := range map[history.Kind]Mix{
		get: {Reads: 1}, put: {Updates: 1}, insert: {Inserts: 1}, scan: {Scans: 1}, modify: {Modifies: 1},
	} {
		whole := mixed()
		whole.Reads, whole.Updates, whole.Inserts, whole.Scans, whole.Modifies = c.Reads, c.Updates, c.Inserts, c.Scans, c.Modifies
		for _, tx := range prepare(whole, 1, 0, 1000) {
			if tx.Kind != kind {
				t.Fatalf("a mix of %v alone has %v", kind, tx.Kind)
			}
		}
	}
}

// TestInsertsNeverShareARecord checks that no two inserts of any clients and runs have the same record.
func TestInsertsNeverShareARecord(t *testing.T) {
	c := mixed()
	seen := map[uint64]bool{}
	for run := range uint64(3) {
		for client := range uint64(c.Clients()) {
			for _, tx := range prepare(c, run+1, client, 2000) {
				if tx.Kind == insert {
					if n := tx.Ops[0].Object; seen[n] {
						t.Fatalf("record %d is inserted twice", n)
					} else {
						seen[n] = true
					}
				}
			}
		}
	}
	if len(seen) < 1000 {
		t.Errorf("only %d inserts", len(seen))
	}
}

// TestDistributionsPreferTheirRecords checks that zipfian prefers a few scattered records, and that latest prefers
// the client's last inserts.
func TestDistributionsPreferTheirRecords(t *testing.T) {
	counts := func(distribution string) map[uint64]int {
		c := mixed()
		c.Distribution = distribution
		seen := map[uint64]int{}
		for _, tx := range prepare(c, 1, 0, 20_000) {
			if tx.Kind == get {
				seen[tx.Ops[0].Object]++
			}
		}
		return seen
	}
	most := func(seen map[uint64]int) (n uint64, times int) {
		for record, count := range seen {
			if count > times {
				n, times = record, count
			}
		}
		return n, times
	}
	if _, times := most(counts(Uniform)); times > 40 { // 8 are expected
		t.Errorf("uniform chose one record %d times of 8,000", times)
	}
	if _, times := most(counts(Zipfian)); times < 800 { // 13 % are expected
		t.Errorf("zipfian chose its most popular record %d times of 8,000", times)
	}
	inserted := 0
	for n, times := range counts(Latest) {
		if n >= MaxRecords {
			inserted += times
		}
	}
	if inserted < 4000 {
		t.Errorf("latest chose records that were inserted %d times of 8,000", inserted)
	}
}

func TestInvalidConfigIsRefused(t *testing.T) {
	for want, bend := range map[string]func(c *Config){
		"clients is 0":         func(c *Config) { c.Connections = 0 },
		"in-flight 200000":     func(c *Config) { c.InFlight = 200_000 },
		"read-share is 1.5":    func(c *Config) { c.Reads = 1.5 },
		"0.9 together":         func(c *Config) { c.Reads = 0.3 },
		"scan-length is 0":     func(c *Config) { c.ScanLength = 0 },
		"zipf-exponent is 0":   func(c *Config) { c.Distribution, c.ZipfExponent = Zipfian, 0 },
		`"pareto"`:             func(c *Config) { c.Distribution = "pareto" },
		"records is":           func(c *Config) { c.Records = MaxRecords + 1 },
		"key-size is 15":       func(c *Config) { c.KeySize = 15 },
		"value-size is 50: it": func(c *Config) { c.ValueLow, c.ValueHigh = 50, 64 },
	} {
		c := mixed()
		checked := func() error { return errors.Join(setting.Check(c.Settings()), c.check(db.Limits{})) }
		if err := checked(); err != nil {
			t.Fatal(err)
		}
		bend(&c)
		if err := checked(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	c := mixed()
	for _, s := range c.Settings() {
		if s.Name == "value-size" && s.Set("90..64") == nil {
			t.Error("a range of sizes that goes down is taken")
		}
	}
}

// TestPrepareAllocatesNothing checks that choosing and preparing a transaction allocates nothing.
func TestPrepareAllocatesNothing(t *testing.T) {
	for _, distribution := range []string{Uniform, Zipfian, Latest} {
		c := mixed()
		c.Distribution = distribution
		h := newChooser(&c, newFormula(c.Seed, c.Records, c.shape()), 1, 0)
		tx := history.Transaction{Ops: slices.Grow([]history.Op(nil), 1)}
		if n := testing.AllocsPerRun(1000, func() { h.Next(&tx) }); n != 0 {
			t.Errorf("%s: Next allocates %v times", distribution, n)
		}
	}
}

package dbtest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cli"
	voltdbcluster "stroppy/internal/cluster/voltdb"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/report"
)

// stroppy runs the program in this process.
func stroppy(args ...string) (code int, stdout, stderr string) {
	var out, complaints bytes.Buffer
	var environ []string
	if jars := os.Getenv(voltdbcluster.Variable); jars != "" {
		environ = append(environ, voltdbcluster.Variable+"="+jars)
	}
	code = cli.Main(args, environ, strings.NewReader(""), &out, &complaints)
	return code, out.String(), complaints.String()
}

// driving is a run of the program that continues while a test changes its data.
type driving struct {
	dir            string
	ended          chan struct{}
	code           int
	stdout, stderr string
}

// drive loads a small bank and starts a run of six seconds.
func drive(t *testing.T, url string, args ...string) *driving {
	t.Helper()
	if code, _, stderr := stroppy("pop", "--db", url, "--accounts", "200", "--seed", "7"); code != 0 {
		t.Fatalf("pop ended with %d: %s", code, stderr)
	}
	d := &driving{dir: runDir(t), ended: make(chan struct{})}
	args = append([]string{"run", "--no-load", "--json", "--db", url, "--out", d.dir,
		"--clients", "4", "--duration", "6s", "--rate", "150", "--audits", "10"}, args...)
	go func() {
		defer close(d.ended)
		d.code, d.stdout, d.stderr = stroppy(args...)
	}()
	t.Cleanup(func() { <-d.ended })
	return d
}

// until waits until far returns true.
func (d *driving) until(t *testing.T, far func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		select {
		case <-d.ended:
			t.Fatalf("the run ended with %d before the test changed the data: %s", d.code, d.stderr)
		default:
		}
		if far() {
			return
		}
	}
	t.Fatal("the run did not make the expected progress in time")
}

// result waits for the end of the run and returns its result.
func (d *driving) result(t *testing.T, code int) *report.Result {
	t.Helper()
	<-d.ended
	r, err := report.Parse([]byte(d.stdout))
	if err != nil || d.code != code {
		t.Fatalf("the run ended with exit code %d, want %d: %v\n%s\n%s", d.code, code, err, d.stderr, d.stdout)
	}
	return r
}

// checkNamed returns the check of that name.
func checkNamed(t *testing.T, r *report.Result, name string) report.Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no check %s in %+v", name, r.Checks)
	}
	return r.Checks[i]
}

// found is the expected result of a check.
type found struct {
	status string
	finds  []finding
}

// finding is an expected finding of a check.
type finding struct {
	kind string
	off  int64 // error of the first instance in cents; 0 accepts any error
	all  bool  // the finding names exactly the changed accounts or transfers
}

// off returns the error of the first instance of a finding in cents, if it has amounts.
func off(t *testing.T, f *report.Finding) int64 {
	t.Helper()
	data, err := json.Marshal(f.First)
	if err != nil {
		t.Fatal(err)
	}
	var first struct{ End, Load, Balance, Want int64 }
	if err := json.Unmarshal(data, &first); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return first.End - first.Load + first.Balance - first.Want
}

// wantFound compares the checks of a result with the expected ones. Names are the keys of the changed accounts or the
// ids of the changed transfers.
func wantFound(t *testing.T, r *report.Result, want map[string]found, names []string) {
	t.Helper()
	for name, w := range want {
		c := checkNamed(t, r, name)
		if c.Status != w.status {
			t.Errorf("check %s is %s, want %s: %s", name, c.Status, w.status, c.Detail)
		}
		for _, one := range w.finds {
			i := slices.IndexFunc(c.Findings, func(f report.Finding) bool { return f.Kind == one.kind })
			if i < 0 {
				t.Errorf("%s has no finding %s: %s", name, one.kind, c.Detail)
				continue
			}
			f := &c.Findings[i]
			if got := off(t, f); one.off != 0 && got != one.off {
				t.Errorf("%s: the error of %s is %d, want %d: %s", name, one.kind, got, one.off, f.Text)
			}
			if one.all && !namesAll(f, names) {
				t.Errorf("%s: want the names %q; the finding has %d, with %q and %q: %s", name, names, f.Count, f.Objects, f.Transactions, f.Text)
			}
		}
	}
}

// namesAll reports whether a finding names each of the accounts or transfers and no other.
func namesAll(f *report.Finding, names []string) bool {
	for _, name := range names {
		account := func(object string) bool { key, _, _ := strings.Cut(object, " "); return key == name }
		if !slices.ContainsFunc(f.Objects, account) && !slices.Contains(f.Transactions, name) {
			return false
		}
	}
	return f.Count == len(names)
}

// sound is the result of a check that is valid.
var sound = found{status: "valid"}

const (
	anAccount = "(SELECT bic, ban FROM stroppy_account ORDER BY bic, ban LIMIT 1)"
	itsName   = "bic || '/' || lpad(ban::text, 11, '0')"
)

// interferences holds changes that another program can make to a bank in PostgreSQL. Each prints the changed accounts,
// or the number of one transfer on every line.
var interferences = []struct {
	name, sql string
	transfers bool
	want      map[string]found
}{
	{
		name: "money given", sql: "UPDATE stroppy_account SET balance = balance + 100 WHERE (bic, ban) = " + anAccount + " RETURNING " + itsName,
		want: map[string]found{
			"total":  {"invalid", []finding{{"sum", 100_00, false}}},
			"ledger": {"invalid", []finding{{"books", 100_00, true}}},
			"audits": {"invalid", []finding{{"audit-sum", 0, false}}}, "durable": sound, "no-ghost": sound, "non-negative": sound, "exactly-once": sound,
		},
	}, {
		name: "money moved", sql: `LOCK TABLE stroppy_account IN EXCLUSIVE MODE;
			UPDATE stroppy_account a SET balance = a.balance + d.delta FROM (
				SELECT bic, ban, CASE row_number() OVER (ORDER BY bic, ban) WHEN 1 THEN 100.00 ELSE -100.00 END AS delta
				FROM (SELECT bic, ban FROM stroppy_account WHERE balance >= 5000 ORDER BY bic, ban LIMIT 2) two
			) d WHERE a.bic = d.bic AND a.ban = d.ban RETURNING a.bic || '/' || lpad(a.ban::text, 11, '0')`,
		want: map[string]found{
			"total":  {"valid", nil},
			"ledger": {"invalid", []finding{{"books", 0, true}}},
			"audits": sound, "durable": sound, "no-ghost": sound, "exactly-once": sound,
		},
	}, {
		name: "transfer removed", transfers: true,
		sql: "DELETE FROM stroppy_ledger WHERE transfer = (SELECT min(transfer) FROM stroppy_ledger) RETURNING transfer",
		want: map[string]found{
			"total":   sound,
			"durable": {"invalid", []finding{{"lost", 0, true}}},
			"ledger":  {"invalid", []finding{{"books", 0, false}}}, "no-ghost": sound, "exactly-once": sound,
		},
	}, {
		name: "leg removed", transfers: true,
		sql: "DELETE FROM stroppy_ledger WHERE leg = 1 AND transfer = (SELECT min(transfer) FROM stroppy_ledger) RETURNING transfer",
		want: map[string]found{
			"total":   sound,
			"durable": {"invalid", []finding{{"altered", 0, true}}},
			"ledger":  {"invalid", []finding{{"books", 0, false}}}, "no-ghost": sound,
		},
	}, {
		name: "leg rewritten", transfers: true,
		sql: "UPDATE stroppy_ledger SET amount = amount + 1 WHERE leg = 0 AND transfer = (SELECT min(transfer) FROM stroppy_ledger) RETURNING transfer",
		want: map[string]found{
			"total":   sound,
			"durable": {"invalid", []finding{{"altered", 0, true}}},
			"ledger":  {"invalid", []finding{{"books", -1_00, false}}}, "no-ghost": sound,
		},
	}, {
		name: "transfer forged", transfers: true,
		sql: `INSERT INTO stroppy_ledger (transfer, leg, bic, ban, amount, version)
			SELECT (SELECT max(transfer) + 1000000 FROM stroppy_ledger), 0, bic, ban, 0, 1
			FROM stroppy_account ORDER BY bic, ban LIMIT 1 RETURNING transfer`,
		want: map[string]found{
			"total":    sound,
			"no-ghost": {"invalid", []finding{{"never-sent", 0, true}}}, "durable": sound,
		},
	},
}

// TestChecksNameChangedRowsOnPostgres changes rows of the bank during a run. The checks must name the accounts and
// transfers.
func TestChecksNameChangedRowsOnPostgres(t *testing.T) {
	t.Parallel()
	urls := make([]string, len(interferences))
	for i := range urls {
		urls[i] = newPostgresDatabase(t)
	}
	for i, test := range interferences {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := drive(t, urls[i])
			d.until(t, func() bool { return psql(t, urls[i], "SELECT count(*) > 50 FROM stroppy_ledger") == "t\n" })
			names := strings.Fields(psql(t, urls[i], test.sql))
			if len(names) == 0 {
				t.Fatal("nothing was changed")
			}
			r := d.result(t, 1)
			if r.Verdict != "invalid" {
				t.Errorf("the verdict is %s: %s", r.Verdict, r.Reason)
			}
			if test.transfers {
				n, err := strconv.ParseUint(names[0], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				names = []string{history.ID(n).String()}
			}
			wantFound(t, r, test.want, names)
		})
	}
}

// TestChecksNameChangedKeysOnEtcd changes keys of the bank during a run. The checks must name the accounts and
// transfers.
func TestChecksNameChangedKeysOnEtcd(t *testing.T) {
	t.Parallel()
	const accounts, ledger = "stroppy_account/", "stroppy_ledger/"
	for _, test := range []struct {
		name, prefix string
		change       func(value []byte) []byte // nil: the key is deleted
		want         map[string]found
	}{
		{"money given", accounts, func(value []byte) []byte {
			balance := int64(binary.BigEndian.Uint64(value)) + 100_00
			return binary.BigEndian.AppendUint64(nil, uint64(balance))
		}, map[string]found{
			"total":  {"invalid", []finding{{"sum", 100_00, false}}},
			"ledger": {"invalid", []finding{{"books", 100_00, true}}}, "durable": sound, "no-ghost": sound, "exactly-once": sound,
		}},
		{"transfer removed", ledger, nil, map[string]found{
			"total":   sound,
			"durable": {"invalid", []finding{{"lost", 0, true}}},
			"ledger":  {"invalid", []finding{{"books", 0, false}}}, "no-ghost": sound,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			useEtcd(t)
			s, err := openEtcd(t).KVSession(t.Context(), db.SessionOptions{Mode: db.Pipelined})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			d := drive(t, shared.etcd.URL())
			d.until(t, func() bool { return len(keysOf(t, s, ledger)) > 50 })
			key := keysOf(t, s, test.prefix)[0]
			rewrite(t, s, key, test.change)
			name := strings.TrimPrefix(key, test.prefix)
			if test.prefix == ledger {
				id, err := hex.DecodeString(name)
				if err != nil {
					t.Fatal(err)
				}
				name = history.ID(binary.BigEndian.Uint64(id)).String()
			}
			wantFound(t, d.result(t, 1), test.want, []string{name})
		})
	}
}

// keysOf returns the keys with a prefix that ends with a slash.
func keysOf(t *testing.T, s db.KVSession, prefix string) (keys []string) {
	t.Helper()
	from, to := []byte(prefix), []byte(prefix)
	to[len(to)-1]++
	err := s.Scan(t.Context(), from, to, func(key, _ []byte) error {
		keys = append(keys, string(key))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// rewrite changes the first bytes of a key's value, or deletes the key if change is nil.
func rewrite(t *testing.T, s db.KVSession, key string, change func(value []byte) []byte) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; {
		err := func() error {
			if err := s.Begin(t.Context(), false); err != nil {
				return err
			}
			var entry [1]db.Entry
			if err := s.Read(t.Context(), [][]byte{[]byte(key)}, entry[:]); err != nil {
				return err
			}
			if !entry[0].Found {
				s.Rollback()
				return fmt.Errorf("there is no key %s", key)
			}
			if change == nil {
				s.Delete([]byte(key))
			} else {
				value := slices.Clone(entry[0].Value)
				copy(value, change(value))
				s.Set([]byte(key), value)
			}
			return s.Commit(t.Context())
		}()
		var e *db.Error
		switch {
		case err == nil:
			return
		case errors.As(err, &e) && e.Class == db.Aborted && time.Now().Before(deadline): // a transfer wrote the key first
		default:
			t.Fatal(err)
		}
	}
}

// TestReportNamesLostUpdates checks the report on read-modify-write transfers at read committed. It must name both
// transactions, the account and the versions.
func TestReportNamesLostUpdates(t *testing.T) {
	t.Parallel()
	url, dir := newPostgresDatabase(t), runDir(t)
	code, stdout, stderr := stroppy("run", "--db", url, "--json", "--out", dir, "--seed", "7", "--update", "rmw",
		"--isolation", "read committed", "--accounts", "20", "--clients", "8", "--count", "3000")
	r, err := report.Parse([]byte(stdout))
	if err != nil || code != 1 || r.Claim.Level != "read-committed" {
		t.Fatalf("ended with %d, %v: %s", code, err, stderr)
	}
	// Read committed does not forbid lost updates, but the ledger check does.
	ledger := checkNamed(t, r, "ledger")
	if ledger.Status != "invalid" || !ledger.Required || len(ledger.Witness) < 2 {
		t.Errorf("ledger: %+v", ledger)
	}
	if k := r.Cause; k == nil || k.Kind != "lost-updates" || k.Culprit != "application" || k.Count == 0 || k.Amount == nil {
		t.Errorf("the cause is %+v", k)
	} else if !slices.ContainsFunc(k.Explains, func(c report.Consequence) bool { return c.Check == "ledger" && c.Explained }) {
		t.Errorf("the lost updates do not explain the ledger: %+v", k.Explains)
	}
	if !strings.Contains(lastLine(stderr), r.Reason) {
		t.Errorf("the reason is %q", lastLine(stderr))
	}

	// Check the same recording against a stronger claim.
	code, stdout, _ = stroppy("check", dir, "--expect", "serializable", "--json")
	if r, err = report.Parse([]byte(stdout)); err != nil || code != 1 {
		t.Fatalf("check ended with %d, %v", code, err)
	}
	c := checkNamed(t, r, "serializable")
	i := slices.IndexFunc(c.Findings, func(f report.Finding) bool { return f.Anomaly == "lost update (P4)" })
	if c.Status != "invalid" || !c.Required || i < 0 {
		t.Fatalf("serializable: %+v", c)
	}
	if f := c.Findings[i]; f.Kind != "lost-update" || f.Count == 0 || len(f.Objects) == 0 || len(f.Transactions) < 2 || f.Forbidden != "snapshot-isolation" {
		t.Errorf("the finding is %+v", f)
	}
	if len(c.Where) == 0 || c.Where[0].File != "history/transactions.bin" || c.Where[0].Offset == 0 {
		t.Errorf("the report does not locate the transactions in the recording: %+v", c.Where)
	}
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// TestSerializableIsValidUnderContention checks read-modify-write and atomic transfers at PostgreSQL's serializable
// level while many transactions conflict.
func TestSerializableIsValidUnderContention(t *testing.T) {
	t.Parallel()
	for _, update := range []string{"atomic", "rmw"} {
		t.Run(update, func(t *testing.T) {
			code, r, stderr := program(t, "bank", "--db", newPostgresDatabase(t),
				"--isolation", "serializable", "--update", update, "--zipfian", "--accounts", "12", "--clients", "16",
				"--count", "1500", "--audits", "20", "--retries", "100")
			if code != 0 || r.Verdict != "valid" {
				t.Fatalf("exit code %d, verdict %q: %s", code, r.Verdict, stderr)
			}
			c := checkNamed(t, &r.Result, "serializable")
			if r.Claim.Level != "serializable" || c.Status != "valid" || !c.Required {
				t.Errorf("the claim is %+v, serializable %+v", r.Claim, c)
			}
			if r.Drive.Conflicts == 0 || r.Drive.Committed < 1000 {
				t.Errorf("no contention: %d committed, %d conflicts", r.Drive.Committed, r.Drive.Conflicts)
			}
		})
	}
}

package dbtest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cli"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/report"
)

// stroppy runs the whole program in this process.
func stroppy(args ...string) (code int, stdout, stderr string) {
	var out, complaints bytes.Buffer
	code = cli.Main(args, nil, strings.NewReader(""), &out, &complaints)
	return code, out.String(), complaints.String()
}

// driving is a run of the whole program that goes on while a test interferes.
type driving struct {
	dir            string
	ended          chan struct{}
	code           int
	stdout, stderr string
}

// drive loads a small bank, and starts a run over it that lasts long enough to
// be interfered with.
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

// until returns once the run has come so far.
func (d *driving) until(t *testing.T, far func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		select {
		case <-d.ended:
			t.Fatalf("the run ended with %d before anybody interfered: %s", d.code, d.stderr)
		default:
		}
		if far() {
			return
		}
	}
	t.Fatal("the run has not come far enough")
}

// result waits for the end of the run.
func (d *driving) result(t *testing.T, code int) *report.Result {
	t.Helper()
	<-d.ended
	r, err := report.Parse([]byte(d.stdout))
	if err != nil || d.code != code {
		t.Fatalf("the run ended with %d, not %d: %v\n%s\n%s", d.code, code, err, d.stderr, d.stdout)
	}
	return r
}

func checkNamed(t *testing.T, r *report.Result, name string) report.Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no check %s in %+v", name, r.Checks)
	}
	return r.Checks[i]
}

// found is what a check says of an interference.
type found struct {
	status string
	says   []string // texts of its detail; ACCOUNT and TRANSFER stand for those interfered with
}

// wantFound compares the checks of a result with what was done.
func wantFound(t *testing.T, r *report.Result, want map[string]found, replace *strings.Replacer) {
	t.Helper()
	for name, f := range want {
		c := checkNamed(t, r, name)
		if c.Status != f.status {
			t.Errorf("%s is %s, not %s: %s", name, c.Status, f.status, c.Detail)
		}
		for _, text := range f.says {
			if text = replace.Replace(text); !strings.Contains(c.Detail, text) {
				t.Errorf("%s does not say %q: %s", name, text, c.Detail)
			}
		}
	}
}

var sound = found{status: "valid"}

const (
	anAccount = "(SELECT bic, ban FROM stroppy_account ORDER BY bic, ban LIMIT 1)"
	itsName   = "bic || '/' || lpad(ban::text, 11, '0')"
)

// interferences are what a hand can do to a bank in PostgreSQL. Each prints
// accounts, or the number of one transfer on every line.
var interferences = []struct {
	name, sql string
	transfers bool
	want      map[string]found
}{
	{
		name: "money given", sql: "UPDATE stroppy_account SET balance = balance + 100 WHERE (bic, ban) = " + anAccount + " RETURNING " + itsName,
		want: map[string]found{
			"total":  {"invalid", []string{"100.00 was made"}},
			"ledger": {"invalid", []string{"Account ACCOUNT (", "(100.00 off)"}},
			"audits": {"invalid", []string{"saw another total"}}, "durable": sound, "no-ghost": sound, "non-negative": sound, "exactly-once": sound,
		},
	}, {
		name: "money moved", sql: `LOCK TABLE stroppy_account IN EXCLUSIVE MODE;
			UPDATE stroppy_account a SET balance = a.balance + d.delta FROM (
				SELECT bic, ban, CASE row_number() OVER (ORDER BY bic, ban) WHEN 1 THEN 100.00 ELSE -100.00 END AS delta
				FROM (SELECT bic, ban FROM stroppy_account WHERE balance >= 5000 ORDER BY bic, ban LIMIT 2) two
			) d WHERE a.bic = d.bic AND a.ban = d.ban RETURNING a.bic || '/' || lpad(a.ban::text, 11, '0')`,
		want: map[string]found{
			"total":  {"valid", nil},
			"ledger": {"invalid", []string{"Account ACCOUNT (", "(100.00 off)", "(-100.00 off)"}},
			"audits": sound, "durable": sound, "no-ghost": sound, "exactly-once": sound,
		},
	}, {
		name: "transfer removed", transfers: true,
		sql: "DELETE FROM stroppy_ledger WHERE transfer = (SELECT min(transfer) FROM stroppy_ledger) RETURNING transfer",
		want: map[string]found{
			"total":   sound,
			"durable": {"invalid", []string{"1 transfer acknowledged and lost: TRANSFER."}},
			"ledger":  {"invalid", []string{"ledger leg"}}, "no-ghost": sound, "exactly-once": sound,
		},
	}, {
		name: "leg removed", transfers: true,
		sql: "DELETE FROM stroppy_ledger WHERE leg = 1 AND transfer = (SELECT min(transfer) FROM stroppy_ledger) RETURNING transfer",
		want: map[string]found{
			"total":   sound,
			"durable": {"invalid", []string{"1 transfer whose legs in the ledger are not those that were acknowledged: TRANSFER."}},
			"ledger":  {"invalid", []string{"ledger leg"}}, "no-ghost": sound,
		},
	}, {
		name: "leg rewritten", transfers: true,
		sql: "UPDATE stroppy_ledger SET amount = amount + 1 WHERE leg = 0 AND transfer = (SELECT min(transfer) FROM stroppy_ledger) RETURNING transfer",
		want: map[string]found{
			"total":   sound,
			"durable": {"invalid", []string{"1 transfer whose legs in the ledger are not those that were acknowledged: TRANSFER."}},
			"ledger":  {"invalid", []string{"(-1.00 off)"}}, "no-ghost": sound,
		},
	}, {
		name: "transfer forged", transfers: true,
		sql: `INSERT INTO stroppy_ledger (transfer, leg, bic, ban, amount, version)
			SELECT (SELECT max(transfer) + 1000000 FROM stroppy_ledger), 0, bic, ban, 0, 1
			FROM stroppy_account ORDER BY bic, ban LIMIT 1 RETURNING transfer`,
		want: map[string]found{
			"total":    sound,
			"no-ghost": {"invalid", []string{"1 transfer in the ledger that no client ever sent: TRANSFER."}}, "durable": sound,
		},
	},
}

// TestInterferenceOnPostgres changes by hand what the bank wrote, while
// transfers go on: the books show it, by account and transfer.
func TestInterferenceOnPostgres(t *testing.T) {
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
			for _, name := range names {
				wantFound(t, r, test.want, strings.NewReplacer("ACCOUNT", name, "TRANSFER", name))
			}
		})
	}
}

// TestInterferenceOnEtcd is the same on a store of keys and values.
func TestInterferenceOnEtcd(t *testing.T) {
	t.Parallel()
	const accounts, ledger = "stroppy/account/", "stroppy/ledger/"
	for _, test := range []struct {
		name, prefix string
		change       func(value []byte) []byte // nil: the key is deleted
		want         map[string]found
	}{
		{"money given", accounts, func(value []byte) []byte {
			balance := int64(binary.BigEndian.Uint64(value)) + 100_00
			return binary.BigEndian.AppendUint64(nil, uint64(balance))
		}, map[string]found{
			"total":  {"invalid", []string{"100.00 was made"}},
			"ledger": {"invalid", []string{"Account ACCOUNT (", "(100.00 off)"}}, "durable": sound, "no-ghost": sound, "exactly-once": sound,
		}},
		{"transfer removed", ledger, nil, map[string]found{
			"total":   sound,
			"durable": {"invalid", []string{"1 transfer acknowledged and lost: TRANSFER."}},
			"ledger":  {"invalid", []string{"ledger leg"}}, "no-ghost": sound,
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
			wantFound(t, d.result(t, 1), test.want, strings.NewReplacer("ACCOUNT", name, "TRANSFER", name))
		})
	}
}

// keysOf lists the keys with a prefix that ends with a slash.
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

// rewrite changes the first bytes of a key's value, or deletes the key.
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
		case errors.As(err, &e) && e.Class == db.Aborted && time.Now().Before(deadline): // a transfer was faster
		default:
			t.Fatal(err)
		}
	}
}

// TestLostUpdatesAreNamed: what read committed lets happen to read, compute and
// write is reported by name, with both transactions, the account and the versions.
func TestLostUpdatesAreNamed(t *testing.T) {
	t.Parallel()
	url, dir := newPostgresDatabase(t), runDir(t)
	code, stdout, stderr := stroppy("run", "--db", url, "--json", "--out", dir, "--seed", "7", "--update", "rmw",
		"--isolation", "read committed", "--accounts", "20", "--clients", "8", "--count", "3000")
	r, err := report.Parse([]byte(stdout))
	if err != nil || code != 1 || r.Claim.Level != "read-committed" {
		t.Fatalf("ended with %d, %v: %s", code, err, stderr)
	}
	// Read committed does not forbid a lost update by its name; the books do.
	reported := regexp.MustCompile(`Lost update: transfers 1-\d+-\d+ and 1-\d+-\d+ both made version \d+ of account [A-Z0-9]{8}/\d{11} \(account \d+\)\.`)
	ledger := checkNamed(t, r, "ledger")
	if ledger.Status != "invalid" || !ledger.Required || !reported.MatchString(ledger.Detail) || len(ledger.Witness) < 2 {
		t.Errorf("ledger: %+v", ledger)
	}
	if !strings.Contains(lastLine(stderr), "ledger") {
		t.Errorf("the reason is %q", lastLine(stderr))
	}

	// The same recording, checked against more.
	code, stdout, _ = stroppy("check", dir, "--expect", "serializable", "--json")
	if r, err = report.Parse([]byte(stdout)); err != nil || code != 1 {
		t.Fatalf("check ended with %d, %v", code, err)
	}
	c := checkNamed(t, r, "serializable")
	i := slices.IndexFunc(c.Anomalies, func(a report.Anomaly) bool { return a.Name == "lost update (P4)" })
	if c.Status != "invalid" || !c.Required || i < 0 {
		t.Fatalf("serializable: %+v", c)
	}
	reported = regexp.MustCompile(`1-\d+-\d+ and .*1-\d+-\d+ both read version \d+ of account [A-Z0-9]{8}/\d{11} \(account \d+\) and both made version \d+ of it`)
	a := c.Anomalies[i]
	if !reported.MatchString(a.Detail) || a.Count == 0 || len(a.Witness) < 2 || a.Forbidden != "snapshot-isolation" {
		t.Errorf("the anomaly is %+v", a)
	}
	if len(c.Where) == 0 || c.Where[0].File != "history/transactions.bin" || c.Where[0].Offset == 0 {
		t.Errorf("it is not reported where the transactions are recorded: %+v", c.Where)
	}
}

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// TestSerializableUnderContention: at PostgreSQL's serializable the same style is
// right, however much the transactions meet.
func TestSerializableUnderContention(t *testing.T) {
	t.Parallel()
	for _, update := range []string{"atomic", "rmw"} {
		t.Run(update, func(t *testing.T) {
			code, stdout, stderr := stroppy("run", "--db", newPostgresDatabase(t), "--json", "--out", runDir(t),
				"--isolation", "serializable", "--update", update, "--zipfian", "--accounts", "12", "--clients", "16",
				"--count", "1500", "--audits", "20", "--retries", "100")
			r, err := report.Parse([]byte(stdout))
			if err != nil || code != 0 || r.Verdict != "valid" {
				t.Fatalf("ended with %d, %v: %s\n%s", code, err, stderr, stdout)
			}
			c := checkNamed(t, r, "serializable")
			if r.Claim.Level != "serializable" || c.Status != "valid" || !c.Required {
				t.Errorf("the claim is %+v, serializable %+v", r.Claim, c)
			}
			if r.Drive.Conflicts == 0 || r.Drive.Committed < 1000 {
				t.Errorf("no contention: %d committed, %d conflicts", r.Drive.Committed, r.Drive.Conflicts)
			}
		})
	}
}

package infinisql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// TestRequestBytesMatchServersOwnClient compares requests with bytes that the server accepted. The server's own
// client (scripts/infinisql.plib) encodes them in the same way.
func TestRequestBytesMatchServersOwnClient(t *testing.T) {
	for want, args := range map[string][]string{
		"\x00\x00\x00\x00\x00\x00\x00\x0c\x0acreateuser\x90":      nil, // a value that is not a list is never sent, because it ends the server
		"\x00\x00\x00\x00\x00\x00\x00\x0e\x0acreateuser\x91\xa1t": {"t"},
	} {
		if got, err := appendRequest(nil, "createuser", args); err != nil || string(got) != want {
			t.Errorf("%q gives %q, %v, want %q", args, got, err, want)
		}
	}
}

// answer returns an answer in the form of the server.
func answer(length, status uint64, packed string) []byte {
	return append(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, length), status), packed...)
}

func TestDamagedAnswersAreRefused(t *testing.T) {
	if said, err := readAnswer(bytes.NewReader(answer(22, 0, "\x92\xa11\xa2ab"))); err != nil || !slices.Equal(said, []string{"1", "ab"}) {
		t.Errorf("reads %q, %v", said, err)
	}
	for name, c := range map[string]struct {
		given []byte
		want  error
	}{
		"refused":               {answer(17, 1, "\x90"), errRefused},
		"short":                 {answer(17, 0, "\x90")[:10], io.ErrUnexpectedEOF},
		"cut":                   {answer(30, 0, "\x90"), io.ErrUnexpectedEOF},
		"too long":              {answer(1<<40, 0, "\x90"), errNoAdmin},
		"another":               {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), errNoAdmin},
		"shorter than a header": {answer(3, 0, ""), errNoAdmin},
	} {
		if _, err := readAnswer(bytes.NewReader(c.given)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := readAnswer(bytes.NewReader(answer(17, 0, "\xc0\x01"))); err != nil {
		t.Errorf("nothing for a list: %v", err)
	}
	if _, err := readAnswer(bytes.NewReader(answer(17, 0, "\x05"))); err == nil {
		t.Error("a number is taken for a list")
	}
}

// FuzzAnswer checks that any answer of a server is read or refused in bounded memory.
func FuzzAnswer(f *testing.F) {
	f.Add(answer(22, 0, "\x92\xa11\xa2ab"))
	f.Add(answer(17, 1, "\x90"))
	f.Add(answer(21, 0, "\xdd\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, given []byte) {
		said, err := readAnswer(bytes.NewReader(given))
		total := 0
		for _, text := range said {
			total += len(text)
		}
		if err == nil && total > len(given) {
			t.Errorf("%d bytes of texts came from %d", total, len(given))
		}
	})
}

// TestRecordsBecomeSupportedSQL compares the statements for records with SQL that works on the server.
func TestRecordsBecomeSupportedSQL(t *testing.T) {
	counter := &db.Collection{Name: "t", ID: db.Integer, Fields: []db.Field{{Name: "balance", Type: db.Integer}}}
	facts := &db.Collection{Name: "f", ID: db.Text, Fields: []db.Field{{Name: "value", Type: db.Text}}}
	ledger := &db.Collection{Name: "l", ID: db.Integer, List: "legs", Items: []db.Field{{Name: "object", Type: db.Text}, {Name: "amount", Type: db.Integer}}}
	entry := []db.Value{{Int: 7}, {Text: []byte("a1")}, {Int: -3}}
	text := func(text []byte, err error) string {
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for got, want := range map[string]string{
		text(appendUpdate(nil, &db.Update{Collection: counter, Add: []int{1}}, db.Value{Int: 3}, db.Value{Int: -5})): "UPDATE t SET balance = balance + -5 WHERE id = 3",
		text(appendUpdate(nil, &db.Update{Collection: facts, Set: []int{1}}, entry[1], entry[1])):                    "UPDATE f SET content = 'a1' WHERE id = 'a1'",
		text(appendSelect(nil, facts), nil):                              "SELECT id, content FROM f",
		text(appendInsert(nil, counter, []db.Value{{}, {Int: 1 << 60}})): "INSERT INTO t VALUES (0, 1152921504606846976)",
		text(appendInsert(nil, ledger, entry)):                           "INSERT INTO l VALUES (7, 'AAJhMQU=')",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if list, err := appendList(entry[:1:1], ledger, []byte("AAJhMQU=")); err != nil || len(list) != 3 || string(list[1].Text) != "a1" || list[2].Int != -3 {
		t.Errorf("reads the list %+v, %v", list, err)
	}
	for _, wrong := range []string{"it's", "\\", "\x00", "ä", strings.Repeat("x", 33)} {
		if _, err := appendInsert(nil, facts, []db.Value{{}, {Text: []byte(wrong)}}); db.ClassOf(err) != db.Fatal || err == nil {
			t.Errorf("the text %q: %v", wrong, err)
		}
	}
	for _, u := range []*db.Update{{Collection: counter, AtLeast: 1, Add: []int{1}}, {Collection: counter, Add: []int{1}, Set: []int{1}}} {
		if _, err := appendUpdate(nil, u, db.Value{}, db.Value{}); db.ClassOf(err) != db.Fatal || err == nil {
			t.Errorf("the update %+v: %v", u, err)
		}
	}
}

func TestRowsAreParsedOrRefused(t *testing.T) {
	columns := []column{{"id", db.Integer, 0}, {"word", db.Text, 9}}
	row, err := appendRow(nil, columns, [][]byte{[]byte("-7"), []byte("run   ")})
	if err != nil || row[0].Int != -7 || string(row[1].Text) != "run" {
		t.Errorf("reads %+v, %v", row, err)
	}
	if row, err := appendRow(nil, columns, [][]byte{nil, nil}); err != nil || !row[0].Null || !row[1].Null {
		t.Errorf("reads %+v, %v", row, err)
	}
	for _, wrong := range [][][]byte{{[]byte("1")}, {[]byte("1.5"), nil}, {[]byte("9223372036854775808"), nil}} {
		if row, err := appendRow(nil, columns, wrong); err == nil {
			t.Errorf("%q is read as %+v", wrong, row)
		}
	}
	for tag, want := range map[string]int{"UPDATE 1": 1, "INSERT 0 3": 3, "COMMIT": 0, "": 0} {
		if got := affected(tag); got != want {
			t.Errorf("%q: %d", tag, got)
		}
	}
}

func TestErrorCodesAreClassified(t *testing.T) {
	for code, want := range map[string]db.Class{"55P03": db.Aborted, "42000": db.Aborted, "42601": db.Fatal, "28P01": db.Unavailable, "XX000": db.Fatal} {
		if got := classify(code, wire.Before); got != want {
			t.Errorf("%s is %v", code, got)
		}
	}
	if got := classify("XX000", wire.Committing); got != db.Unknown {
		t.Errorf("a code that nobody knows is %v in a procedure", got)
	}
}

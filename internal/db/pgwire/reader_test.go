package pgwire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jackc/pgx/v5/pgproto3"
)

// answers returns a stream with all kinds of messages and rows of many lengths, and the needed messages of
// it.
func answers(t testing.TB) (messages []pgproto3.BackendMessage, stream []byte) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	messages = []pgproto3.BackendMessage{
		&pgproto3.ParseComplete{}, &pgproto3.ParameterDescription{ParameterOIDs: []uint32{20, 1700}},
		&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("version"), DataTypeOID: 20, DataTypeSize: 8, Format: 1}}},
		&pgproto3.NoData{}, &pgproto3.BindComplete{}, &pgproto3.EmptyQueryResponse{},
		&pgproto3.ErrorResponse{Severity: "ERROR", Code: "23514", Message: "refused"},
		&pgproto3.NoticeResponse{Severity: "WARNING", Code: "01000", Message: "look"},
		&pgproto3.ParameterStatus{Name: "TimeZone", Value: "UTC"},
		&pgproto3.NotificationResponse{PID: 7, Channel: "c", Payload: "p"},
	}
	for range 300 {
		row := &pgproto3.DataRow{}
		for range rng.IntN(40) {
			value := bytes.Repeat([]byte("v"), rng.IntN(1<<rng.IntN(11)))
			if rng.IntN(9) == 0 {
				value = nil
			}
			row.Values = append(row.Values, value)
		}
		messages = append(messages, row, &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	}
	messages = append(messages, &pgproto3.DataRow{Values: [][]byte{bytes.Repeat([]byte("long"), 1<<16)}}, &pgproto3.ReadyForQuery{TxStatus: 'T'})
	for _, m := range messages {
		var err error
		if stream, err = m.Encode(stream); err != nil {
			t.Fatal(err)
		}
	}
	return slices.DeleteFunc(messages, func(m pgproto3.BackendMessage) bool {
		return strings.IndexByte(unneeded, encoded(t, m)[0]) >= 0
	}), stream
}

// TestReaderJoinsPieces checks that data in pieces of any size is read correctly, and that its end is
// reported.
func TestReaderJoinsPieces(t *testing.T) {
	messages, stream := answers(t)
	for name, source := range map[string]io.Reader{
		"at once":       bytes.NewReader(stream),
		"byte by byte":  iotest.OneByteReader(bytes.NewReader(stream)),
		"half by half":  iotest.HalfReader(bytes.NewReader(stream)),
		"with the end":  iotest.DataErrReader(bytes.NewReader(stream)),
		"in 999 pieces": io.MultiReader(pieces(stream, 999)...),
	} {
		r := &reader{source: source}
		for i, want := range messages {
			got, err := r.Receive()
			if err != nil {
				t.Fatalf("%s: message %d: %v", name, i, err)
			}
			if again, wanted := encoded(t, got), encoded(t, want); !bytes.Equal(again, wanted) || reflect.TypeOf(got) != reflect.TypeOf(want) {
				t.Fatalf("%s: message %d is %T %.80q, not %T %.80q", name, i, got, again, want, wanted)
			}
		}
		if _, err := r.Receive(); err != io.EOF {
			t.Errorf("%s: the end gives %v", name, err)
		}
	}
}

func encoded(t testing.TB, m pgproto3.BackendMessage) []byte {
	t.Helper()
	text, err := m.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func pieces(stream []byte, size int) (list []io.Reader) {
	for len(stream) > 0 {
		n := min(size, len(stream))
		list = append(list, bytes.NewReader(stream[:n]))
		stream = stream[n:]
	}
	return list
}

// TestReaderReportsDamagedMessages checks truncated data, invalid messages, and other errors of the connection.
func TestReaderReportsDamagedMessages(t *testing.T) {
	gone := errors.New("gone")
	row := encoded(t, &pgproto3.DataRow{Values: [][]byte{[]byte("value")}})
	for _, test := range []struct {
		name   string
		source io.Reader
		want   string
	}{
		{"an end in a header", bytes.NewReader(row[:3]), io.ErrUnexpectedEOF.Error()},
		{"an end in a body", bytes.NewReader(row[:9]), io.ErrUnexpectedEOF.Error()},
		{"a connection that breaks", io.MultiReader(bytes.NewReader(row[:9]), iotest.ErrReader(gone)), "gone"},
		{"a message shorter than its length", strings.NewReader("Z\x00\x00\x00\x03I"), `a message 'Z' of 3 bytes`},
		{"a message longer than any", strings.NewReader("D\xff\xff\xff\xff"), `a message 'D' of 4294967295 bytes`},
		{"an answer of COPY", strings.NewReader("G\x00\x00\x00\x07\x00\x00\x00"), `unexpected message 'G'`},
		{"a row with fewer values than it says", strings.NewReader("D\x00\x00\x00\x06\x00\x02"), "DataRow"},
		{"a row without a number of values", strings.NewReader("D\x00\x00\x00\x04"), "DataRow"},
	} {
		if _, err := (&reader{source: test.source}).Receive(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s gives %v", test.name, err)
		}
	}
}

// TestReaderKeepsBufferSmall checks that a session with short answers keeps a short buffer and allocates nothing.
func TestReaderKeepsBufferSmall(t *testing.T) {
	answer := append(encoded(t, &pgproto3.DataRow{Values: [][]byte{[]byte("value"), nil}}), encoded(t, &pgproto3.ReadyForQuery{TxStatus: 'I'})...)
	source := bytes.NewReader(nil)
	r := &reader{source: source}
	if n := testing.AllocsPerRun(1000, func() {
		source.Reset(answer)
		for range 2 {
			if _, err := r.Receive(); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 || len(r.buf) != readRoom {
		t.Errorf("%v allocations, a buffer of %d bytes", n, len(r.buf))
	}
}

// FuzzReader checks that any data gives messages or an error, and the same for the whole stream and byte by
// byte.
func FuzzReader(f *testing.F) {
	_, stream := answers(f)
	f.Add(stream[:2000])
	f.Add([]byte("Z\x00\x00\x00\x05I"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		one := &reader{source: bytes.NewReader(stream)}
		two := &reader{source: iotest.OneByteReader(bytes.NewReader(stream))}
		for {
			a, errA := one.Receive()
			b, errB := two.Receive()
			if (errA == nil) != (errB == nil) || errA == nil && !reflect.DeepEqual(a, b) {
				t.Fatalf("%v %v is not %v %v", a, errA, b, errB)
			}
			if errA != nil {
				return
			}
		}
	})
}

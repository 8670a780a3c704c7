package stats

import (
	"bytes"
	"encoding"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"stroppy/internal/history"
)

// recorders returns recorders with transactions of each outcome.
func recorders(t testing.TB, count int) (list []*Recorder) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, uint64(count)))
	for range count {
		r := new(Recorder)
		for range random.IntN(3000) {
			due := random.Int64N(1e9)
			sent := due + random.Int64N(1+due/3)
			tx := history.Transaction{Due: due, Sent: sent, End: sent + random.Int64N(1<<random.IntN(44)), Attempts: uint32(1 + random.IntN(3)),
				Outcome: history.Outcome(random.IntN(4)), Warmup: random.IntN(9) == 0}
			r.Record(&tx)
			r.RecordSent(&tx, random.IntN(2) == 0)
		}
		list = append(list, r)
	}
	return list
}

// TestMergedPartsEqualOneRecorder checks that merged parts from several processes equal the merge of all recorders,
// bucket by bucket.
func TestMergedPartsEqualOneRecorder(t *testing.T) {
	all := recorders(t, 7)
	want := Merge(all...)
	for _, cut := range []int{0, 1, 3, 7} {
		got := new(Measurements)
		for _, part := range []*Measurements{Merge(all[:cut]...), Merge(all[cut:]...)} {
			sent, moved := must(part.MarshalBinary()), new(Measurements)
			if err := moved.UnmarshalBinary(sent); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(moved, part) {
				t.Fatal("other measurements arrive than were sent")
			}
			got.Join(moved)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("cut at %d: %+v\nand not %+v", cut, got.Latency, want.Latency)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestReadingsAndWaitsJoined(t *testing.T) {
	var live Live
	var waits, others, both Waits
	for i := range int64(5000) {
		live.Add(i * i * i)
		waits.Add(time.Duration(i), 2)
		others.Add(time.Duration(i*i), 3)
		both.Add(time.Duration(i), 2)
		both.Add(time.Duration(i*i), 3)
	}
	reading, moved := new(Reading), new(Reading)
	reading.Read(&live)
	if err := moved.UnmarshalBinary(must(reading.MarshalBinary())); err != nil || !reflect.DeepEqual(moved, reading) {
		t.Errorf("another reading arrives than was sent, or none: %v", err)
	}
	twice := new(Reading)
	twice.Join(reading)
	twice.Join(moved)
	if twice.Count() != 2*reading.Count() || !reflect.DeepEqual(twice.Since(reading), reading) {
		t.Error("two readings are not twice the one")
	}
	var sent Waits
	if err := sent.UnmarshalBinary(must(others.MarshalBinary())); err != nil {
		t.Fatal(err)
	}
	waits.Join(&sent)
	if !reflect.DeepEqual(waits, both) {
		t.Error("waits of two processes are not those of one")
	}
}

// FuzzTransferred checks that data of another process is decoded correctly or refused.
func FuzzTransferred(f *testing.F) {
	f.Add(must(Merge(recorders(f, 3)...).MarshalBinary()))
	f.Add(must(new(Measurements).MarshalBinary()))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []interface {
			encoding.BinaryMarshaler
			encoding.BinaryUnmarshaler
		}{new(Measurements), new(Waits), new(Reading)} {
			if v.UnmarshalBinary(data) != nil {
				continue
			}
			if again := must(v.MarshalBinary()); len(again) > len(data) || len(again) == len(data) && !bytes.Equal(again, data) {
				t.Errorf("%T: %x is read, and written as %x", v, data, again)
			}
		}
	})
}

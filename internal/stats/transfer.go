package stats

import (
	"encoding/binary"
	"fmt"
)

// Join adds the measurements of other clients. The distributions are added bucket by bucket, without loss.
func (f *Measurements) Join(o *Measurements) {
	f.Retries, f.Clipped, f.Late = f.Retries+o.Retries, f.Clipped+o.Clipped, f.Late+o.Late
	theirs := o.summaries()
	for i, s := range f.summaries() {
		s.all.join(&theirs[i].all)
		*s = s.all.summary()
	}
}

func (f *Measurements) summaries() [timeKinds]*Summary {
	return [timeKinds]*Summary{&f.Latency, &f.Service, &f.LatencyRetried, &f.LatencyRejected, &f.LatencyAborted, &f.LatencyUnknown, &f.Pacing, &f.Connect}
}

// MarshalBinary encodes the complete measurements for another process.
func (f *Measurements) MarshalBinary() ([]byte, error) {
	b := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, f.Retries), f.Clipped), f.Late)
	for _, s := range f.summaries() {
		b = s.all.append(b)
	}
	return b, nil
}

// UnmarshalBinary decodes the result of MarshalBinary.
func (f *Measurements) UnmarshalBinary(data []byte) error {
	d := transferred{b: data}
	f.Retries, f.Clipped, f.Late = d.number(), d.number(), d.number()
	for _, s := range f.summaries() {
		d.distribution(&s.all)
		if !d.bad {
			*s = s.all.summary()
		}
	}
	return d.end("measurements")
}

// Join adds other waiting transactions.
func (w *Waits) Join(o *Waits) { w.all.join(&o.all) }

// MarshalBinary encodes the waiting transactions.
func (w *Waits) MarshalBinary() ([]byte, error) { return w.all.append(nil), nil }

// UnmarshalBinary decodes the result of MarshalBinary.
func (w *Waits) UnmarshalBinary(data []byte) error {
	d := transferred{b: data}
	d.distribution(&w.all)
	return d.end("waiting times")
}

// Join adds the distributions of other clients.
func (r *Reading) Join(o *Reading) {
	if r.counts == nil {
		r.counts = make([]uint64, twoDigits.size())
	}
	for i, n := range o.counts {
		r.counts[i] += n
	}
}

// MarshalBinary encodes the reading.
func (r *Reading) MarshalBinary() ([]byte, error) { return appendCounts(nil, r.counts), nil }

// UnmarshalBinary decodes the result of MarshalBinary.
func (r *Reading) UnmarshalBinary(data []byte) error {
	d := transferred{b: data}
	r.counts, _ = d.counts(twoDigits)
	return d.end("latencies")
}

// append appends the encoded distribution: its exact values, then its counts.
func (d *distribution) append(b []byte) []byte {
	for _, n := range []uint64{d.count, uint64(d.max), d.hi, d.lo} {
		b = binary.AppendUvarint(b, n)
	}
	return appendCounts(b, d.dense)
}

// appendCounts appends the number of non-empty buckets and, for each, the number of empty buckets before it
// and its count.
func appendCounts(b []byte, dense []uint64) []byte {
	used := uint64(0)
	for _, n := range dense {
		if n > 0 {
			used++
		}
	}
	b = binary.AppendUvarint(b, used)
	next := 0
	for i, n := range dense {
		if n > 0 {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(i-next)), n)
			next = i + 1
		}
	}
	return b
}

// transferred decodes data from another process.
type transferred struct {
	b   []byte
	bad bool
}

func (d *transferred) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *transferred) distribution(into *distribution) {
	*into = distribution{exact: exact{count: d.number(), max: int64(d.number()), hi: d.number(), lo: d.number()}}
	var sum uint64
	into.dense, sum = d.counts(threeDigits)
	d.bad = d.bad || sum != into.count || into.max < 0 || into.count > 0 && into.hi >= into.count || into.count == 0 && into.exact != exact{}
}

// counts returns the counts by bucket (nil if all are 0) and their sum.
func (d *transferred) counts(p precision) (dense []uint64, sum uint64) {
	next := uint64(0)
	for used := d.number(); used > 0 && !d.bad; used-- {
		empty, n := d.number(), d.number()
		if d.bad = d.bad || n == 0 || empty >= uint64(p.size())-next || sum+n < n; d.bad {
			break
		}
		if dense == nil {
			dense = make([]uint64, p.size())
		}
		dense[next+empty], sum, next = n, sum+n, next+empty+1
	}
	return dense, sum
}

func (d *transferred) end(what string) error {
	if d.bad || len(d.b) > 0 {
		return fmt.Errorf("read the %s of another process: they were altered or cut off", what)
	}
	return nil
}

package chains

import "stroppy/internal/check"

// The order agrees with real time by the times as they are given. It does whatever the errors
// are within their bounds, if no transaction may have ended before another one of another
// recording began that its operations need before it: of any cycle with real time there is one
// with a single step of it (graph.Graph.Doubt). Of what is before a transaction only the latest
// beginnings are kept, of two recordings, with each object.

// doubted takes up a transaction that gets its place, before it writes.
func (p *placement) doubted(t *transaction, ops []operation) {
	var before check.Latest
	for i := range ops {
		n := ops[i].object()
		before.Join(&p.writers[n])
		if ops[i].write() {
			before.Join(&p.readers[n])
		}
	}
	group := uint32(t.batch.file)
	within := p.errors[group]
	if at, ok := before.Beside(group); ok && !t.has(unknown) && at > t.end-within {
		p.doubt.Note(at - t.end + within)
	}
	before.Add(t.try+within, group)
	for i := range ops {
		n := ops[i].object()
		if ops[i].write() {
			p.writers[n], p.readers[n] = before, check.Latest{}
		} else {
			p.readers[n].Join(&before)
		}
	}
}

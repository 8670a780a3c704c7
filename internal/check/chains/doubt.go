package chains

import "stroppy/internal/check"

// The order agrees with real time by the given times. It agrees for all clock errors within the bounds under
// one condition: no transaction may have ended before the beginning of another recording's transaction that
// its operations need before it. For every cycle with real time there is one with a single real-time edge
// (see graph.Graph.Doubt). For the transactions before a given one, each object keeps only the latest
// beginnings of two recordings.

// doubted examines a transaction that gets its place, before its writes are applied.
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

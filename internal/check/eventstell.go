package check

import (
	"fmt"
	"strings"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// finding is what is found of one kind: how often, and the first few.
type finding struct {
	n      int
	labels []string
	ids    []history.ID
	latest history.ID
}

// add counts one more, and keeps it while they are few.
func (f *finding) add(label string, id history.ID) {
	f.latest = id
	if f.n++; len(f.labels) < some {
		f.labels = append(f.labels, label)
		f.ids = append(f.ids, id)
	}
}

// find notes that an append shows a violation of a check. An append is counted once in
// a row, however many of its events show it.
func (e *events) find(check string, f *finding, i uint32, what string) {
	id := e.txns.list[i].id
	e.witness(check, "", id, e.named(e.places[i].stream), what)
	if f.n == 0 || f.latest != id {
		f.add(fmt.Sprintf("%v %s", id, what), id)
	}
}

// note is find for what is shown by a stream. There may be no append.
func (e *events) note(check string, f *finding, id history.ID, stream uint64, label, what string) {
	e.witness(check, "", id, e.named(stream), what)
	f.add(label, id)
}

// named is the name of a stream that somebody asks for.
func (e *events) named(stream uint64) string {
	if e.in.Tell == nil {
		return ""
	}
	return e.in.Name(stream)
}

// listed is the result of a check with what was found of each kind; Valid if nothing
// was.
func listed(r *Result, kinds ...told) {
	var lines []string
	for _, k := range kinds {
		if k.n == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s.", fmt.Sprintf(k.title, plural(k.n, k.noun)), strings.Join(k.labels, "; ")+more(k.n-len(k.labels))))
		r.Witness = append(r.Witness, k.ids...)
	}
	r.Status = Valid
	if len(lines) > 0 {
		r.Status, r.Detail = Invalid, strings.Join(lines, "\n")
	}
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; and %d more", n)
}

// told is a finding with its words; the title has the counted noun in it.
type told struct {
	*finding
	noun, title string
}

func (e *events) durable() Result {
	r, stop := e.endless(Durable)
	if stop {
		return r
	}
	if len(e.in.History) == 0 {
		r.Detail = "Not decided: there is no history of what was acknowledged; give the run's directory."
		return r
	}
	listed(&r,
		told{&e.lost, "append", "%s acknowledged and lost"},
		told{&e.partly, "append", "%s acknowledged and lost in part"},
		told{&e.broken, "append", "%s acknowledged and spoilt"})
	if r.Status != Valid {
		return r
	}
	r.Detail = fmt.Sprintf("%s acknowledged, and all of their events were read back, whole and byte for byte.", plural(e.commits, "append"))
	if e.commits == 0 {
		r.Detail = "No append was acknowledged, so that none can be missing."
	}
	if e.unknown > 0 {
		r.Detail += fmt.Sprintf(" Of %s of unknown outcome the log has %d.", plural(e.unknown, "append"), e.applied)
	}
	return r
}

func (e *events) noGhost() Result {
	r, stop := e.endless(NoGhost)
	if stop {
		return r
	}
	never := &e.never
	if !e.complete() {
		never = new(finding) // what was sent last is not known
	}
	listed(&r,
		told{&e.ghosts, "append", "%s reported as not applied, yet in the log"},
		told{&e.closed, "append", "%s closed by a look-up, yet applied later"},
		told{never, "append", "%s in the log that no client ever sent"})
	switch {
	case r.Status != Valid:
	case len(e.in.History) == 0:
		r.Status, r.Detail = Unknown, "Not decided: there is no history of what was sent; give the run's directory."
	case e.unshown(&r):
	case !e.complete():
		r.Status, r.Detail = Unknown, "Not decided: the recording was cut off, so what was sent last is not known."
	default:
		r.Detail = "Nothing aborted is in the log, and all that is there was sent."
		if e.voids > 0 {
			r.Detail += fmt.Sprintf(" Of %s, %s: left by look-ups that closed the place of an append which had not been applied.", plural(int(e.entries), "entry"), tombstones(e.voids))
		}
	}
	return r
}

func tombstones(n uint64) string {
	if n == 1 {
		return "1 is a tombstone"
	}
	return fmt.Sprintf("%d are tombstones", n)
}

// unshown leaves a check undecided that is valid only as far as the recordings that
// were given tell, and says whether it has: of a run whose recording is not among them
// nobody knows what it sent, in batches of how many events, and where it was told that
// they stand.
func (e *events) unshown(r *Result) bool {
	why := e.foreign()
	if why != "" {
		r.Status, r.Detail = Unknown, "Not decided: "+why+"."
	}
	return why != ""
}

func (e *events) exactlyOnce() Result {
	r, stop := e.endless(ExactlyOnce)
	if stop {
		return r
	}
	if listed(&r, told{&e.twice, "append", "%s applied twice"}); r.Status == Valid {
		r.Detail = "No event is in the log twice."
	}
	return r
}

func (e *events) whole() Result {
	r, stop := e.endless(EventsWhole)
	if stop {
		return r
	}
	listed(&r,
		told{&e.strange, "entry", "%s not as anybody wrote it"},
		told{&e.lengths, "append", "%s with events of another length"},
		told{&e.torn, "append", "%s applied in part"})
	if r.Status == Valid && !e.unshown(&r) {
		r.Detail = fmt.Sprintf("%s read back: their checksums are right, and their bytes are those that their writers made.", plural(int(e.entries-e.voids), "event"))
	}
	return r
}

func (e *events) order() Result {
	r, stop := e.endless(EventsOrder)
	if stop {
		return r
	}
	listed(&r,
		told{&e.elsewhere, "append", "%s at another place than was acknowledged"},
		told{&e.apart, "append", "%s whose events do not stand together in their order"},
		told{&e.client, "append", "%s behind a later one of the same client"},
		told{&e.rt, "append", "%s behind one that began only after it was acknowledged"})
	switch {
	case r.Status != Valid:
	case len(e.in.History) == 0:
		r.Status, r.Detail = Unknown, "Not decided: there is no history of what was acknowledged; give the run's directory."
	case e.unshown(&r):
	default:
		r.Detail = "All batches stand together, where their writers were told, and in the order in which they were acknowledged."
	}
	return r
}

// continuous is not required where dirty reads are allowed: an append then may stand
// behind one that it has seen and that was rolled back.
func (e *events) continuous() Result {
	r, stop := e.endless(EventsContinuous)
	r.Required = e.in.Expect != isolation.ReadUncommitted
	if stop {
		return r
	}
	listed(&r,
		told{&e.holes, "hole", "%s"},
		told{&e.shared, "place", "%s with two entries"},
		told{&e.ends, "stream", "%s whose end is not where it should be"},
		told{&e.absent, "stream", "%s not as the load made them"})
	if r.Status == Valid {
		r.Detail = fmt.Sprintf("%s of %s, and no hole before the end of any.", plural(int(e.entries), "entry"), plural(e.in.Streams, "stream"))
	}
	return r
}

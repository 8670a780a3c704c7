package logs

import (
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// findings is what is found of one kind: how often, and the first few.
type findings struct {
	n      int
	labels []string
	ids    []history.ID
	latest history.ID
}

// add counts one more, and keeps it while they are few.
func (f *findings) add(label string, id history.ID) {
	f.latest = id
	if f.n++; len(f.labels) < check.Shown {
		f.labels = append(f.labels, label)
		f.ids = append(f.ids, id)
	}
}

// find notes that an append shows a violation of a check. An append is counted once in
// a row, however many of its events show it.
func (e *checker) find(check string, f *findings, i uint32, what string) {
	id := e.Txns.List[i].ID
	e.Report(check, "", id, e.NameToReport(e.places[i].stream), what)
	if f.n == 0 || f.latest != id {
		f.add(fmt.Sprintf("%v %s", id, what), id)
	}
}

// note is find for what is shown by a stream. There may be no append.
func (e *checker) note(check string, f *findings, id history.ID, stream uint64, label, what string) {
	e.Report(check, "", id, e.NameToReport(stream), what)
	f.add(label, id)
}

// listed is the result of a check with what was found of each kind; Valid if nothing
// was.
func listed(r *check.Result, kinds ...kindOfFindings) {
	var lines []string
	for _, k := range kinds {
		if k.n == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s.", fmt.Sprintf(k.title, check.Plural(k.n, k.noun)), strings.Join(k.labels, "; ")+more(k.n-len(k.labels))))
		r.Witness = append(r.Witness, k.ids...)
	}
	r.Status = check.Valid
	if len(lines) > 0 {
		r.Status, r.Detail = check.Invalid, strings.Join(lines, "\n")
	}
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; and %d more", n)
}

// kindOfFindings is a finding with its words; the title has the counted noun in it.
type kindOfFindings struct {
	*findings
	noun, title string
}

func (e *checker) durable() check.Result {
	r, stop := e.NeedEnd(check.Durable)
	if stop {
		return r
	}
	if len(e.in.History) == 0 {
		r.Detail = "Not decided: there is no history of what was acknowledged; give the run's directory."
		return r
	}
	listed(&r,
		kindOfFindings{&e.lost, "append", "%s acknowledged and lost"},
		kindOfFindings{&e.partly, "append", "%s acknowledged and lost in part"},
		kindOfFindings{&e.broken, "append", "%s acknowledged and spoilt"})
	if r.Status != check.Valid {
		return r
	}
	r.Detail = fmt.Sprintf("%s acknowledged, and all of their events were read back, whole and byte for byte.", check.Plural(e.commits, "append"))
	if e.commits == 0 {
		r.Detail = "No append was acknowledged, so that none can be missing."
	}
	if e.unknown > 0 {
		r.Detail += fmt.Sprintf(" Of %s of unknown outcome the log has %d.", check.Plural(e.unknown, "append"), e.applied)
	}
	return r
}

func (e *checker) noGhost() check.Result {
	r, stop := e.NeedEnd(check.NoGhost)
	if stop {
		return r
	}
	never := &e.never
	if !e.Complete() {
		never = new(findings) // what was sent last is not known
	}
	listed(&r,
		kindOfFindings{&e.ghosts, "append", "%s reported as not applied, yet in the log"},
		kindOfFindings{&e.closed, "append", "%s closed by a look-up, yet applied later"},
		kindOfFindings{never, "append", "%s in the log that no client ever sent"})
	switch {
	case r.Status != check.Valid:
	case len(e.in.History) == 0:
		r.Status, r.Detail = check.Unknown, "Not decided: there is no history of what was sent; give the run's directory."
	case e.unshown(&r):
	case !e.Complete():
		r.Status, r.Detail = check.Unknown, "Not decided: the recording was cut off, so what was sent last is not known."
	default:
		r.Detail = "Nothing aborted is in the log, and all that is there was sent."
		if e.voids > 0 {
			r.Detail += fmt.Sprintf(" Of %s, %s: left by look-ups that closed the place of an append which had not been applied.", check.Plural(int(e.entries), "entry"), tombstones(e.voids))
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
func (e *checker) unshown(r *check.Result) bool {
	why := e.Foreign()
	if why != "" {
		r.Status, r.Detail = check.Unknown, "Not decided: "+why+"."
	}
	return why != ""
}

func (e *checker) exactlyOnce() check.Result {
	r, stop := e.NeedEnd(check.ExactlyOnce)
	if stop {
		return r
	}
	if listed(&r, kindOfFindings{&e.twice, "append", "%s applied twice"}); r.Status == check.Valid {
		r.Detail = "No event is in the log twice."
	}
	return r
}

func (e *checker) whole() check.Result {
	r, stop := e.NeedEndAlone(Whole)
	if stop {
		return r
	}
	listed(&r,
		kindOfFindings{&e.strange, "entry", "%s not as anybody wrote it"},
		kindOfFindings{&e.lengths, "append", "%s with events of another length"},
		kindOfFindings{&e.torn, "append", "%s applied in part"})
	if r.Status == check.Valid && !e.unshown(&r) {
		r.Detail = fmt.Sprintf("%s read back: their checksums are right, and their bytes are those that their writers made.", check.Plural(int(e.entries-e.voids), "event"))
	}
	return r
}

func (e *checker) order() check.Result {
	r, stop := e.NeedEnd(Order)
	if stop {
		return r
	}
	listed(&r,
		kindOfFindings{&e.elsewhere, "append", "%s at another place than was acknowledged"},
		kindOfFindings{&e.apart, "append", "%s whose events do not stand together in their order"},
		kindOfFindings{&e.client, "append", "%s behind a later one of the same client"},
		kindOfFindings{&e.rt, "append", "%s behind one that began only after it was acknowledged"})
	switch {
	case r.Status != check.Valid:
	case len(e.in.History) == 0:
		r.Status, r.Detail = check.Unknown, "Not decided: there is no history of what was acknowledged; give the run's directory."
	case e.unshown(&r):
	default:
		r.Detail = "All batches stand together, where their writers were told, and in the order in which they were acknowledged."
	}
	return r
}

// continuous is not required where dirty reads are allowed: an append then may stand
// behind one that it has seen and that was rolled back.
func (e *checker) continuous() check.Result {
	r, stop := e.NeedEndAlone(Continuous)
	r.Required = e.in.Expect != isolation.ReadUncommitted
	if stop {
		return r
	}
	listed(&r,
		kindOfFindings{&e.holes, "hole", "%s"},
		kindOfFindings{&e.shared, "place", "%s with two entries"},
		kindOfFindings{&e.ends, "stream", "%s whose end is not where it should be"},
		kindOfFindings{&e.absent, "stream", "%s not as the load made them"})
	if r.Status == check.Valid {
		r.Detail = fmt.Sprintf("%s of %s, and no hole before the end of any.", check.Plural(int(e.entries), "entry"), check.Plural(e.in.Streams, "stream"))
	}
	return r
}

"""The statements about registers (kv), logs (events) and lists (append), for verify_findings.py.

KINDS has a function for each kind of statement: True if the recording shows it, False if it does not,
None if the function cannot tell. OPINIONS has a look at the whole recording for each workload.
"""

import math

LOAD = "0-0-0"  # the id of the load
ABSENT, WHOLE, BROKEN, FOREIGN = 1, 2, 3, 4  # states of a value
SHOWN = 8  # members of a longer cycle that a statement names
HOLE = (1 << 64) - 1  # a place of a list at which nothing was found


def who(member):
    return member["id"]


def client(id_):
    return id_.rsplit("-", 1)[0]


def sequence(id_):
    return int(id_.rsplit("-", 1)[1])


def ops_on(r, id_, n):
    return [op for op in r.sent.get(id_, {"ops": []})["ops"] if op["object"] == n]


def answered(r, id_):
    """Whether the reads of a transaction bind the database."""
    return r.outcome(id_) in ("committed", "rejected")


def ended_before(r, one, other, by):
    """Whether the answer to one transaction came before the deciding try of another, by so many nanoseconds."""
    apart = r.sent[other]["try"] - r.sent[one]["end"]
    return r.outcome(one) in ("committed", "rejected") and apart > 0 and (not by or apart == by)


# Registers: a value is named by who wrote it.

def wrote(r, id_, n):
    """Whether a transaction sent a write of a record; of the load, whether it made the record."""
    return n < r.header["objects"] if id_ == LOAD else any(op["write"] for op in ops_on(r, id_, n))


def written(r, id_, n):
    """The bytes that a writer wrote; None if that is not known."""
    if id_ == LOAD:
        low, high = r.header["keys"]["value_low"], r.header["keys"]["value_high"]
        return int(low) if low == high else None
    return next((op["amount"] for op in ops_on(r, id_, n) if op["write"]), None)


def found(r, id_, n, writer):
    return any(op["observed"] and op["state"] == WHOLE and text(op["last"]) == writer for op in ops_on(r, id_, n))


def missed(r, id_, n):
    return any(op["observed"] and op["state"] == ABSENT for op in ops_on(r, id_, n))


def text(id_):
    return "%d-%d-%d" % id_ if id_ else LOAD


def readers(r):
    """Who found which value, by record and writer."""
    if r.readers is None:
        r.readers = {}
        for id_, tx in r.sent.items():
            for op in tx["ops"]:
                if op["observed"] and op["state"] == WHOLE:
                    r.readers.setdefault((op["object"], text(op["last"])), []).append(id_)
    return r.readers


def known(r, id_, n):
    """When a write had surely been applied: its answer, or the end of who had read its value."""
    if id_ == LOAD:
        return -math.inf
    tx = r.sent[id_]
    times = [tx["end"]] if tx["outcome"] == "committed" else []
    for reader in readers(r).get((n, id_), []):
        if answered(r, reader):
            times += [r.sent[reader]["end"]] if r.sent[reader]["end"] >= tx["try"] else []
        elif r.outcome(reader) == "unknown" and wrote(r, reader, n):
            times.append(known(r, reader, n))  # if somebody read what it wrote, it was applied, and so was this
    return min(times, default=math.inf)


def fresh_by(r, reader, n, absent, writer, by):
    """Whether what a transaction found had been replaced by another write before it began."""
    saw = missed(r, reader, n) if absent else found(r, reader, n, writer)
    return saw and answered(r, reader) and wrote(r, by, n) and r.sent[by]["try"] > known(r, writer, n)


def register_stale(r, f):
    n, reader, by = r.number(f["object"]), who(f["reader"]), who(f["by"])
    at = known(r, by, n)
    answer = r.sent[by]["end"] if r.outcome(by) == "committed" else math.inf
    return fresh_by(r, reader, n, f.get("absent"), who(f["writer"]), by) and \
        r.sent[reader]["try"] - at == f["ago_ns"] > 0 and bool(f.get("seen")) == (at < answer)


def register_dirty(r, f):
    n, reader, writer = r.number(f["object"]), who(f["reader"]), who(f["writer"])
    if not answered(r, reader) or not found(r, reader, n, writer) or r.outcome(writer) != f["outcome"]:
        return False
    if f.get("ahead_ns"):
        return r.sent[writer]["try"] - r.sent[reader]["end"] == f["ahead_ns"] > 0
    return f["outcome"] in ("aborted", "rejected")


def register_damaged(r, f):
    ops = ops_on(r, who(f["reader"]), r.number(f["object"]))
    if not any(op["state"] == BROKEN and op["balance"] == f["bytes"] for op in ops):
        return False
    return None if f.get("pieces") else True  # the bytes of values are not rebuilt here


def register_foreign(r, f):
    return any(op["state"] == FOREIGN and op["balance"] == f["bytes"] for op in r.sent[who(f["reader"])]["ops"])


def register_unwritten(r, f):
    n, writer = r.number(f["object"]), who(f["writer"])
    return found(r, who(f["reader"]), n, writer) and not wrote(r, writer, n)


def register_length(r, f):
    n, writer = r.number(f["object"]), who(f["writer"])
    if written(r, writer, n) is None:
        return None
    return found(r, who(f["reader"]), n, writer) and \
        f["found_bytes"] != f["written_bytes"] == written(r, writer, n) and \
        any(op["balance"] == f["found_bytes"] for op in ops_on(r, who(f["reader"]), n))


def register_missing(r, f):
    n = r.number(f["object"])
    return n < r.header["objects"] and missed(r, who(f["reader"]), n)


def register_lost_update(r, f):
    n, pair = r.number(f["object"]), [who(f["first"]), who(f["second"])]
    return pair[0] != pair[1] and all(found(r, i, n, who(f["writer"])) and wrote(r, i, n) and
                                      r.outcome(i) not in ("aborted", "rejected") for i in pair)


def scan(r, id_):
    """The places that a scan asked for, as found and as a last one, which is infinite for all the rest."""
    tx = r.sent[id_]
    places = [r.place(op["object"]) for op in tx["ops"] if op["state"] != FOREIGN]
    count = len(tx["ops"]) - (tx["ops"][0]["state"] == ABSENT)
    there = set(places[1:] if tx["ops"][0]["state"] == ABSENT else places)
    return places, there, math.inf if count < tx["limit"] else max(places), count


def left_out(r, id_, n):
    places, there, last, _ = scan(r, id_)
    return places[0] <= r.place(n) <= last and r.place(n) not in there


def scan_order(r, f):
    places = scan(r, who(f["scan"]))[0]
    n = r.place(r.number(f["object"]))
    return any(b == n and b <= a for a, b in zip(places, places[1:]))


def scan_insert(r, f):
    n, insert = r.number(f["object"]), who(f["insert"])
    return left_out(r, who(f["scan"]), n) and wrote(r, insert, n) and r.outcome(insert) == "committed" and \
        ended_before(r, insert, who(f["scan"]), f["ago_ns"])


def following(r, n, first):
    """A value and all that were written in its place, or in theirs, by transactions that had read them."""
    values, more = [], [first]
    while more:
        values.append(more.pop())
        more += [i for i in readers(r).get((n, values[-1]), []) if i not in values and wrote(r, i, n) and
            r.outcome(i) in ("committed", "unknown")]
    return values


def last_start(r, n, id_):
    """When the last of those began who wrote or read a value."""
    return max([r.sent[i]["try"] for i in readers(r).get((n, id_), []) if answered(r, i)] + ([r.sent[id_]["try"]]
        if id_ != LOAD else []), default=-math.inf)


def register_order(r, f):
    n, first, second = r.number(f["object"]), who(f["first"]), who(f["second"])
    if f["reason"] == "read-before-write":
        return any(r.sent[i]["end"] < r.sent[first]["try"] for i in readers(r).get((n, first), []) if answered(r, i))
    if f["reason"] == "replaced-twice":
        bases = [{text(op["last"]) for op in ops_on(r, i, n) if op["write"] and
            op["observed"]} for i in (first, second)]
        return first != second and bool(bases[0] & bases[1])
    if f["reason"] == "before-and-after":
        ends, starts = zip(*((min(known(r, i, n) for i in zone), max(last_start(r, n, i) for i in zone))
                             for zone in (following(r, n, first), following(r, n, second))))
        return first != second and ends[0] < starts[1] and ends[1] < starts[0]
    if f["reason"] == "replaced-early":
        return second in following(r, n, first)[1:] and known(r, second, n) < last_start(r, n, first)
    return first != second and second in following(r, n, first) and first in following(r, n, second)


def end_of(r, f):
    return r.ended.get(r.number(f["object"]))


def end_lost(r, f):
    n, lost, end = r.number(f["object"]), who(f["lost"]), end_of(r, f)
    if f.get("absent"):
        at = -math.inf
        is_so = end is None
    else:
        is_so = end is not None and text(end["last"]) == who(f["holds"])
        at = known(r, who(f["holds"]), n)
    gone = [i for i in r.writers_of(n) if r.outcome(i) == "committed" and r.sent[i]["try"] > at]
    return is_so and lost in gone and len(gone) == f["writes"] and \
        r.sent[lost]["try"] == max(r.sent[i]["try"] for i in gone)


def end_length(r, f):
    end, writer = end_of(r, f), who(f["writer"])
    want = written(r, writer, r.number(f["object"]))
    return None if want is None else text(end["last"]) == writer and \
        end["balance"] == f["found_bytes"] != f["written_bytes"] == want


def register_pair(r, f):
    """An edge of an anomaly: a write took the place of what another transaction had found."""
    n, reader, writer = r.number(f["object"]), who(f["reader"]), who(f["writer"])
    return (missed(r, reader, n) if f.get("absent") else found(r, reader, n, who(f["value"]))) and wrote(r, writer, n)


REGISTERS = {
    "register-stale-read": register_stale, "register-dirty-read": register_dirty,
    "register-damaged-value": register_damaged,
    "register-foreign-key": register_foreign, "register-unwritten-value": register_unwritten,
    "register-other-length": register_length, "register-missing-record": register_missing,
    "register-lost-update": register_lost_update, "register-scan-order": scan_order,
    "register-scan-count": lambda r, f: scan(r, who(f["scan"]))[3] == f["found"] > f["limit"] ==
        r.sent[who(f["scan"])]["limit"],
    "register-scan-lacks-loaded": lambda r, f: r.number(f["object"]) < r.header["objects"] and
        left_out(r, who(f["scan"]), r.number(f["object"])),
    "register-scan-lacks-insert": scan_insert, "register-no-order": register_order,
    "register-end-damaged": lambda r, f: end_of(r, f)["state"] != WHOLE and end_of(r, f)["balance"] == f["bytes"],
    "register-end-length": end_length, "register-end-lost": end_lost,
    "register-end-missing": lambda r, f: r.number(f["object"]) < r.header["objects"] and end_of(r, f) is None,
    "register-unexpected": lambda r, f: f["text"] in r.unexpected,
    "register-end-unwritten": lambda r, f: text(end_of(r, f)["last"]) == who(f["writer"]) and
        not wrote(r, who(f["writer"]), r.number(f["object"])),
    "register-end-refused": lambda r, f: text(end_of(r, f)["last"]) == who(f["writer"]) and
    r.outcome(who(f["writer"])) == f["outcome"] in ("aborted", "rejected"),
    "register-replaced": register_pair,
    "register-read-of": lambda r, f: found(r, who(f["reader"]), r.number(f["object"]), who(f["writer"])) and
        r.outcome(who(f["writer"])) == f["outcome"],
    "register-ended-before": lambda r, f: ended_before(r, who(f["first"]), who(f["second"]), f["apart_ns"]),
}


def registers_opinion(r):
    def bad_read(id_, tx, op):
        n, writer, first = op["object"], text(op["last"]), op is tx["ops"][0]
        if op["state"] == ABSENT:
            return n < r.header["objects"] and r.kind(tx) != "scan"
        if op["state"] != WHOLE or not wrote(r, writer, n) or r.outcome(writer) in ("aborted", "rejected"):
            return True
        early = writer != LOAD and first and r.sent[writer]["attempts"] > 1 and tx["end"] < r.sent[writer]["try"]
        return early or written(r, writer, n) not in (None, op["balance"])

    def bad_end(n, o):
        writer = text(o["last"])
        if o["state"] != WHOLE or written(r, writer, n) not in (None, o["balance"]) and wrote(r, writer, n):
            return True
        return wrote(r, writer, n) and r.outcome(writer) not in ("aborted", "rejected") and \
            lost_at(n, known(r, writer, n))

    def lost_at(n, at):
        return any(r.outcome(i) == "committed" and r.sent[i]["try"] > at for i in r.writers_of(n))

    touched = {op["object"] for tx in r.sent.values() for op in tx["ops"] if op["write"]}
    return {
        "values": any(bad_read(i, tx, op) for i, tx in r.sent.items() if answered(r, i) for op in tx["ops"]
            if op["observed"]),
        "durable": any(n not in r.ended for n in range(r.header["objects"])) or
            any(bad_end(n, o) for n, o in r.ended.items())
        or any(lost_at(n, -math.inf) for n in touched - set(r.ended) if n >= r.header["objects"]),
        "no-ghost": bool(r.unexpected) or any(o["state"] == WHOLE and (not wrote(r, text(o["last"]), n) or
                                              r.outcome(text(o["last"])) in ("aborted", "rejected"))
                                                  for n, o in r.ended.items()),
    }


# Logs: the rows of an append are its events.

def batch(r):
    return int(r.header["keys"]["batch"])


def length(r):
    low, high = r.header["keys"]["size_low"], r.header["keys"]["size_high"]
    return int(low) if low == high else None


def events(r, f, key="append"):
    return r.rows.get(who(f[key]), [])


def stream_of(r, id_):
    return r.sent[id_]["ops"][0]["object"]


def lacks(r, f):
    return batch(r) - len({row["number"] for row in events(r, f)} & set(range(batch(r))))


def in_part(r, f):
    return 0 < lacks(r, f) == f["missing"] < f["events"] == batch(r) and \
        stream_of(r, who(f["append"])) == r.number(f["stream"])


def log_spoilt(r, f):
    if any(row["state"] == BROKEN for row in events(r, f)):
        return lacks(r, f) == 0
    return None if length(r) is None else any(row["amount"] != length(r) for row in events(r, f))


def log_twice(r, f):
    if f.get("tombstone"):
        return sum(row["mark"] == 1 for row in r.all_rows[who(f["append"])]) > 1
    return sum(row["number"] == f["event"] for row in events(r, f)) > 1


def log_length(r, f):
    here = any((row["number"], row["amount"]) == (f["event"], f["found_bytes"]) for row in events(r, f))
    return None if here and length(r) is None else here and f["found_bytes"] != f["sent_bytes"] == length(r)


def other_stream(r, f):
    rows = r.all_rows[who(f["append"])]
    return stream_of(r, who(f["append"])) == r.number(f["sent_to"]) != r.number(f["found_in"]) and \
        any(row["object"] == r.number(f["found_in"]) and row["mark"] == bool(f.get("tombstone")) for row in rows)


def answered_place(r, id_):
    """The place of the first event of an append, by its answer."""
    op = r.sent[id_]["ops"][0]
    return op["version"] + 1 if op["observed"] and r.outcome(id_) == "committed" else None


def other_place(r, f):
    first = answered_place(r, who(f["append"]))
    return first is not None and first + f["event"] == f["acknowledged_place"] != f["found_place"] and \
        any((row["number"], row["version"]) == (f["event"], f["found_place"]) for row in events(r, f))


def apart(r, f):
    stream, id_ = r.streams[r.number(f["stream"])], who(f["append"])
    at = next((i for i, row in enumerate(stream) if (text(row["transfer"]), row["number"],
        row["version"]) == (id_, f["event"], f["place"])), None)
    if at is None:
        return False
    before = stream[at - 1] if at else None
    return not before or (text(before["transfer"]), before["number"], before["version"], before["mark"]) != (id_,
        f["before"], f["place"] - 1, 0)


def stands(r, f, key):
    """Where an append begins, by the answers or by the log."""
    if f.get("acknowledged"):
        return answered_place(r, who(f[key]))
    rows = [row for row in events(r, f, key) if row["object"] == r.number(f["stream"])]
    return rows[0]["version"] if rows else None


def behind_own(r, f):
    one, later = who(f["append"]), who(f["later"])
    return client(one) == client(later) and sequence(one) < sequence(later) and \
        stands(r, f, "append") > stands(r, f, "later")


def behind_later(r, f):
    return ended_before(r, who(f["append"]), who(f["later"]), 0) and stands(r, f, "append") > stands(r, f, "later")


def overlap(r, f):
    spans = [(answered_place(r, who(f["append"])), f["first_place"], f["last_place"]), (answered_place(r,
        who(f["other"])),
        f["other_first_place"], f["other_last_place"])]
    return who(f["append"]) != who(f["other"]) and all(first == a and
        b == a + batch(r) - 1 for first, a, b in spans) and \
        spans[0][1] <= spans[1][2] and spans[1][1] <= spans[0][2] and \
        stream_of(r, who(f["append"])) == stream_of(r, who(f["other"])) == r.number(f["stream"])


def hole(r, f):
    places = {row["version"]: text(row["transfer"]) for row in r.streams[r.number(f["stream"])]}
    return not any(p in places for p in range(f["first_place"], f["last_place"] + 1)) and \
        places.get(f["last_place"] + 1) == who(f["before"]) and \
        (f["first_place"] == 1 or f["first_place"] - 1 in places)


def log_end(r, f):
    n = r.number(f["stream"])
    last = max((row["version"] for row in r.streams[n]), default=0)
    return any(o["object"] == n and o["version"] == f["end_place"] for o in r.end_objects) and \
        f["end_place"] != f["last_place"] == last


def end_writer(r, f):
    n = r.number(f["stream"])
    at = [text(row["transfer"]) for row in r.streams[n] if row["version"] == f["place"]]
    return text(r.ended[n]["last"]) == who(f["named"]) != who(f["writer"]) and who(f["writer"]) in at


LOGS = {
    "log-lost": lambda r, f: r.outcome(who(f["append"])) == "committed" and not events(r, f) and
    (f["events"], r.number(f["stream"])) == (batch(r), stream_of(r, who(f["append"]))),
    "log-lost-part": lambda r, f: r.outcome(who(f["append"])) == "committed" and in_part(r, f),
    "log-torn": in_part, "log-spoilt": log_spoilt, "log-twice": log_twice, "log-length": log_length,
    "log-refused": lambda r, f: r.outcome(who(f["append"])) == f["outcome"] in ("aborted", "rejected") and
        bool(events(r, f)),
    "log-closed": lambda r, f: bool(events(r, f)) and who(f["append"]) in r.tombstones,
    "log-unsent": lambda r, f: (who(f["append"]) not in r.sent or not r.sent[who(f["append"])]["looked_up"]) and
    (who(f["append"]) in r.tombstones if f.get("tombstone") else bool(events(r, f)) and
        who(f["append"]) not in r.sent),
    "log-extra-event": lambda r, f: f["event"] >= f["events"] == batch(r) and
        any(row["number"] == f["event"] for row in events(r, f)),
    "log-unexpected": lambda r, f: f["text"] in r.unexpected,
    "log-damaged": lambda r, f: any((row["number"], row["version"], row["state"]) == (f["event"], f["place"], BROKEN)
                                    for row in r.all_rows[who(f["append"])]),
    "log-other-stream": other_stream, "log-other-place": other_place, "log-apart": apart,
    "log-behind-own": behind_own,
    "log-behind-later": behind_later, "log-overlap": overlap, "log-hole": hole, "log-end": log_end,
    "log-end-writer": end_writer,
    "log-shared-place": lambda r, f: sum(row["version"] == f["place"]
        for row in r.streams[r.number(f["stream"])]) > 1,
    "log-two-ends": lambda r, f: sum(o["object"] == r.number(f["stream"]) for o in r.end_objects) > 1,
    "log-foreign-stream": lambda r, f: r.number(f["stream"]) >= r.header["objects"],
    "log-lost-stream": lambda r, f: r.number(f["stream"]) < r.header["objects"] and
        r.number(f["stream"]) not in r.ended,
}


def logs_opinion(r):
    want = set(range(batch(r)))
    numbers = {i: [row["number"] for row in rows] for i, rows in r.rows.items()}
    spoilt = {i for i, rows in r.rows.items() if any(row["state"] == BROKEN or
        length(r) not in (None, row["amount"]) for row in rows)}
    closed = {i for i in r.tombstones if i not in r.sent or r.rows.get(i) or r.outcome(i) != "unknown" and
        not r.sent[i]["looked_up"]}
    return {
        "durable": any(not want <= set(numbers.get(i, [])) or
            i in spoilt for i in r.sent if r.outcome(i) == "committed"),
        "no-ghost": bool(closed) or any(i not in r.sent or r.outcome(i) in ("aborted", "rejected") or
            set(n) - want for i, n in numbers.items()),
        "exactly-once": any(len(n) != len(set(n)) for n in numbers.values()) or
        any(sum(row["mark"] == 1 for row in r.all_rows[i]) > 1 for i in r.tombstones),
    }


# Lists: an element is named by who appended it and the number of the append there.

def element(n, e):
    return "" if e == HOLE else "%d-%d-%d.%d" % (n >> 36, e >> 6 & (1 << 17) - 1, e >> 23, e & 63)


def maker(e):
    return e.rsplit(".", 1)[0]


def appended(r, e, n):
    """Whether the transaction that an element names sent this append to the list."""
    writes, number = r.writes(maker(e)) if e else [], int(e.rsplit(".", 1)[1]) if e else 0
    return number < len(writes) and writes[number]["object"] == n


def reads(r, id_, n):
    """What a transaction read of a list, as (its operation, elements); of the id of the load the end state."""
    if id_ == LOAD:
        return [(None, r.end_list(n))]
    return [(i, [element(n, e) for e in op.get("elements", [])])
            for i, op in enumerate(r.sent.get(id_, {"ops": []})["ops"]) if op["object"] == n and op["observed"]]


def same(read, f):
    return len(read) == f["length"] and read[max(0, len(read) - 12):] == (f["last"] or [])


def own(r, f, id_=None, list_="list", read="read"):
    """What a transaction read as the statement has it: (operation, elements), or None."""
    n = r.number(f[list_])
    return next((x for x in reads(r, who(f["reader"]) if id_ is None else id_, n) if same(x[1], f[read])), None)


def versions(r, n):
    """All versions of a list that somebody read, or made by appending to what it had read."""
    if n not in r.versions:
        r.versions[n] = [r.end_list(n)] if r.ended is not None else []
        for id_, tx in r.sent.items():
            if any(op["object"] == n for op in tx["ops"]):
                added = ["%s.%d" % (id_, i) for i, op in enumerate(r.writes(id_)) if op["object"] == n]
                for _, read in reads(r, id_, n):
                    r.versions[n].append(read + [e for e in added if e not in read])
    return r.versions[n]


def version(r, n, f):
    """A version of a list as a statement has it, or None."""
    return next((v[:f["length"]] for v in versions(r, n) if same(v[:f["length"]], f)), None)


def read_has(r, f, wanted):
    """Whether a transaction whose reads count read the list as stated, with (or without) the element."""
    read = own(r, f)
    return read is not None and (f["element"] in read[1]) == wanted


def list_garbage(r, f):
    return read_has(r, f, True) and not appended(r, f["element"], r.number(f["list"]))


def list_foreign(r, f):
    n = r.number(f["list"])
    return same(r.end_list(n)[:f["end"]["length"]], f["end"]) and \
        f["element"] == r.end_list(n)[f["end"]["length"] - 1] and \
        not appended(r, f["element"], n)


def list_duplicate(r, f):
    known_ = version(r, r.number(f["list"]), f["known"])
    return known_ is not None and known_[-1] == f["element"] and known_.count(f["element"]) > 1


def list_disorder(r, f):
    known_, number = version(r, r.number(f["list"]), f["known"]), int(f["element"].rsplit(".", 1)[1])
    if known_ is None or f["element"] not in known_:
        return known_ is None and None
    earlier = ["%s.%d" % (who(f["by"]), i) for i, op in enumerate(r.writes(who(f["by"]))[:number])
        if op["object"] == r.number(f["list"])]
    return any(e not in known_[:known_.index(f["element"])] for e in earlier)


def list_contradiction(r, f):
    read, other = own(r, f), version(r, r.number(f["list"]), f["other"])
    if read is None or other is None:
        return read is None and False or None
    shorter = min(len(read[1]), len(other))
    return read[1][:shorter] != other[:shorter]


def list_other_base(r, f):
    n, read = r.number(f["list"]), own(r, f)
    base = own(r, f, who(f["writer"]), read="base")
    if (r.sent[who(f["writer"])]["attempts"] > 1) != f["retried"]:
        return False
    return read is not None and base is not None and appended(r, f["element"], n) and \
        maker(f["element"]) == who(f["writer"]) and \
        f["element"] in read[1] and read[1][:read[1].index(f["element"])] != base[1]


def list_aborted(r, f):
    return read_has(r, f, True) and r.outcome(who(f["writer"])) == "aborted" and \
        maker(f["element"]) == who(f["writer"])


def list_dirty_append(r, f):
    n = r.number(f["list"])
    if not (appended(r, f["element"], n) and appended(r, f["behind"], n) and
        maker(f["element"]) == who(f["by"]) and maker(f["behind"]) == who(f["writer"])):
        return False
    return any(f["behind"] in v[:v.index(f["element"])] for v in versions(r, n) if f["element"] in v) and \
        (r.outcome(who(f["writer"])) == "aborted") != bool(f.get("elsewhere"))


def list_halfway(r, f):
    read, n = own(r, f), r.number(f["list"])
    if not read or not read[1] or maker(read[1][-1]) != who(f["writer"]):
        return False
    number = int(read[1][-1].rsplit(".", 1)[1])
    return any(op["object"] == n for op in r.writes(who(f["writer"]))[number + 1:])


def own_append(r, f):
    """The operation by which a transaction appended an element."""
    writes = [i for i, op in enumerate(r.sent[who(f["reader"])]["ops"]) if op["write"]]
    return writes[int(f["element"].rsplit(".", 1)[1])]


def list_future(r, f):
    n, at = r.number(f["list"]), own_append(r, f)
    return maker(f["element"]) == who(f["reader"]) and any(i < at and same(x, f["read"]) and
        f["element"] in x for i, x in reads(r, who(f["reader"]), n))


def list_own_missing(r, f):
    if f.get("range"):
        return None
    n, at = r.number(f["list"]), own_append(r, f)
    return maker(f["element"]) == who(f["reader"]) and any(i > at and same(x, f["read"]) and
        f["element"] not in x for i, x in reads(r, who(f["reader"]), n))


def list_part_seen(r, f):
    n, reader, writer = r.number(f["list"]), who(f["reader"]), who(f["writer"])
    if not appended(r, f["missing"], n) or maker(f["missing"]) != writer or not answered(r, reader):
        return False
    without = [i for i, x in reads(r, reader, n) if same(x, f["read"]) and f["missing"] not in x]
    having = [i for i, x in reads(r, reader, r.number(f["seen_on"])) if same(x, f["seen"]) and
        any(maker(e) == writer for e in x)]
    return any((i > j) == f["later"] for i in without for j in having if i != j)


def list_end(r, f, outcome, there):
    n, end = r.number(f["list"]), r.end_list(r.number(f["list"]))
    return r.outcome(who(f["by"])) == outcome and maker(f["element"]) == who(f["by"]) and \
        appended(r, f["element"], n) and \
        (f["element"] in end) == there and same(end, f.get("end", {"length": len(end), "last": end[-12:]}))


def list_lost_update(r, f):
    n, pair = r.number(f["list"]), [who(f["first"]), who(f["second"])]
    return pair[0] != pair[1] and all(own(r, f, i) and any(op["object"] == n for op in r.writes(i)) and
                                      r.outcome(i) not in ("aborted", "rejected") for i in pair)


def list_saw(r, f):
    read = own(r, f, who(f["second"]))
    return read is not None and f["element"] in read[1] and maker(f["element"]) == who(f["first"])


def list_missed(r, f):
    read, n = own(r, f, who(f["first"])), r.number(f["list"])
    return read is not None and f["element"] not in read[1] and maker(f["element"]) == who(f["second"]) and \
        appended(r, f["element"], n)


def list_behind(r, f):
    n = r.number(f["list"])
    return maker(f["element"]) == who(f["first"]) and maker(f["next"]) == who(f["second"]) and \
        any(f["element"] in v[:v.index(f["next"])] for v in versions(r, n) if f["next"] in v)


def list_overwritten(r, f):
    n, end = r.number(f["list"]), r.end_list(r.number(f["list"]))
    return same(end[:f["end"]["length"]], f["end"]) and appended(r, f["element"], n) and \
        maker(f["element"]) == who(f["first"]) and \
        f["element"] not in end and maker(end[f["end"]["length"] - 1]) == who(f["second"])


def list_session(r, f):
    one, other = who(f["first"]), who(f["second"])
    return client(one) == client(other) and sequence(one) < sequence(other)


def list_precedes(r, one, other, check):
    """Whether something that was recorded puts one transaction before another; None if nothing simple does."""
    if check != "serializable" and list_session(r, {"first": {"id": one}, "second": {"id": other}}) or \
            check == "strict" and ended_before(r, one, other, 0):
        return True
    for n in {op["object"] for op in r.sent[one]["ops"]} & {op["object"] for op in r.sent[other]["ops"]}:
        made = [["%s.%d" % (id_, i) for i, op in enumerate(r.writes(id_))
            if op["object"] == n] for id_ in (one, other)]
        if any(e in x for _, x in reads(r, other, n) for e in made[0]):  # the other one saw it
            return True
        if any(e not in x for _, x in reads(r, one, n) for e in made[1]):  # this one missed the other
            return True
        if any(e in v[:v.index(x)] for x in made[1] for v in versions(r, n) if x in v for e in made[0]):
            return True
    return None


def list_reason(r, f, check):
    """Whether the reason for one step of a cycle is so. Its fields show of which kind it is."""
    if "next" in f:
        return list_behind(r, f)
    if "end" in f:
        return list_overwritten(r, f)
    if "read" in f and "element" in f:
        return list_saw(r, f) or list_missed(r, f)
    if "by_ns" in f:
        return check == "strict" and ended_before(r, who(f["first"]), who(f["second"]), f["by_ns"])
    return None if "list" in f else list_precedes(r, who(f["first"]), who(f["second"]), check)


def list_cycle(r, f):
    members, reasons = [who(m) for m in f["members"]], f.get("why", [])
    pairs = list(zip(members, members[1:])) + ([(members[-1], members[0])] if len(members) == f["length"] else [])
    if len(members) != f["length"] and len(members) < SHOWN:
        return False
    if reasons and [(who(x["first"]), who(x["second"])) for x in reasons] != pairs:
        return False
    answers = [list_reason(r, x, f["check"]) for x in reasons] or \
        [list_precedes(r, *pair, f["check"]) for pair in pairs]
    return False if False in answers else None if None in answers else True


LISTS = {
    "list-garbage": list_garbage, "list-foreign-element": list_foreign, "list-duplicate": list_duplicate,
    "list-unexpected": lambda r, f: f["found"] in r.unexpected, "list-disorder": list_disorder,
    "list-contradiction": list_contradiction, "list-other-base": list_other_base, "list-aborted-read": list_aborted,
    "list-dirty-append": list_dirty_append, "list-intermediate-read": list_halfway, "list-future-read": list_future,
    "list-own-append-missing": list_own_missing, "list-part-seen": list_part_seen,
    "list-append-lost": lambda r, f: list_end(r, f, "committed", False),
    "list-ghost": lambda r, f: f["outcome"] in ("aborted", "rejected") and list_end(r, f, f["outcome"], True),
    "list-lost-update": list_lost_update, "list-cycle": list_cycle, "list-saw": list_saw, "list-missed": list_missed,
    "list-behind": list_behind, "list-overwritten": list_overwritten, "list-same-client": list_session,
    "list-ended-before": lambda r, f: ended_before(r, who(f["first"]), who(f["second"]), f.get("by_ns")),
}


def overwritten(r, id_, n, e, end):
    """Whether a whole list was written over an append by who may not have had to see it."""
    if r.header["keys"].get("storage") != "values":
        return False
    for made in versions(r, n):
        if e in made and maker(made[-1]) == id_:
            differs = next((i for i, x in enumerate(end) if i >= len(made) or x != made[i]), None)
            return differs is not None and maker(end[differs]) in r.sent and \
                not ended_before(r, id_, maker(end[differs]), 0)
    return False


def lists_opinion(r):
    if r.header["keys"].get("access") == "predicate" or \
        not r.header["keys"].get("expect", "").endswith("serializable"):
        return {}  # lists may be deleted, or overwritten by whoever had read them
    ends = {n: r.end_list(n) for n in r.streams}
    sent = [(i, op["object"], "%s.%d" % (i, k)) for i in r.sent for k, op in enumerate(r.writes(i))]
    mine = {(n, e) for _, n, e in sent}
    return {
        "durable": any(r.outcome(i) == "committed" and e not in ends.get(n, ()) and
            not overwritten(r, i, n, e, ends.get(n, [])) for i, n, e in sent),
        "no-ghost": bool(r.unexpected) or any(r.outcome(i) in ("aborted", "rejected") and
            e in ends.get(n, ()) for i, n, e in sent)
        or any((n, e) not in mine for n, all_ in ends.items() for e in all_ if e and n >> 36 == r.header["run"]),
    }


KINDS = {**REGISTERS, **LOGS, **LISTS}
OPINIONS = {"kv": registers_opinion, "events": logs_opinion, "append": lists_opinion}

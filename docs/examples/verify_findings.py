#!/usr/bin/env python3
"""Rebuild every statement that a check made of a run from the files of its history alone.

    verify_findings.py RUN_DIR...

reads violations.jsonl and the findings in result.json, looks at what they state in the recorded
transactions and in the end state, and prints as JSON how many statements of each kind are so, which
are not, and which kinds it does not rebuild. It exits with 1 if a statement is wrong. It shares no
code with Stroppy and needs nothing but Python 3's standard library.
"""

import collections
import json
import os
import re
import sys

import read_history as files
import verify_models as models

SHOWN = 8  # steps of a longer cycle that a statement names


def text(id_):
    return "%d-%d-%d" % id_ if id_ else "0-0-0"


class Recording:
    """A recording by id, by object, and by object and version."""

    def __init__(self, directory):
        folder = os.path.join(directory, "history")
        recorded = files.File(os.path.join(folder, "transactions.bin"), files.TRANSACTIONS)
        self.header = recorded.header
        self.sent = {text(tx["id"]): tx for tx in files.transactions(recorded)}
        self.unexpected, self.ended, self.rows, self.tombstones = [], None, collections.defaultdict(list), set()
        self.by_object, self.streams = collections.defaultdict(list), collections.defaultdict(list)
        self.all_rows, self.openings = collections.defaultdict(list), collections.Counter()
        with open(os.path.join(directory, "result.json"), encoding="utf-8") as f:
            self.result = json.load(f)
        self.readers, self.versions, self.writers, self.opened_keys = None, {}, None, None  # made when first asked for
        path = os.path.join(folder, "end-objects.bin")
        if not os.path.exists(path):
            return
        self.end_objects = list(files.objects(files.File(path, files.ACCOUNTS), self.unexpected))
        self.ended = {o["object"]: o for o in self.end_objects}
        for row in files.legs(files.File(os.path.join(folder, "end-ledger.bin"), files.LEDGER)):
            id_ = text(row["transfer"])
            if row["mark"] == 2:
                self.openings[row["object"]] += row["amount"]
            if row["mark"] < 2:
                self.all_rows[id_].append(row)
                self.streams[row["object"]].append(row)
            if row["mark"] == 1:
                self.tombstones.add(id_)
            elif row["mark"] == 0:
                self.rows[id_].append(row)
                self.by_object[row["object"]].append(row)

    def op(self, id_, object_):
        ops = [op for op in self.sent.get(id_, {"ops": []})["ops"] if op["object"] == object_]
        return ops[0] if ops else None

    def outcome(self, id_):
        return self.sent[id_]["outcome"] if id_ in self.sent else None

    def writes(self, id_):
        return [op for op in self.sent.get(id_, {"ops": []})["ops"] if op["write"]]

    def made(self, id_, object_, version):
        """Whether a transaction made a version, by the ledger or by what its client saw."""
        if any(r["object"] == object_ and r["version"] == version for r in self.rows.get(id_, [])):
            return True
        op = self.op(id_, object_)
        return bool(op and op["write"] and op["observed"] and op["version"] + 1 == version)

    def read(self, id_, object_, version):
        op = self.op(id_, object_)
        return bool(op and op["observed"] and op["version"] == version)

    def whole(self, id_):
        sent = sorted((n, op["object"], op["amount"]) for n, op in enumerate(self.writes(id_)))
        return sent == sorted((r["number"], r["object"], r["amount"]) for r in self.rows.get(id_, []))

    def books(self, object_, upto=None):
        rows = [r for r in self.by_object[object_] if upto is None or r["version"] <= upto]
        return files.opening(self.header, object_) + self.openings[object_] + sum(r["amount"]
            for r in rows), len(rows)

    def writers_of(self, object_):
        """Who sent a write of an object."""
        if self.writers is None:
            self.writers = collections.defaultdict(list)
            for id_, tx in self.sent.items():
                for op in tx["ops"]:
                    if op["write"]:
                        self.writers[op["object"]].append(id_)
        return self.writers[object_]

    def end_list(self, object_):
        """The elements of a list in the end state, in their order."""
        made = {row["version"]: "%s.%d" % (text(row["transfer"]), row["number"])
            for row in self.streams.get(object_, [])}
        return [made.get(place, "") for place in range(1, max(made, default=0) + 1)]

    def kind(self, tx):
        """The name of a transaction's kind."""
        return next((k["name"] for k in self.header["kinds"] if k["number"] == tx["kind"]), "")

    def place(self, object_):
        """The place of a record in the order of the keys."""
        return files.permute(62, files.mix(self.header["seed"]), object_)

    def rows_of(self, kind):
        """The first number of a kind of rows of tpcb, and the number behind its last one."""
        keys = self.header["keys"]
        each = [int(keys["scale"]) * int(part) for part in keys["ratio"].split(":")]
        at = ["branch", "teller", "account"].index(kind)
        return sum(each[:at]), sum(each[:at + 1])

    def opened(self):
        """The accounts that clients opened, by their keys."""
        if self.opened_keys is None:
            sent = {op["object"] for tx in self.sent.values() for op in tx["ops"]}
            self.opened_keys = {files.key(self.header, n): n for n in sent | set(self.by_object) if n >= 1 << 47}
        return self.opened_keys

    def number(self, name):
        """The number of an object, by its name."""
        if self.header["workload"] == "tpcb":  # each kind counts from 1, and branches come first, then tellers
            kind, n = name.split(" ")
            return self.rows_of(kind)[0] + int(n) - 1
        if found := re.search(r"^list (\d+)-(\d+)$|insert (\d+) of run (\d+)\)$", name or ""):
            run, n, insert, of = found.groups()
            return int(run) << 36 | int(n) if run else int(of) << 48 | int(insert)
        if "opened in run" in (name or ""):
            return self.opened().get(name.split(" ")[0])
        found = re.search(r"(\d+)\)?$", name or "")
        return int(found.group(1)) if found else None


def who(member):
    return member["id"]


# A function for each kind of statement: whether it is so.

def lost(r, f):
    id_ = f["transaction"]
    return r.outcome(id_) == "committed" and bool(r.writes(id_)) and not r.rows.get(id_)


def altered(r, f):
    id_ = f["transaction"]
    want = "unknown" if f.get("unknown") else "committed"
    return r.outcome(id_) == want and bool(r.rows.get(id_)) and not r.whole(id_)


def ghost(r, f):
    id_ = f["transaction"]
    return r.outcome(id_) == f["outcome"] in ("aborted", "rejected") and bool(r.rows.get(id_))


def closed_ghost(r, f):
    id_ = f["transaction"]
    return r.sent[id_]["looked_up"] and r.outcome(id_) == "aborted" and \
        bool(r.rows.get(id_)) or id_ in r.tombstones and bool(r.rows.get(id_))


def never_sent(r, f):
    id_ = f["transaction"]
    return id_ not in r.sent and (id_ in r.tombstones if f.get("tombstone") else bool(r.rows.get(id_)))


def twice(r, f):
    seen = [row["object"] for row in r.rows.get(f["transaction"], [])]
    return len(seen) != len(set(seen))


def two_versions(r, f):
    id_, n = f["transaction"], r.number(f["object"])
    seen = any(op["observed"] and op["object"] == n and op["version"] == f["seen"] and text(op["last"]) == id_
               for tx in r.sent.values() for op in tx["ops"])
    end = r.ended.get(n)
    seen = seen or bool(end and end["version"] == f["seen"] and text(end["last"]) == id_)
    return seen and r.made(id_, n, f["made"])


def total(r, f):
    end = sum(o["balance"] for o in r.ended.values())
    return end == f["end"] and r.header["total"] == f["load"] and end != f["load"]


def objects(r, f):
    made = r.header["objects"]
    found = sum(1 for n in r.ended if n < made)
    return found == f["found"] and made == f["made"] and set(r.ended) != set(range(made))


def negative(r, f):
    n = r.number(f["object"])
    if f["ended"]:
        return r.ended[n]["balance"] == f["balance"] < 0
    return r.books(n, f["version"])[0] == f["balance"] < 0


def books(r, f):
    n = r.number(f["object"])
    want, legs = r.books(n)
    end = r.ended[n]
    return (end["balance"], end["version"], want, legs) == (f["balance"], f["version"], f["want"], f["legs"]) \
        and (end["balance"] != want or end["version"] != legs)


def same_version(r, f):
    n = r.number(f["object"])
    return who(f["first"]) != who(f["second"]) and \
        all(r.made(who(f[m]), n, f["version"]) for m in ("first", "second"))


def lost_update(r, f):
    n = r.number(f["object"])
    ops = [r.op(who(f[m]), n) for m in ("first", "second")]
    return same_version(r, f) and all(op and (not op["observed"] or op["version"] == f["version"] - 1) for op in ops)


def no_such_leg(r, f):
    n = r.number(f["object"])
    end = r.ended[n]
    return text(end["last"]) == f["transaction"] and end["version"] == f["version"] and \
        not any(row["object"] == n and row["version"] == f["version"] for row in r.rows.get(f["transaction"], []))


def later_leg(r, f):
    n = r.number(f["object"])
    return r.ended[n]["version"] == f["version"] < max(row["version"] for row in r.by_object[n])


def unexplained_balance(r, f):
    op = r.op(f["transaction"], r.number(f["object"]))
    return bool(op and op["observed"]) and (op["version"], op["balance"]) == (f["version"], f["balance"])


def read_as(r, f):
    n = r.number(f["object"])
    if f["reader"] == "0-0-0":  # the account itself names it in the end
        return (r.ended[n]["version"], text(r.ended[n]["last"])) == (f["version"], f["writer"])
    op = r.op(f["reader"], n)
    return bool(op and op["observed"]) and (op["version"], op["balance"], text(op["last"])) == (f["version"],
        f["balance"], f["writer"])


def odd_read(r, f):
    n, reader, writer = r.number(f["object"]), who(f["reader"]), who(f["writer"])
    op = r.op(reader, n)
    if not op or not op["observed"] or (op["version"], text(op["last"]), op["balance"]) != (f["version"], writer,
        f["balance"]):
        return False
    if bool(f.get("ended")) != (r.ended is not None) or writer in r.sent and r.outcome(writer) != f["outcome"]:
        return False
    rows = [row["version"] for row in r.rows.get(writer, []) if row["object"] == n]
    fate = f["fate"]
    if fate == "never recorded":
        return writer not in r.sent
    if fate == "not applied":
        return r.outcome(writer) == f["outcome"] and not r.rows.get(writer)
    if fate == "vanished":
        return r.outcome(writer) == "committed" and not r.rows.get(writer)
    if fate == "did not make the version":
        return f["version"] not in rows
    return f["made"] in rows or r.made(writer, n, f["made"])


def garbage_read(r, f):
    n = r.number(f["object"])
    op = r.op(who(f["reader"]), n)
    if not op or (op["version"], op["balance"]) != (f["version"], f["balance"]) or f["balance"] == f["want"]:
        return False
    return r.ended is None or r.books(n, f["version"])[0] == f["want"]


def dependency(r, f):
    one, other, kind = who(f["from"]), who(f["to"]), f["kind"]
    if kind == "real time":
        return r.sent[other]["try"] - r.sent[one]["end"] == f["apart_ns"] > 0
    if kind == "predicate" or not f.get("object"):
        return None
    if kind not in ("wr", "rw", "ww"):
        return False
    n, version = r.number(f["object"]), f["version"]
    if kind == "wr":
        return r.made(one, n, version) and r.read(other, n, version) and text(r.op(other, n)["last"]) == one
    begins = r.read(one, n, version) if kind == "rw" else r.made(one, n, version)
    later = version + 1
    known = {row["version"] for row in r.by_object[n]}
    while later not in known and later <= max(known, default=0):
        later += 1  # who made the versions between is not there any more
    return begins and (r.made(other, n, version + 1) or r.made(other, n, later))


def cycle(r, f):
    steps = f["steps"]
    answers = [dependency(r, s) for s in steps]
    linked = all(who(a["to"]) == who(b["from"]) for a, b in zip(steps, steps[1:]))
    if len(steps) < f["transactions"] and len(steps) < SHOWN:
        return False
    closed = len(steps) < f["transactions"] or who(steps[-1]["to"]) == who(steps[0]["from"])
    if not linked or not closed or False in answers:
        return False
    return None if None in answers else True


def audit_sum(r, f):
    seen = sum(op["balance"] for op in r.sent[f["transaction"]]["ops"])
    return seen == f["saw"] != f["total"] == r.header["total"]


def not_found(r, f):
    tx = r.sent[f["transaction"]]
    return tx["outcome"] == "rejected" or any(not op["observed"] for op in tx["ops"])


def foreign_row(r, f):
    return f["row"] in r.unexpected


def foreign_leg(r, f):
    return any(row["object"] >= r.header["objects"] for row in r.rows.get(f["transaction"], []))


def component(r, f):
    return f["transaction"] in r.sent or bool(r.rows.get(f["transaction"]))


def grown(r):
    """By how much the balances of each kind of rows of tpcb grew, and what was added to them: what committed
    transactions sent, and what the history has of others."""
    grew = {}
    for kind in ("branch", "teller", "account"):
        first, behind = r.rows_of(kind)
        grew[kind] = sum(o["balance"] for n, o in r.ended.items() if first <= n < behind) - \
            sum(amount for n, amount in r.openings.items() if first <= n < behind)
    added = sum(tx["ops"][0]["amount"] for tx in r.sent.values() if tx["outcome"] == "committed" and tx["ops"])
    added += sum(row["amount"] for i, rows in r.rows.items() if r.outcome(i) != "committed" for row in rows
        if row["number"] == 0)
    return grew, added


def growth(r, f):
    grew, added = grown(r)
    return all(grew[KIND_OF_GROUP[g["name"]]] == g["grew"] for g in f["groups"]) and \
        added == f["added"] and any(n != added for n in grew.values())


def row_books(r, f):
    n = r.number(f["object"])
    return r.ended[n]["balance"] == f["balance"] != f["want"] == r.books(n)[0]


def no_path(r, f):
    """A balance that no transaction left there and that was not the first one is on no path."""
    n, op = r.number(f["object"]), r.op(f["transaction"], r.number(f["object"]))
    if not op or not op["observed"] or (op["balance"], op["amount"]) != (f["balance"], f["amount"]):
        return False
    others = [r.op(i, n) for i in r.writers_of(n) if i != f["transaction"] and r.rows.get(i)]
    left = {other["balance"] + other["amount"] for other in others if other["observed"]} | {r.openings[n]}
    taken = collections.Counter(other["balance"] for other in others if other["observed"])
    unsure = any(not other["observed"] for other in others)
    if not unsure and (f["balance"] not in left or taken[f["balance"]] and not repeated(left, others, f["balance"])):
        return True
    return None


def repeated(left, others, balance):
    """Whether a balance was left more than once, so that two transactions may have taken it up."""
    return sum(other["balance"] + other["amount"] == balance for other in others) + (balance == 0) > 1


def not_serializable(r, f):
    return any(c["name"] == "serializable" and c["status"] == "invalid" for c in r.result["checks"])


KIND_OF_GROUP = {"branches": "branch", "tellers": "teller", "accounts": "account"}

KINDS = {
    "lost": lost, "altered": altered, "ghost": ghost, "closed-ghost": closed_ghost, "never-sent": never_sent,
    "twice": twice,
    "two-versions": two_versions, "sum": total, "objects": objects, "negative": negative, "books": books,
    "same-version": same_version, "lost-update": lost_update, "no-such-leg": no_such_leg, "later-leg": later_leg,
    "unexplained-balance": unexplained_balance, "read-as": read_as, "odd-read": odd_read,
    "garbage-read": garbage_read,
    "dependency": dependency, "cycle": cycle, "audit-sum": audit_sum, "not-found": not_found,
    "foreign-row": foreign_row,
    "foreign-leg": foreign_leg, "component": component, "growth": growth, "row-books": row_books, "no-path": no_path,
    "not-serializable": not_serializable,
    **models.KINDS,
}


def statements(directory, recording):
    """The statements that the checks made, as (check, kind, values)."""
    path = os.path.join(directory, "violations.jsonl")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                one = json.loads(line)
                if "fact" in one:
                    yield one["check"], one["kind"], one["fact"]
    for check in recording.result["checks"]:
        for finding in check.get("findings", []):
            yield check["name"], finding["kind"], finding["first"]


def total_opinion(r):
    """Whether a look at every row contradicts the total: True where it is violated."""
    if r.header["workload"] == "bank":
        return {"total": sum(o["balance"] for o in r.ended.values()) != r.header["total"] or
            set(r.ended) != set(range(r.header["objects"]))}
    grew, added = grown(r)
    return {"total": any(n != added for n in grew.values())}


def own_opinion(r):
    """What a look at every transaction says of the checks: True where one is violated."""
    if r.header["workload"] in models.OPINIONS:
        return models.OPINIONS[r.header["workload"]](r)
    applied = [i for i in r.sent if r.outcome(i) == "committed" and r.writes(i)]
    if r.header["workload"] == "tpcb":
        return total_opinion(r)
    return {
        "durable": any(not r.whole(i) for i in applied),
        "no-ghost": any(rows and (i not in r.sent or
            r.outcome(i) in ("aborted", "rejected")) for i, rows in r.rows.items()),
        **total_opinion(r),
    }


def disagreements(directory, recording):
    """The checks on which the result and the look at every transaction disagree."""
    if recording.ended is None or "predicate codes" in recording.header.get("keys", {}):
        return
    checks = {c["name"]: c for c in recording.result["checks"]}
    for name, violated in own_opinion(recording).items():
        check = checks.get(name, {"status": "unknown"})
        others = {f["kind"] for f in check.get("findings", [])} & {"not-found", "altered"}  # not looked at here
        if check["status"] == ("valid" if violated else "invalid") and not (name == "durable" and others):
            yield {"run": directory, "check": name, "status": check["status"], "violated": violated}


def verify(directory):
    recording = Recording(directory)
    right, wrong, open_ = collections.Counter(), list(disagreements(directory, recording)), collections.Counter()
    for check, kind, fact in statements(directory, recording):
        answer = KINDS[kind](recording, {**fact, "check": check}) if kind in KINDS else None
        if answer is None:
            open_[kind] += 1
        elif answer:
            right[kind] += 1
        else:
            wrong.append({"run": directory, "check": check, "kind": kind, "fact": fact})
    return right, wrong, open_


def main(directories):
    right, wrong, open_ = collections.Counter(), [], collections.Counter()
    for directory in directories:
        r, w, o = verify(directory)
        right, open_ = right + r, open_ + o
        wrong += w
    print(json.dumps({"right": right, "wrong": wrong, "not_rebuilt": open_}, indent=2, sort_keys=True))
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: verify_findings.py RUN_DIR...")
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, ValueError, IndexError, KeyError) as problem:
        sys.exit(f"verify_findings.py: {problem!r}")

#!/usr/bin/env python3
"""Read what a run of Stroppy has recorded, by docs/history-format.md alone.

    read_history.py RUN_DIR

prints, as JSON, who recorded it, how many transactions of each kind and outcome
there are, what the end state adds up to, and of how many accounts the opening balance
and the ledger make the end balance. It verifies every checksum, the manifest, and that no
client's transactions have a gap. It needs nothing but Python 3's standard library.
"""

import collections
import json
import os
import struct
import sys

MAGIC = b"stroppy\x1a"
FORMATS = (3, 4, 5, 6)  # format 3 has no elements, 4 no bytes of broken values, 5 no differences
TRANSACTIONS, ACCOUNTS, LEDGER = 1, 2, 3
OUTCOMES = ["unknown", "committed", "rejected", "aborted"]
MASK = (1 << 64) - 1


def make_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ 0x82F63B78 if n & 1 else n >> 1
        table.append(n)
    return table


TABLE = make_table()


def crc32c(data, start=0):
    crc = start ^ 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Payload:
    """The records of one block, taken one behind the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def u(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def s(self):
        value = self.u()
        return value >> 1 ^ -(value & 1)

    def bytes(self):
        length = self.u()
        self.at += length
        return self.data[self.at - length:self.at]

    def id(self, base):
        """An id as (run, client, sequence), relative to another one; None for none."""
        run = self.u()
        if run == 0:
            return None
        run = base[0] + ((run - 1) >> 1 ^ -((run - 1) & 1))
        client = self.u()
        return run, client, base[2] + self.s()


def parts(number):
    """The run, client and sequence of an id: 14, 17 and 32 bits."""
    return number >> 49, number >> 32 & (1 << 17) - 1, number & (1 << 32) - 1


def signed(number):
    """A number modulo 2^64 as a signed one."""
    number &= MASK
    return number - (1 << 64) if number >> 63 else number


class File:
    """A file of blocks: its description, and its blocks as (whose, records, payload)."""

    def __init__(self, path, contents):
        with open(path, "rb") as f:
            self.data = f.read()
        self.path, self.complete = path, False
        if self.data[:8] != MAGIC or len(self.data) < 24:
            raise ValueError(f"{path}: not a file of Stroppy")
        version, kind, length, checksum = struct.unpack_from("<IIII", self.data, 8)
        if version not in FORMATS:
            raise ValueError(f"{path}: format {version}, and this reads formats {FORMATS}")
        text = self.data[24:24 + length]
        if crc32c(self.data[:20] + text) != checksum or kind != contents:
            raise ValueError(f"{path}: its description is damaged, or another file's")
        self.checksum, self.header = checksum, json.loads(text)
        self.first = 24 + length

    def verify(self, manifest):
        """Compares the file, once it is read, with what the manifest names."""
        entry = manifest.get(os.path.basename(self.path))
        if entry and (not self.complete or self.footer != (entry.get("blocks", 0), entry.get("records", 0), entry["checksum"])):
            raise ValueError(f"{self.path}: it is not the file that the manifest names")

    def blocks(self):
        at, count, records = self.first, 0, 0
        running = crc32c(struct.pack("<I", self.checksum))
        while at < len(self.data):
            if self.data[at:at + 4] == b"end!":
                if len(self.data) - at < 28:
                    return  # cut off
                footer = struct.unpack_from("<QQI", self.data, at + 4)
                (checksum,) = struct.unpack_from("<I", self.data, at + 24)
                if at + 28 != len(self.data) or crc32c(self.data[at:at + 24]) != checksum or footer != (count, records, running):
                    raise ValueError(f"{self.path}: its footer is wrong")
                self.complete, self.footer = True, footer
                return
            head = self.data[at:at + 24]
            if len(head) < 24:
                return  # cut off
            magic, whose, length, n, checksum, own = struct.unpack("<4sIIIII", head)
            if magic != b"blck" or crc32c(head[:20]) != own:
                raise ValueError(f"{self.path}: damaged at {at}")
            payload = self.data[at + 24:at + 24 + length]
            if len(payload) < length:
                return  # cut off
            if crc32c(payload) != checksum:
                raise ValueError(f"{self.path}: damaged at {at}")
            count, records, running = count + 1, records + n, crc32c(head[20:24], running)
            yield whose, n, Payload(payload)
            at += 24 + length


def transactions(file):
    latest = {}  # the last sequence of each client
    before = {}  # the last transaction of each client
    for client, n, p in file.blocks():
        last, end, lists = 0, 0, {}
        for _ in range(n):
            tx = transaction(p, last, end, lists, before.get(client))
            last, end = tx["number"], tx["end"]
            sequence = latest.get(client, 0) + 1
            if tx["id"] != (file.header["run"], client, sequence):
                raise ValueError(f"{file.path}: transaction {sequence} of client {client} is missing")
            latest[client] = sequence
            before[client] = tx
            yield tx


def manifest(folder, recorded):
    """The entries of the manifest of a recording, by the names of files; none without one."""
    path = os.path.join(folder, "manifest.json")
    if not os.path.exists(path):
        if recorded.complete and recorded.header.get("manifest"):
            raise ValueError(f"{path}: it is missing")
        return {}
    with open(path, "rb") as f:
        listed = json.load(f)
    checksum, listed["checksum"] = listed["checksum"], 0
    if crc32c(json.dumps(listed, separators=(",", ":")).encode()) != checksum:
        raise ValueError(f"{path}: its checksum is wrong")
    if listed["identity"]["header_checksum"] != recorded.checksum:
        raise ValueError(f"{path}: it is of another run than the history beside it")
    return listed["files"]


def transaction(p, last, end, lists, before):
    first, more = p.byte(), 0
    kind, outcome, reason, attempts, limit = first & 15, first >> 4 & 7, 0, 1, 0
    if first & 0x80:
        more = p.byte()
        if more & 16:
            kind, outcome = p.byte(), p.byte()
        if more & 4:
            reason = p.byte()
        if more & 8:
            attempts = p.u()
        if more & 32:
            limit = p.u()
    number = last + 1 + p.s() & MASK
    sent = signed(end + p.s())
    due = signed(sent - p.s())
    tried = signed(sent + p.s())
    end = signed(tried + p.s())
    count, differs = p.u(), more & 32 and limit == 0
    ops, object_, balance, total = [], 0, 0, 0
    if differs:
        if before is None or before["number"] + 1 != number or len(before["ops"]) != count:
            raise ValueError(f"transaction {parts(number)} differs from one that is not there")
        ops, count = differences(p, before["ops"], number), 0
    for _ in range(count):
        flags = p.byte()
        object_ = object_ + p.s() & MASK
        amount = p.s() if flags & 8 else -total if flags & 16 else 0
        total = signed(total + amount)
        op = {"object": object_, "write": bool(flags & 1), "observed": bool(flags & 2),
              "amount": amount, "version": 0, "balance": 0, "last": None, "state": flags >> 5}
        if flags & 4:
            op["version"] = p.u()
            balance = op["balance"] = signed(balance + p.s())
            op["last"] = p.id(parts(number))
        ops.append(op)
    loose = elements(p, ops, lists) if more & 64 else []
    broken = p.bytes() if more & 128 else b""
    return {"number": number, "id": parts(number), "kind": kind, "outcome": OUTCOMES[outcome], "reason": reason,
            "looked_up": bool(more & 1), "warmup": bool(more & 2), "attempts": attempts, "limit": limit,
            "due": due, "sent": sent, "try": tried, "end": end, "ops": ops, "loose": loose, "broken": broken}


def differences(p, before, number):
    """The operations of a transaction that is recorded by what differs from the one before."""
    ops, at = list(before), 0
    for _ in range(p.u()):
        at += p.u()
        old, flags = ops[at], p.byte()
        op = {"object": old["object"], "write": False, "observed": bool(flags & 2),
              "amount": 0, "version": 0, "balance": 0, "last": None, "state": flags >> 5}
        if flags & 4:
            op["version"] = old["version"] + p.s() & MASK
            op["balance"] = signed(old["balance"] + p.s())
            op["last"] = p.id(parts(number))
        ops[at] = op
        at += 1
    return ops


def elements(p, ops, lists):
    """Gives each operation that read a list its elements, and returns what is left over.

    lists holds what the block's records have read last of the lists that are remembered."""
    left, last = p.u(), 0

    def take(n):
        nonlocal last
        taken = []
        for _ in range(n):
            last = last + p.s() & MASK
            taken.append(last)
        return taken

    for op in ops:
        n = min(op["balance"], left)
        if not op["observed"] or n <= 0:
            continue
        known = lists.get(op["object"] % 64)
        before = known[1] if known and known[0] == op["object"] else []
        same = before[:p.u()]
        if same:
            last = same[-1]
        op["elements"] = same + take(n - len(same))
        lists[op["object"] % 64] = op["object"], op["elements"][:32]
        left -= n
    return take(left)


def objects(file, unexpected):
    for whose, n, p in file.blocks():
        number, balance, last = 0, 0, (0, 0, 0)
        for _ in range(n):
            if whose == 1:
                unexpected.append(p.bytes().decode())
                continue
            number = number + 1 + p.s() & MASK
            balance = signed(balance + p.s())
            version, writer, state = p.u(), p.id(last), p.byte()
            last = writer or (0, 0, 0)
            yield {"object": number, "balance": balance, "version": version, "last": writer, "state": state}


def legs(file):
    for _, n, p in file.blocks():
        last, object_ = (0, 0, 0), 0
        for _ in range(n):
            number = p.u()
            transfer = p.id(last)
            last = transfer or (0, 0, 0)
            object_ = object_ + p.s() & MASK
            yield {"number": number >> 5, "state": number >> 2 & 7, "mark": number & 3,
                   "transfer": transfer, "object": object_, "amount": p.s(), "version": p.u()}


def mix(x):
    x = x + 0x9E3779B97F4A7C15 & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def permute(width, seed, x):
    for i in range(3):
        x = (x + mix(seed + 2 * i + 1 & MASK)) * (mix(seed + 2 * i + 2 & MASK) | 1) & (1 << width) - 1
        x ^= x >> (width + 1) // 2
    return x


def base32(number, digits):
    return "".join("0123456789abcdefghijklmnopqrstuv"[number >> 5 * i & 31] for i in reversed(range(digits)))


def key(header, n):
    """The key of an account or of a record, as the database has it; empty in other workloads."""
    if header["workload"] == "bank":
        whole = permute(48, mix(header["seed"]), n)
        bic = "".join("BDFGKLMN"[whole >> 36 + 3 * i & 7] for i in reversed(range(4)))
        return f"{bic}XX2Z/{whole & (1 << 36) - 1:011d}"
    if header["workload"] != "kv":
        return ""
    size, place = int(header["keys"]["key_size"]), permute(62, mix(header["seed"]), n)
    text, number = "kv/" + base32(place, 13), place
    while len(text) < size:
        number = mix(number)
        text += base32(number, min(12, size - len(text)))
    return text


def opening(header, n):
    """What account n held after the load."""
    if header["workload"] != "bank" or n >= 1 << 47:
        return 0
    personal = 10_000 + (mix(header["seed"] ^ mix(n + 1)) * 990_001 >> 64)
    return personal * 100 if n % 100 == 0 else personal


def summary(directory):
    folder = os.path.join(directory, "history")
    recorded = File(os.path.join(folder, "transactions.bin"), TRANSACTIONS)
    header = recorded.header
    names = {k["number"]: k["name"] for k in header.get("kinds", [])}
    counts, operations, amounts, read, read_sum = collections.Counter(), 0, 0, 0, 0
    versions, balances = 0, 0
    for tx in transactions(recorded):
        counts[names.get(tx["kind"], str(tx["kind"])) + " " + tx["outcome"]] += 1
        operations += len(tx["ops"])
        versions += sum(op["version"] for op in tx["ops"])
        balances += sum(op["balance"] for op in tx["ops"])
        for listed in [op.get("elements", []) for op in tx["ops"]] + [tx["loose"]]:
            read, read_sum = read + len(listed), read_sum + sum(listed) & MASK
        if tx["outcome"] == "committed":
            amounts += sum(op["amount"] for op in tx["ops"] if op["write"])
    result = {"workload": header["workload"], "run": header["run"], "complete": recorded.complete,
              "transactions": dict(counts), "operations": operations, "amounts": amounts,
              "elements": read, "element_sum": read_sum,
              "read_versions": versions & MASK, "read_balances": balances & MASK}
    listed = manifest(folder, recorded)
    recorded.verify(listed)
    path = os.path.join(folder, "end-objects.bin")
    if not os.path.exists(path):
        if "end-objects.bin" in listed:
            raise ValueError(f"{path}: it is missing")
        return result
    held, book, unexpected = File(path, ACCOUNTS), File(os.path.join(folder, "end-ledger.bin"), LEDGER), []
    for file in (held, book):
        if file.header.get("header_checksum", recorded.checksum) != recorded.checksum:
            raise ValueError(f"{file.path}: it is of another run than the history beside it")
    rows = list(objects(held, unexpected))
    entries = [leg for leg in legs(book) if leg["mark"] == 0]
    for file in (held, book):
        if not file.complete:
            raise ValueError(f"{file.path}: it is not whole")
        file.verify(listed)
    expected = collections.Counter()
    for entry in entries:
        expected[entry["object"]] += entry["amount"]
    closed = sum(opening(header, r["object"]) + expected[r["object"]] == r["balance"] for r in rows)
    names = [key(header, r["object"]) for r in sorted(rows, key=lambda r: r["object"])]
    result.update(first=names[:1], last=names[-1:], closed=closed, objects=len(rows), balances=sum(r["balance"] for r in rows), versions=sum(r["version"] for r in rows),
                  entries=len(entries), entry_amounts=sum(e["amount"] for e in entries), unexpected=len(unexpected))
    return result


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: read_history.py RUN_DIR")
    try:
        print(json.dumps(summary(sys.argv[1]), indent=2, sort_keys=True))
    except (OSError, ValueError, IndexError) as problem:
        sys.exit(f"read_history.py: {problem}")

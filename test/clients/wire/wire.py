"""Messages of the PostgreSQL protocol, one by one: what is sent, and what has come when the client waits.

    wire.py play URL FILE             plays a script, message by message and then in pieces from wait to
                                      wait; every answer must be there when it is waited for
    wire.py record URL FILE           writes the answers of URL, a PostgreSQL, into the script
    wire.py random PEER URL SEEDS     plays random sequences on both and compares (SEEDS as 1..500)
    wire.py generate FIRST COUNT      prints random sequences as a script without answers

A script has sequences, parted by empty lines; each is played on a new connection, after the lines of
`setup` at the top of the file. Lines that begin with four spaces are answers. Commands (`-` is the
empty name):

    Q SQL              simple query            P NAME [:OID,OID] SQL     Parse
    B PORTAL NAME [(FORMAT)] VALUE...  Bind    D s|p NAME                Describe
    E PORTAL MAX       Execute                 C s|p NAME                Close
    S / H              Sync / Flush            d TEXT / c / f TEXT       CopyData, CopyDone, CopyFail
    F [OID [(FORMAT)] VALUE...]  function call     raw TAG HEX         any message
    start NAME=VALUE;...  first line: the parameters of the startup, `*` for the usual value
    go                     sends the startup        ssl        SSLRequest
    bytes HEX              sends bytes
    wait               what comes until then is compared: whatever PostgreSQL has sent must be there

At a `wait` more may have come than from PostgreSQL, which holds back what nobody has asked for; all
answers of a sequence together must be the same.
"""

import itertools
import os
import random
import select
import socket
import struct
import sys
import time
from urllib.parse import urlparse

QUIET = 0.06  # a recorded peer that has said nothing for so long waits for its client
PATIENCE = 3.0  # an answer that does not come within this time never does


class Connection:
    def __init__(self, url, parameters=None):
        parts = urlparse(url)
        self.socket = socket.create_connection((parts.hostname, parts.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parameters is None:
            parameters = [("user", parts.username), ("database", parts.path[1:])]
        else:
            usual = {"user": parts.username, "database": parts.path[1:]}
            parameters = [(k, usual.get(k, v) if v == "*" else v) for k, v in parameters]
        body = b"".join(text(word) for pair in parameters for word in pair) + b"\0"
        self.startup = struct.pack("!II", len(body) + 8, 196608) + body
        self.buffer = b""
        self.bare = 0  # bytes that are no message, still to come
        self.closed = False
        self.together = False  # messages are kept until `flush`
        self.kept = b""

    def start(self):
        self.socket.sendall(self.startup)

    def send(self, tag, body=b""):
        self.kept += tag.encode() + struct.pack("!I", len(body) + 4) + body
        if not self.together:
            self.flush()

    def flush(self):
        kept, self.kept = self.kept, b""
        try:
            self.socket.sendall(kept)
        except OSError:
            self.closed = True

    def messages(self):
        """Takes the whole messages out of the buffer."""
        found = []
        while self.bare and self.buffer:
            found.append(("byte", self.buffer[:1]))
            self.buffer, self.bare = self.buffer[1:], self.bare - 1
        while len(self.buffer) >= 5:
            (length,) = struct.unpack("!I", self.buffer[1:5])
            if len(self.buffer) < length + 1:
                break
            found.append((chr(self.buffer[0]), self.buffer[5 : length + 1]))
            self.buffer = self.buffer[length + 1 :]
        return found

    def read(self, seconds):
        """Reads what comes next; False if nothing came."""
        if self.closed or not select.select([self.socket], [], [], seconds)[0]:
            return False
        try:
            data = self.socket.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self.closed = True
        self.buffer += data
        return True


def text(word):
    return word.encode() + b"\0"


def cut(body):
    end = body.index(b"\0")
    return body[:end].decode(), body[end + 1 :]


FIELDS = {
    "S": "severity", "C": "state", "M": "", "D": "detail", "H": "hint", "P": "position", "W": "context",
    "t": "table", "c": "column", "n": "constraint",
}


def show(tag, body):
    """A message of the server in words; None for what servers say differently."""
    if tag == "byte":
        return "Byte " + body.decode()
    if tag == "T":
        (count,) = struct.unpack("!H", body[:2])
        rest, columns = body[2:], []
        for _ in range(count):
            name, rest = cut(rest)
            _, _, oid, size, modifier, form = struct.unpack("!IhIhih", rest[:18])
            rest = rest[18:]
            columns.append(f"{name}:{oid}/{size}/{modifier}/{form}")
        return "RowDescription " + " ".join(columns)
    if tag == "D":
        (count,) = struct.unpack("!H", body[:2])
        rest, values = body[2:], []
        for _ in range(count):
            (length,) = struct.unpack("!i", rest[:4])
            value = None if length < 0 else rest[4 : 4 + length]
            rest = rest[4 + max(length, 0) :]
            printable = value is not None and all(32 <= byte < 127 for byte in value)
            values.append("NULL" if value is None else value.decode() if printable else "0x" + value.hex())
        return "DataRow " + "|".join(values)
    if tag in "EN":
        fields, rest = {}, body
        while rest[:1] not in (b"\0", b""):
            code = chr(rest[0])
            fields[code], rest = cut(rest[1:])
        if "unexpected message type" in fields["M"]:
            fields.pop("W", None)  # the session does not know how far the statement has come
        words = [f"{FIELDS[code]}={fields[code]}".lstrip("=") for code in FIELDS if code in fields]
        return ("Error " if tag == "E" else "Notice ") + "; ".join(words)
    if tag == "S":
        name, rest = cut(body)
        own = name in ("server_version", "session_authorization", "TimeZone")
        return None if own else f"ParameterStatus {name}={cut(rest)[0]}"
    if tag == "K":
        return "BackendKeyData"
    if tag == "V":
        return "FunctionResult " + ("NULL" if body[:4] == b"\xff" * 4 else "0x" + body[4:].hex())
    if tag == "C":
        return "CommandComplete " + cut(body)[0]
    if tag == "t":
        (count,) = struct.unpack("!H", body[:2])
        return "ParameterDescription " + " ".join(map(str, struct.unpack(f"!{count}I", body[2:])))
    if tag in "GH":
        form, count = struct.unpack("!BH", body[:3])
        return ("CopyInResponse" if tag == "G" else "CopyOutResponse") + f" {form} {count}"
    if tag == "d":
        return "CopyData " + body.decode("latin-1").replace("\n", "\\n")
    if tag == "Z":
        return "Ready " + body.decode()
    if tag == "R":
        return "Authentication " + str(struct.unpack("!I", body[:4])[0])
    if tag == "v":
        return "NegotiateProtocolVersion " + body.hex()
    names = {
        "1": "ParseComplete", "2": "BindComplete", "3": "CloseComplete", "n": "NoData",
        "s": "PortalSuspended", "I": "EmptyQuery", "c": "CopyDone",
    }
    return names[tag]


def name(word):
    return "" if word == "-" else word


def argument(value):
    """A value behind its length."""
    data = value.encode()
    return struct.pack("!i", -1) if value == "null" else struct.pack("!i", len(data)) + data


def send(connection, line):
    """Sends the message that a line of a script stands for."""
    verb, _, rest = line.partition(" ")
    words = rest.split(" ")
    if verb == "Q":
        connection.send("Q", text(rest.replace("\\n", "\n")))
    elif verb == "P":
        types, sql = [], rest.partition(" ")[2]
        if sql.startswith(":"):
            first, _, sql = sql.partition(" ")
            types = [int(oid) for oid in first[1:].split(",")]
        oids = b"".join(struct.pack("!I", oid) for oid in types)
        connection.send("P", text(name(words[0])) + text(sql) + struct.pack("!H", len(types)) + oids)
    elif verb == "B":
        values, result = words[2:], 0
        if values and values[0].startswith("("):
            result = int(values.pop(0).strip("()"))
        body = text(name(words[0])) + text(name(words[1])) + struct.pack("!HH", 0, len(values))
        body += b"".join(map(argument, values))
        connection.send("B", body + struct.pack("!HH", 1, result))
    elif verb in "DC":
        connection.send(verb, words[0].upper().encode() + text(name(words[1])))
    elif verb == "E":
        connection.send("E", text(name(words[0])) + struct.pack("!i", int(words[1])))
    elif verb in "SHcX":
        connection.send(verb)
    elif verb == "d":
        connection.send("d", rest.replace("\\n", "\n").replace("\\t", "\t").encode())
    elif verb == "f":
        connection.send("f", text(rest))
    elif verb == "F":
        words, form = words if rest else ["1598"], 0
        values = words[1:]
        if values and values[0].startswith("("):
            form = int(values.pop(0).strip("()"))
        body = struct.pack("!IHH", int(words[0]), 0, len(values))
        connection.send("F", body + b"".join(map(argument, values)) + struct.pack("!H", form))
    elif verb == "bytes":
        connection.socket.sendall(bytes.fromhex("".join(words)))
    elif verb == "ssl":
        connection.bare += 1
        connection.socket.sendall(struct.pack("!II", 8, 80877103))
    elif verb == "go":
        connection.start()
    elif verb == "raw":
        connection.send(words[0], bytes.fromhex("".join(words[1:])))
    else:
        raise SystemExit(f"no command {line!r}")


class Play:
    """One sequence on one server."""

    def __init__(self, url, setup, lines):
        self.said = []
        if lines[0].startswith("start"):
            pairs = [pair for pair in lines[0][6:].split(";") if pair]
            self.connection = Connection(url, [tuple(pair.split("=", 1)) for pair in pairs])
        else:
            self.connection = Connection(url)
            self.connection.start()
            self.until_ready()
            for line in setup:
                send(self.connection, line)
                self.until_ready()
            self.said.clear()

    def take(self):
        self.said += [shown for shown in (show(*m) for m in self.connection.messages()) if shown]

    def until_ready(self):
        self.said.clear()
        while not (self.said and self.said[-1].startswith("Ready")):
            if not self.connection.read(PATIENCE) or self.connection.closed:
                raise SystemExit(f"no answer during the setup: {self.said}")
            self.take()
            if any(said.startswith("Error") for said in self.said):
                raise SystemExit(f"the setup fails: {self.said}")

    def wait_quiet(self):
        """Everything that the server says before it waits itself."""
        while self.connection.read(QUIET):
            self.take()
            if self.connection.closed:
                self.said.append("closed")
                break
        return list(self.said)

    def wait_for(self, expected):
        """Reads until there is as much as expected, or time is up."""
        limit = time.monotonic() + PATIENCE
        while len(self.said) < len(expected) and self.connection.read(max(limit - time.monotonic(), 0)):
            self.take()
            if self.connection.closed:
                self.said.append("closed")
                break
            if kinds(self.said[: len(expected)]) != kinds(expected[: len(self.said)]):
                break
        return list(self.said)


def play_recording(url, setup, lines):
    """Plays a sequence; the answers at each wait."""
    play, waits = Play(url, setup, lines), []
    for line in lines:
        if line == "wait":
            waits.append(play.wait_quiet())
        elif not line.startswith("start"):
            send(play.connection, line)
    return waits


def play_expecting(url, setup, lines, waits, together=False):
    """Plays a sequence, what lies between two waits in one piece or message by message; why it is not
    as expected, or None."""
    play, at = Play(url, setup, lines), 0
    play.connection.together = together and not any(line.startswith(("bytes", "ssl")) for line in lines)
    free = any(is_unordered(line) for line in lines)

    def unordered(lines):
        return any_order(lines) if free else lines

    for number, line in enumerate(lines):
        if line == "wait":
            play.connection.flush()
            said = play.wait_for(waits[at])
            last = at + 1 == len(waits)
            wanted, came = unordered(waits[at]), unordered(said[: len(waits[at])])
            if last and came == wanted and not play.connection.closed:
                said = play.wait_quiet() if QUIET_END else said
            if (unordered(said) if last else came) != wanted:
                return difference(lines[: number + 1], waits[at], said)
            at += 1
        elif not line.startswith("start"):
            send(play.connection, line)
    return None


def is_row(line):
    return line.startswith("DataRow")


def kinds(lines):
    """The messages without what rows hold."""
    return ["DataRow" if is_row(line) else line for line in lines]


def is_unordered(line):
    """Whether a statement gives rows in no order: RETURNING promises none, and several nodes have
    another one than one server; a SELECT without ORDER BY of more than one row."""
    if line[:2] not in ("P ", "Q "):
        return False
    text = line.upper()
    if "RETURNING" in text:
        return True
    single = any(word in text for word in ("ORDER BY", "COUNT(", "ID = "))
    return "SELECT" in text and " FROM " in text and not single


def any_order(lines):
    """Rows that follow each other in one order."""
    out = []
    for is_rows, run in itertools.groupby(lines, is_row):
        out.extend(sorted(run) if is_rows else run)
    return out


QUIET_END = False


def difference(lines, expected, said):
    same = 0
    while same < min(len(expected), len(said)) and expected[same] == said[same]:
        same += 1
    shown = "\n".join(f"  > {line}" for line in lines)
    same_lines = "".join(f"    {line}\n" for line in expected[:same])
    return (
        f"{shown}\n{same_lines}  expected: {expected[same:same + 4]}\n  found:    {said[same:same + 4]}"
    )


def read_script(path):
    """Comments and sequences of a file: (setup, [(comments, lines, waits)])."""
    setup, sequences = [], []
    for block in open(path, encoding="utf-8").read().split("\n\n"):
        comments, lines, waits, said = [], [], [], []
        for line in block.splitlines():
            if line.startswith("#"):
                comments.append(line)
            elif line.startswith("    "):
                said.append(line[4:])
                waits[-1] = list(said)
            elif line.startswith("setup "):
                setup.append(line[6:])
            else:
                lines.append(line)
                if line == "wait":
                    waits.append(list(said))
        if lines:
            sequences.append((comments, lines, waits))
        elif comments:
            sequences.append((comments, [], []))
    return setup, sequences


def write_script(path, setup, sequences):
    blocks = []
    for comments, lines, waits in sequences:
        out, at, before = list(comments), 0, 0
        for line in lines:
            out.append(line)
            if line == "wait":
                out += ["    " + said for said in waits[at][before:]]
                before, at = len(waits[at]), at + 1
        blocks.append("\n".join(out))
    head = "\n".join(f"setup {line}" for line in setup)
    first, rest = blocks[0], blocks[1:]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n\n".join([first, head] + rest) + "\n")


# Random sequences.

SETUP = [
    "Q DROP TABLE IF EXISTS t",
    "Q CREATE TABLE t (id int PRIMARY KEY, v text)",
    "Q INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')",
]

STATEMENTS = [
    ("SELECT id, v FROM t ORDER BY id", []),
    ("SELECT id, v FROM t ORDER BY id", []),
    ("SELECT id FROM t WHERE id >= $1 ORDER BY id", ["2"]),
    ("SELECT $1::int4 + 1 AS n", ["41"]),
    ("SELECT g FROM generate_series(1, 40) AS g", []),
    ("SHOW application_name", []),
    ("SELECT id FROM t WHERE id = $1 FOR UPDATE", ["3"]),
    ("SELECT id FROM t WHERE 1/(id - id) = 1", []),
    ("INSERT INTO t VALUES ($1, 'x')", ["9"]),
    ("INSERT INTO t VALUES ($1, 'x')", ["1"]),
    ("INSERT INTO t VALUES ($1, 'y'), (21, 'z') RETURNING id", ["20"]),
    ("UPDATE t SET v = v || 'u' WHERE id <= 3 RETURNING v", []),
    ("UPDATE t SET v = 'w' WHERE id = $1", ["2"]),
    ("DELETE FROM t WHERE id = $1", ["4"]),
    ("BEGIN", []),
    ("COMMIT", []),
    ("ROLLBACK", []),
    ("", []),
    ("SELEC 1", []),
    ("SELECT nope FROM t", []),
    ("SET application_name = 'wire'", []),
    ("SHOW application_name", []),
    ("COPY t FROM STDIN", []),
    ("COPY (SELECT id FROM t ORDER BY id) TO STDOUT", []),
]

QUERIES = [
    "SELECT 1 AS one; SELECT 2 AS two",
    "BEGIN", "COMMIT", "ROLLBACK", "", ";",
    "INSERT INTO t VALUES (30, 'q'); SELECT 1/(id-id) FROM t; SELECT 3",
    "SELECT id FROM t WHERE id < 3 ORDER BY id",
    "SET application_name = 'q'",
    "COPY (SELECT 7 AS x) TO STDOUT",
]


def sequence(seed):
    """Random messages; the end brings every server back to order."""
    rng, lines = random.Random(seed), []
    names, portals = ["-", "-", "s1", "s2"], ["-", "-", "p1", "p2"]
    params = {}
    for _ in range(rng.randint(2, 14)):
        kind = rng.random()
        if kind < 0.55:  # the usual way: Parse, Bind, Describe, Execute
            statement, values = rng.choice(STATEMENTS)
            s, p = rng.choice(names), rng.choice(portals)
            params[s] = values
            steps = [f"P {s} {statement}", f"B {p} {s} {' '.join(values)}".rstrip()]
            if rng.random() < 0.4:
                steps.append(f"D p {p}")
            steps.append(f"E {p} {rng.choice([0, 0, 1, 2, 3, 100])}")
            if rng.random() < 0.3:
                steps.append(f"E {p} {rng.choice([0, 1, 2])}")
            if "COPY t" in statement:
                steps.append("wait")
                steps += copy_in(rng)
        else:
            p, s = rng.choice(portals), rng.choice(names)
            values = " ".join(params.get(s, []))
            steps = [rng.choice([
                f"D s {s}", f"D p {p}", f"C s {s}", f"C p {p}", f"E {p} {rng.choice([0, 1, 2])}",
                f"B {p} {s} {values}".rstrip(), "Q " + rng.choice(QUERIES), "d 1\\tx\\n", "c",
            ])]
        for step in steps:
            lines.append(step)
            if step == "wait":
                continue
            if rng.random() < 0.15:
                lines.append(rng.choice(["H", "H", "S"]))
            if rng.random() < 0.12:
                lines.append("wait")
    return lines + ["H", "wait", "c", "S", "wait", "Q ROLLBACK", "wait"]


def copy_in(rng):
    lines = []
    for _ in range(rng.randint(0, 3)):
        lines.append(rng.choice(["d 11\\tx\\n", "d 12\\ty\\n", "d 1\\tdup\\n", "d bad\\tx\\n", "d 13\\n", "H", "S", "S"]))
    lines.append(rng.choice(["c", "c", "c", "f given up", "S", "P - SELECT 1", "Q SELECT 1"]))
    return lines


def run_random(peer, url, first, last):
    different = 0
    for seed in range(first, last + 1):
        lines = sequence(seed)
        waits = play_recording(peer, SETUP, lines)
        wrong = play_expecting(url, SETUP, lines, waits)
        if wrong:
            different += 1
            print(f"seed {seed}\n{wrong}\n", flush=True)
    print(f"sequences: {last + 1 - first}, different: {different}")
    return 1 if different else 0


def main(args):
    if args[:1] == ["random"]:
        first, _, last = args[3].partition("..")
        return run_random(args[1], args[2], int(first), int(last or first))
    if args[:1] == ["generate"]:
        print("# Random sequences; `generate` has made them.\n")
        print("\n".join(f"setup {line}" for line in SETUP) + "\n")
        for seed in range(int(args[1]), int(args[1]) + int(args[2])):
            print("\n".join([f"# seed {seed}"] + sequence(seed)) + "\n")
        return 0
    verb, url, path = args
    setup, sequences = read_script(path)
    if verb == "record":
        done = [(c, lines, play_recording(url, setup, lines) if lines else []) for c, lines, _ in sequences]
        write_script(path, setup, done)
        return 0
    failed = 0
    for comments, lines, waits in sequences:
        wrong = play_expecting(url, setup, lines, waits) if lines else None
        wrong = wrong or (play_expecting(url, setup, lines, waits, together=True) if lines else None)
        if wrong:
            failed += 1
            print("\n".join(comments) + f"\n{wrong}\n")
    print(f"passed: {len(sequences) - failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

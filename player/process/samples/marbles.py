"""The game marbles (player/games/marbles) as a simulation in a process:

    reprise verify --sim "exec:python3 marbles.py" match.rply

It speaks the protocol of player/process/PROTOCOL.md.
"""
import os
import socket
import struct

MASK = 2**64 - 1
MARBLES, BOARD, CELL, MOST_PUSH = 16, 65536, 12, 64
HELLO, READY, REFUSED, DONE, FAILED, FLUSHED, FIELDS = 1, 2, 3, 4, 5, 7, 9
RESET, TICK, FLUSH, DUMP, BYE = 102, 103, 104, 107, 108


def signed(value):
    """Keeps a number within 64 bits, as other languages do by themselves."""
    return (value + 2**63 & MASK) - 2**63


class Marbles:
    def start(self, seed):
        self.random = seed
        self.marbles = []
        for _ in range(MARBLES):
            x = self.draw() % BOARD
            self.marbles.append([x, self.draw() % BOARD, 0, 0])

    def draw(self):
        self.random = (self.random * 6364136223846793005 + 1442695040888963407) & MASK
        return self.random >> 33

    def command(self, code, p):
        """Carries out a command; False where it is ignored."""
        if not 0 <= p[1] < MARBLES:
            return False
        m = self.marbles[p[1]]
        if code == 2:
            m[2] = m[3] = 0
            return True
        if max(abs(p[2]), abs(p[3])) > MOST_PUSH:
            return False
        m[2], m[3] = signed(m[2] + p[2]), signed(m[3] + p[3])
        return True

    def end_tick(self, tick):
        for m in self.marbles:
            m[0], m[1] = (m[0] + m[2]) % BOARD, (m[1] + m[3]) % BOARD
            if tick % 16 == 0:
                m[2] -= m[2] >> 3
                m[3] -= m[3] >> 3
        for i, a in enumerate(self.marbles):
            for b in self.marbles[i + 1:]:
                if a[0] >> CELL == b[0] >> CELL and a[1] >> CELL == b[1] >> CELL:
                    a[2:], b[2:] = b[2:], a[2:]
        value = self.draw()
        m = self.marbles[value % MARBLES]
        m[2] = signed(m[2] + (value >> 8) % 15 - 7)

    def hash(self):
        sum = 14695981039346656037
        for v in [self.random] + [v for m in self.marbles for v in m]:
            for byte in (v & MASK).to_bytes(8, "big"):
                sum = (sum ^ byte) * 1099511628211 & MASK
        return struct.pack(">Q", sum)

    def dump(self):
        fields = [("random", self.random)]
        for i, m in enumerate(self.marbles):
            fields += [("marbles[%d].%s" % (i, name), v) for name, v in zip(("x", "y", "vx", "vy"), m)]
        return fields


class Reader:
    """Takes the fields of a message's body."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, layout):
        (value,) = struct.unpack_from("<" + layout, self.body, self.at)
        self.at += struct.calcsize("<" + layout)
        return value

    def bytes(self):
        size = self.take("I")
        self.at += size
        return self.body[self.at - size:self.at]


def connect():
    kind, _, address = os.environ["REPRISE_SIM_SOCKET"].partition(":")
    if kind == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
    else:
        host, _, port = address.rpartition(":")
        connection = socket.create_connection((host, int(port)))
    return connection.makefile("rwb")


def text(data):
    data = data.encode() if isinstance(data, str) else data
    return struct.pack("<I", len(data)) + data


def message(kind, body=b""):
    return struct.pack("<IB", len(body) + 1, kind) + body


def reset(game, r):
    """Starts a replay; gives whether it can be played, and the answer."""
    r.take("I")  # the game: there is one
    r.take("Q")  # the next tick
    has_state = r.take("B")
    r.bytes()  # the keyframe
    r.take("Q")  # the first tick
    if has_state:
        return False, message(REFUSED, b"\0" + text("marbles starts from the beginning alone"))
    game.start(r.take("Q"))
    return True, message(READY)


def tick(game, r):
    """Simulates a tick; gives whether it could, and the answer."""
    number, wanted, ignored = r.take("Q"), r.take("B"), 0
    for step in range(r.take("I")):
        code, count = r.take("H"), r.take("I")
        params = []
        if count == {1: 4, 2: 2}.get(code):
            for _ in range(count):
                if r.take("B") != 2:
                    break
                params.append(r.take("q"))
        if not params or len(params) < count:
            return False, message(FAILED, struct.pack("<QQIHBI", number, number, step, code, 0, ignored) + text("no such command"))
        ignored += not game.command(code, params)
    game.end_tick(number)
    return True, message(DONE, struct.pack("<QI", number, ignored) + text(game.hash() if wanted else b""))


def main():
    stream, game, playing = connect(), Marbles(), False
    offer = text("marbles") + text("marbles-1") + struct.pack("<II", 4, 8)  # can dump; hashes of 8 bytes
    stream.write(message(HELLO, struct.pack("<HH", 1, 1) + text(os.environ["REPRISE_SIM_TOKEN"])
                         + text("marbles in Python") + struct.pack("<I", 1) + offer))
    stream.flush()
    while head := stream.read(5):
        size, kind = struct.unpack("<IB", head)
        body = Reader(stream.read(size - 1))
        if kind == RESET:
            playing, answer = reset(game, body)
        elif kind == TICK:
            if playing:
                playing, answer = tick(game, body)
                stream.write(answer)
            continue  # sent with the flush behind it
        elif kind == FLUSH:
            answer = message(FLUSHED)
        elif kind == DUMP:
            fields = game.dump()
            answer = message(FIELDS, struct.pack("<I", len(fields)) + b"".join(text(n) + text(str(v)) for n, v in fields))
        elif kind == BYE:
            break
        else:
            continue  # the welcome
        stream.write(answer)
        stream.flush()


main()

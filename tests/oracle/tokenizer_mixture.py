"""Mixed text from a seed: code, many scripts, marks in odd order, emoji, white space, added tokens, damage. tests/tokenizer/mixture.h is
the same in C++; what the text is made of stands in tests/golden/tokenizer/mixture.json."""

import json
import pathlib

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "tokenizer"
MASK = (1 << 64) - 1


class Mixture:
    def __init__(self, seed):
        parts = json.loads((GOLDEN / "mixture.json").read_text())
        self.fragments = [text.encode() for text in parts["fragments"]]
        self.ranges = parts["ranges"]
        self.spaces = [text.encode() for text in parts["spaces"]]
        self.state = seed

    def next(self, bound):  # splitmix64
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return (z ^ z >> 31) % bound

    def piece(self, damage):
        kind = self.next(64)
        if kind < 30:
            return self.fragments[self.next(len(self.fragments))]
        if kind < 40:
            return b" " + bytes(97 + self.next(26) for _ in range(1 + self.next(9)))
        if kind < 46:
            return bytes(48 + self.next(10) for _ in range(1 + self.next(6)))
        if kind < 52:
            return self.spaces[self.next(len(self.spaces))] * (1 + self.next(6))
        if kind < 63:
            first, last = self.ranges[self.next(len(self.ranges))]
            return "".join(chr(first + self.next(last - first + 1)) for _ in range(1 + self.next(4))).encode()
        if damage and self.next(8) == 0:
            return bytes([128 + self.next(128)])
        return bytes([self.next(128)])

    def text(self, size, damage=False):
        """At least `size` bytes; valid UTF-8 unless `damage`."""
        pieces, total = [], 0
        while total < size:
            pieces.append(self.piece(damage))
            total += len(pieces[-1])
        return b"".join(pieces)

"""Prints `seeds.json` and `streams.json` from the prose beside them, sharing no code with the engine.

Run `python3 spec/vectors/reference.py seeds > spec/vectors/seeds.json`, and the same with `streams`.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys

WORD = 2**32
LONG = 2**64
GOLDEN = 0x9E3779B97F4A7C15
PURPOSES = ("application", "openssl", "order", "schedule", "hash_seed", "names", "generators")
ORIGIN = "spec/vectors/reference.py, written from the prose; crates/model/tests compares with independent crates"


def rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) % WORD


def quarter_round(state: list[int], a: int, b: int, c: int, d: int) -> None:
    for left, right, back, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[left] = (state[left] + state[right]) % WORD
        state[back] = rotated(state[back] ^ state[left], bits)


def block(key: bytes, counter: int, nonce: int) -> bytes:
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key)]
    start += struct.unpack("<4I", struct.pack("<QQ", counter, nonce))
    state = list(start)
    for _ in range(4):
        for column in range(4):
            quarter_round(state, column, column + 4, column + 8, column + 12)
        for diagonal in range(4):
            quarter_round(state, *(4 * row + (diagonal + row) % 4 for row in range(4)))
    return struct.pack("<16I", *((word + first) % WORD for word, first in zip(state, start)))


def mix(value: int) -> int:
    value = (value + GOLDEN) % LONG
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % LONG
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % LONG
    return value ^ (value >> 31)


def child(pedigree: int, number: int) -> int:
    return mix((mix(pedigree ^ int.from_bytes(b"hermetic", "big")) + number * GOLDEN) % LONG)


def drawn(seed: int, path: list[int], purpose: int, position: int, size: int) -> bytes:
    key = hashlib.sha256(b"hermetic entropy key v1\0" + str(seed).encode()).digest()
    pedigree = 0
    for number in path:
        pedigree = child(pedigree, number)
    first = position // 64
    blocks = (position + size) // 64 + 1 - first
    out = b"".join(block(key, (purpose << 56) + first + index, pedigree) for index in range(blocks))
    return out[position % 64 :][:size]


def stream_cases() -> list[dict]:
    rows = [
        ("root", "The first bytes that a program draws", "42", [], "application", 0, 32),
        ("zero", "Seed 0 is a seed", "0", [], "application", 0, 16),
        ("negative", "The sign counts", "-42", [], "application", 0, 16),
        ("spelled", "A plus sign and leading zeros do not count", "+0042", [], "application", 0, 16),
        ("large", "Seeds may exceed 64 bits", str(2**200 + 1), [], "application", 0, 16),
        ("middle", "Bytes across the boundary of two blocks", "42", [], "application", 60, 16),
        ("far", "Any position can be reached at once", "42", [], "application", 2**50 + 3, 16),
        ("thread", "The first child of the root", "42", [0], "application", 0, 16),
        ("thread-second", "The second child of the root", "42", [1], "application", 0, 16),
        ("grandchild", "Child 2 of child 1", "42", [1, 2], "application", 0, 16),
        ("grandchild-swapped", "Child 1 of child 2 is somebody else", "42", [2, 1], "application", 0, 16),
    ]
    rows += [(f"purpose-{name.replace('_', '-')}", f"Purpose {name}", "7", [3], name, 0, 16) for name in PURPOSES]
    return [
        {
            "id": name,
            "description": description,
            "input": {"seed": seed, "path": path, "purpose": purpose, "position": position, "len": size},
            "want": drawn(int(seed), path, PURPOSES.index(purpose), position, size).hex(),
        }
        for name, description, seed, path, purpose, position, size in rows
    ]


def seed_cases() -> list[dict]:
    rows = [
        ("plain", "An ordinary node id, base 0", "tests/test_shop.py::test_total", 0),
        ("base", "The base is XORed in", "tests/test_shop.py::test_total", 12345),
        ("base-max", "All bits of the base count", "tests/test_shop.py::test_total", LONG - 1),
        ("parameters", "Parameters are part of the id", "tests/test_shop.py::TestCart::test_add[2-apples]", 0),
        ("unicode", "Node ids are hashed as UTF-8", "tests/test_é.py::test_ü[日本]", 0),
        ("empty", "An empty id is hashed like any other", "", 0),
    ]
    return [
        {
            "id": name,
            "description": description,
            "input": {"node_id": node_id, "base": str(base)},
            "want": str(int.from_bytes(hashlib.sha256(node_id.encode()).digest()[:8], "big") ^ base),
        }
        for name, description, node_id, base in rows
    ]


def main() -> None:
    behaviour = sys.argv[1]
    cases = {"seeds": seed_cases, "streams": stream_cases}[behaviour]()
    json.dump({"behaviour": behaviour, "origin": ORIGIN, "cases": cases}, sys.stdout, indent=2, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()

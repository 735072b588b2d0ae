"""Compares how many cases of each shared vector file every language ran: a forgotten file is a failure and no silence.

Each runner prints `vectors NAME: N cases`. Rust runs every file; a language that implements a behaviour again runs it
too, all of it unless `SHARED` says which part. What is embedded (Rust behind a binding) has no second runner.

    $ python3 tests/lockstep/lockstep.py
    credentials     rust 80  go 80  node 80
    …
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
VECTORS = ROOT / "spec" / "vectors"
COUNT = re.compile(r"vectors ([\w-]+): (\d+) cases")

RUST_PACKAGES = ("-p", "hermetic-floor", "-p", "hermetic-model", "-p", "hermetic-policy")
RUNNERS: dict[str, tuple[list[str], str]] = {
    "rust": (
        ["cargo", "test", "--quiet", *RUST_PACKAGES, "--test", "vectors", "--test", "push", "--", "--nocapture"],
        ".",
    ),
    "go": (["go", "test", "-count=1", "-v", "-run", "Vectors", "./internal/floor"], "go"),
    "node": (["node", "--test", "tests/vectors.test.mjs"], "typescript"),
}
"""How each language's runner is started, and where."""

AGAIN: dict[str, tuple[str, ...]] = {
    "credentials": ("go", "node"),
    "environment": ("go", "node"),
    "policy": ("node",),
    "policy-entries": ("node",),
}
"""Behaviours that languages beside Rust implement, and not by calling Rust."""


def is_free_of_layout(case: dict[str, Any]) -> bool:
    """Python's floor lays its directory out in its own way; the other languages have everything inside the home."""
    return "{root}" not in json.dumps(case["want"])


def is_of_node(case: dict[str, Any]) -> bool:
    """Node opens no sockets of other families than the internet's and unix."""
    return "family" not in case["input"]["target"]


SHARED: dict[str, Callable[[dict[str, Any]], bool]] = {"environment": is_free_of_layout, "policy": is_of_node}
"""Which cases the other languages run, where it is not all of them."""


def counts(language: str) -> dict[str, int]:
    """What a language's runner says it ran; ends the program if it fails."""
    words, folder = RUNNERS[language]
    done = subprocess.run(words, cwd=ROOT / folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"lockstep: {' '.join(words)} failed in {folder}:\n{done.stdout}{done.stderr}")
    return {name: int(count) for name, count in COUNT.findall(done.stdout)}


def wanted(behaviour: str, cases: list[dict[str, Any]]) -> dict[str, int]:
    """How many cases each language has to run."""
    shared = [case for case in cases if SHARED.get(behaviour, lambda _: True)(case)]
    return {"rust": len(cases)} | dict.fromkeys(AGAIN.get(behaviour, ()), len(shared))


def main() -> int:
    ran = {language: counts(language) for language in RUNNERS}
    failed = 0
    for path in sorted(VECTORS.glob("*.json")):
        if path.name == "schema.json":
            continue
        want = wanted(path.stem, json.loads(path.read_text())["cases"])
        got = {language: found[path.stem] for language, found in ran.items() if path.stem in found}
        line = "  ".join(f"{language} {count}" for language, count in got.items())
        if got == want:
            print(f"{path.stem:<15} {line}")
        else:
            failed += 1
            expected = "  ".join(f"{language} {count}" for language, count in want.items())
            print(f"{path.stem:<15} {line or 'nobody ran it'}: must be {expected}")
    print(f"lockstep: {'counts differ' if failed else 'all languages ran the same cases'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

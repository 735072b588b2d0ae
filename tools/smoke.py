"""Installs one distribution file alone in a clean environment and tries it as a user would.

$ python3 tools/smoke.py dist/hermetic_sandbox-1.0.0.tar.gz
dist/hermetic_sandbox-1.0.0.tar.gz: installs, freezes, repeats, runs under pytest
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TRIAL = """
import datetime, time, uuid
import hermetic

def look():
    with hermetic.sandbox(seed=42) as sb:
        time.sleep(3600)
        return datetime.datetime.now(datetime.timezone.utc).isoformat(), str(uuid.uuid4()), sb.seed

first, second = look(), look()
assert first == second, (first, second)
assert first[0] == "2020-01-01T01:00:00+00:00", first
assert abs(time.time() - datetime.datetime.now().timestamp()) < 5 and time.time() > 1.7e9, "the real clock is back"
"""

TEST = """
import random
def test_draw():
    assert random.random() < 2
"""


def main() -> int:
    [artifact] = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="hermetic-smoke-") as box:
        subprocess.run([sys.executable, "-m", "venv", f"{box}/venv"], check=True)
        python = f"{box}/venv/bin/python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, artifact.resolve()], check=True)
        # Before pytest is there: the package needs nothing but Python.
        subprocess.run([python, "-c", TRIAL], check=True, cwd=box)
        subprocess.run([f"{box}/venv/bin/hermetic", "--help"], check=True, cwd=box, stdout=subprocess.DEVNULL)
        subprocess.run([*pip, "pytest"], check=True)
        Path(box, "test_smoke.py").write_text(TEST)
        subprocess.run([python, "-m", "pytest", "-q", "--hermetic-all"], check=True, cwd=box, stdout=subprocess.DEVNULL)
    print(f"{artifact}: installs, freezes, repeats, runs under pytest")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The command line that runs one failing test again, to be pasted where the user stands.

It keeps what the user gave to pytest, except for what chose other tests, shaped the report, spread the work or stopped
it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DROPPED_FLAGS = _words(
    """
    --collect-only --co --exitfirst --failed-first --ff --last-failed --lf --new-first --nf --stepwise --sw
    --stepwise-skip --sw-skip --stepwise-reset --sw-reset --cache-clear --pdb --trace --quiet --verbose --no-header
    --no-summary --force-short-summary --showlocals --no-showlocals --full-trace --setup-show --looponfail -f -d
    --cov --no-cov --cov-append --cov-branch --cov-reset --no-cov-on-fail --hermetic-all
    """
)
"""Options without a value, or only with one behind an equals sign."""

DROPPED_OPTIONS = _words(
    """
    -n --numprocesses --dist --tx --maxprocesses --max-worker-restart --maxschedchunk --px --maxfail --tb --durations
    --durations-min --junitxml --junit-xml --junit-prefix --junit-suite-name --color --code-highlight --verbosity -r
    --show-capture --ignore --ignore-glob --deselect --lfnf --last-failed-no-failures --cov-report --cov-fail-under
    --cov-config --cov-context --reruns --reruns-delay --hermetic-seed --hermetic-record --hermetic-replay --pastebin
    --log-file --html --report-log
    """
)
"""Options with a value, as the next word or behind an equals sign; of one letter also directly behind the letter."""

KEPT_OPTIONS = _words(
    """
    -c --config-file --rootdir -o --override-ini -p -k -m -W --pythonwarnings --confcutdir --import-mode --basetemp
    --doctest-glob --capture --asyncio-mode --timeout --randomly-seed --hermetic-tz --hermetic-schedule
    """
)
"""Options whose value is the next word, even where that looks like one of the chosen paths."""

SHORT_FLAGS = re.compile(r"-[vqxlsf]+")
"""Flags of one letter in one word; of these only `-s` says how a test runs."""


def command(
    node_id: str,
    *,
    root: str,
    directory: str,
    arguments: Sequence[str],
    positional: Iterable[str],
    own: Sequence[str],
    environment: Mapping[str, str],
) -> str:
    """The command for the test `node_id`.

    `root` is pytest's root directory, to which node ids are relative; `directory` is where the user stands; `arguments`
    and `positional` are what the user gave to pytest; `own` are the options of ours that the test needs.
    """
    words = ["pytest", _path(node_id, root, directory), *own, *kept(arguments, positional)]
    text = shlex.join(words)
    hash_seed = environment.get("PYTHONHASHSEED")
    return f"PYTHONHASHSEED={shlex.quote(hash_seed)} {text}" if hash_seed else text


def kept(arguments: Sequence[str], positional: Iterable[str]) -> Iterator[str]:
    """The given arguments that another run of one test needs too."""
    chosen = set(positional)
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if word == "--":
            return
        if name in DROPPED_FLAGS:
            continue
        if SHORT_FLAGS.fullmatch(word):
            if "s" in word:
                yield "-s"
        elif name in DROPPED_OPTIONS:
            if not equals:
                next(words, None)
        elif word[:2] in DROPPED_OPTIONS and not word.startswith("--"):
            continue
        elif word.startswith("-") or word not in chosen:
            yield word
            if word in KEPT_OPTIONS:
                yield from islice(words, 1)


def _path(node_id: str, root: str, directory: str) -> str:
    """`node_id`, with its path seen from `directory`."""
    path, separator, rest = node_id.partition("::")
    if path:
        path = os.path.relpath(os.path.join(root, path), directory)
    return path + separator + rest

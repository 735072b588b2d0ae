"""The sandbox: entry, exit, the handle and its clock.

Options are checked by `_settings`; what the world looks like inside is the engine's business; what CPython itself
remembers is kept in step by the native session. This file puts them in order, and undoes in reverse whatever it began.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeVar

from hermetic import _settings, real
from hermetic._errors import (
    DeadlockError,
    NetworkBlockedError,
    OptionError,
    OptionTypeError,
    ReplayExhausted,
    ReplayMismatch,
    SandboxError,
    SpinError,
)
from hermetic._settings import DEFAULT_NOW, DEFAULT_SPIN_LIMIT, DEFAULT_TICK, Settings
from hermetic._values import duration_ns, instant_ns, to_datetime

if TYPE_CHECKING:
    from hermetic._filesystem import FileSystem
    from hermetic._journal import Recorded
    from hermetic._native import Finding, Session

F = TypeVar("F", bound=Callable[..., Any])

WALL = 0
SEED_BYTES = 4
"""As in the native way in: a seed that nobody chose has 32 bits."""
ERRORS = {
    "spin": SpinError,
    "deadlock": DeadlockError,
    "replay-mismatch": ReplayMismatch,
    "replay-leftover": ReplayMismatch,
    "replay-exhausted": ReplayExhausted,
    "refusal": NetworkBlockedError,
}
FRESH = object()
"""Stands for "nobody chose": unlike a default that was written out, it pins nothing while recording."""

if TYPE_CHECKING:
    from hermetic._native import Door as _Door
    from hermetic._native import Handle as _Handle

    _active: list[SandboxHandle]
else:
    _Door, _Handle, _active = _settings.DOOR, _settings.HANDLE, _settings.ACTIVE

_scratch_count = 0


def current() -> SandboxHandle | None:
    """The handle of the active sandbox, from anywhere in the process; None outside."""
    # Without the native library no sandbox is ever entered.
    return _settings.native().current() if _active else None


class Jump(NamedTuple):
    """One move of the wall clock, or a reason why it did not move (then `at == to`). Seconds since the entry.

    `why` is text for people: "deadline of thread 2", "advance", "set", "followed real time: …", "not jumped: …".
    Threads are counted in the order in which they started; 0 is the one that entered.
    """

    at: float
    to: float
    why: str


class Clock:
    """The virtual clock of a sandbox. All methods raise SandboxError if the sandbox left the clock real."""

    __slots__ = ("_session",)

    def __init__(self, session: Session | None) -> None:
        self._session = session

    def __repr__(self) -> str:
        return "Clock(off)" if self._session is None else "Clock()"

    def now(self) -> datetime:
        """The virtual time as an aware UTC datetime. Does not tick."""
        return to_datetime(self._need().clock_now(WALL))

    def advance(self, seconds: float | timedelta) -> None:
        """Moves all clocks on by that much, as a sleep would. ValueError if negative or not finite."""
        self._need().clock_advance(duration_ns(seconds, "seconds"))

    def set(self, when: str | datetime | float) -> None:
        """Sets the wall clock, backwards too. Monotonic clocks stay."""
        session = self._need()
        session.clock_set(instant_ns(when, "when"))

    move_to = set

    @property
    def jumps(self) -> list[Jump]:
        """When and why time moved otherwise than by being read, oldest first; the last 1024 moves.

        Also after the exit, until the next sandbox is entered. What waits for a real answer moves nothing.
        """
        return [Jump(at / 1e9, to / 1e9, why) for at, to, why in self._need().jumps()]

    def _need(self) -> Session:
        if self._session is None:
            raise SandboxError(
                "this sandbox leaves the clock real (clock='off'), so there is no virtual clock to ask or move"
            )
        return self._session


class SandboxHandle(_Handle):
    """What `with sandbox() as sb` gives: the seed, the clock, and doors to the world outside."""

    __slots__ = ()

    real = real
    _sandbox: Sandbox
    seed: int | None
    mode: Literal["deterministic", "record", "replay"]
    fs: FileSystem | None
    journal_path: str | None

    @property
    def clock(self) -> Clock:
        """The virtual clock."""
        clock: Clock | None = self._clock
        if clock is None:
            clock = self._clock = Clock(self._session if self._has_clock else None)
        return clock

    @property
    def replay_warnings(self) -> list[str]:
        """What makes a replay less than faithful, one sentence each."""
        if self._replay_warnings is None:
            self._replay_warnings = []
        return self._replay_warnings

    @property
    def test_id(self) -> str | None:
        """The node id of the test, where a harness gave it."""
        return self._sandbox._test_id

    def __repr__(self) -> str:
        return f"SandboxHandle(seed={self.seed!r}, mode={self.mode!r})"

    def allow_network(self, entry: str) -> None:
        """Adds an entry like "localhost:5432" to the allowlist of the running sandbox."""
        if not self._sandbox._settings_now.has_network:
            raise SandboxError(f"cannot allow {entry!r}: this sandbox does not restrict the network")
        if not isinstance(entry, str):
            raise OptionTypeError(f"network entry {entry!r}: accepted is a text like 'localhost:5432'")
        self._session.allow(entry)

    @property
    def findings(self) -> list[Finding]:
        """What the engine noticed so far: refusals, spinning loops, differences from the journal."""
        return self._sandbox.findings


class Given(NamedTuple):
    """The options of a Sandbox, checked. Its twins share them."""

    options: tuple[Any, ...]
    """Those that the engine takes, in the order of `_settings.OPTIONS`."""
    settings: Settings
    fs: str
    chdir: bool
    env: dict[str, str | None] | None
    scrub_env: bool
    tz: str | None
    record: str | None
    replay: str | None
    root: str | None
    is_automatic: bool
    is_now_pinned: bool
    """Somebody chose `now`; a recording reads the real clock otherwise."""
    is_seed_pinned: bool

    def is_plain(self) -> bool:
        """Without directories, variables, warnings and journals to finish, native code enters and leaves by itself."""
        return (
            (self.record is None or self.is_automatic)
            and self.replay is None
            and self.fs == "off"
            and self.env is None
            and not self.scrub_env
            and not self.settings.allow
        )


class Sandbox(_Door):
    """A sandbox that can be entered, one time after another; what `sandbox()` returns.

    `test_id` is the node id of the test, for journals. `automatic`, `suspend`, `resume`, `keep_journal` and
    `discard_journal` are for harnesses: an automatic sandbox is suspended by one that a user enters inside, and leaves
    the verdict to its owner.
    """

    __slots__ = ()

    def __init__(
        self,
        seed: int | None = None,
        *,
        now: str | datetime | float = DEFAULT_NOW,
        tick: float = DEFAULT_TICK,
        clock: Literal["virtual", "off"] = "virtual",
        rng: Literal["all", "seed", "off"] = "all",
        network: Literal["block", "off"] | Iterable[str] = "block",
        allow_loopback: bool = True,
        allow_unix: bool = True,
        fs: Literal["off", "isolate"] = "off",
        chdir: bool = True,
        env: Mapping[str, str | None] | None = None,
        scrub_env: bool = False,
        record: str | os.PathLike[str] | None = None,
        replay: str | os.PathLike[str] | None = None,
        strict_replay: bool = True,
        deep_datetime: bool = True,
        spin_limit: int = DEFAULT_SPIN_LIMIT,
        tz: str | None = None,
        monotonic: Literal["fixed", "continue"] = "fixed",
        network_strict: bool = False,
        order: Literal["sorted", "chaos", "off"] | None = None,
        inherit: Literal["on", "off"] = "on",
        schedule: Literal["cooperative", "seeded"] = "cooperative",
        test_id: str | None = None,
        automatic: bool = False,
        root: str | None = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            _refuse_unknown(unknown)
        _settings.check_seed(seed)
        # Written out or not, these cost nothing to check; the rest is checked by `_settings`, once per combination.
        fs = fs if fs == "off" else _settings.choice("fs", fs)
        _settings.switch("chdir", chdir)
        _settings.switch("scrub_env", scrub_env)
        _settings.switch("deep_datetime", deep_datetime)
        overrides: dict[str, str | None] | None = None
        if env is not None or tz is not None:
            from hermetic import _environment

            overrides = _environment.check_overrides(env)
            _environment.check_zone(tz)
        record, replay = _path("record", record), _path("replay", replay)
        if record is not None and replay is not None:
            raise OptionError("record and replay exclude each other: give one of them")
        is_now_pinned, is_seed_pinned = now is not DEFAULT_NOW, seed is not None
        extra = _settings.AUTOMATIC if automatic else 0
        if record is not None:
            extra |= (_settings.PINNED_CLOCK if is_now_pinned else 0) | (_settings.PINNED_SEED if is_seed_pinned else 0)
            root = root if root is not None else os.getcwd()
        # In the order of `_settings.OPTIONS`.
        options = (
            now,
            tick,
            clock,
            rng,
            network,
            allow_loopback,
            allow_unix,
            spin_limit,
            order,
            monotonic,
            network_strict,
            strict_replay,
            inherit,
            schedule,
        )
        settings = _settings.settings(options, extra, root or "")
        self._given = Given(
            options,
            settings,
            fs=fs,
            chdir=chdir,
            env=overrides,
            scrub_env=scrub_env,
            tz=tz,
            record=record,
            replay=replay,
            root=root,
            is_automatic=automatic,
            is_now_pinned=is_now_pinned,
            is_seed_pinned=is_seed_pinned,
        )
        self._settings_now = settings
        self._seed = seed
        self._test_id = test_id
        if self._given.is_plain():
            self._arm(settings.plan, automatic, record)

    def __repr__(self) -> str:
        return f"Sandbox(seed={self._seed!r})"

    if TYPE_CHECKING:
        _given: Given
        _handle: SandboxHandle | None
        _findings: list[Finding] | None
        _undo: list[Callable[[], object]] | None
        _settings_now: Settings

        def __enter__(self) -> SandboxHandle: ...
        def _twin(self, seed: int | None, test_id: str | None) -> Sandbox: ...

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        session = self._session
        if session is None:
            raise SandboxError("this Sandbox is not entered, so it cannot be left")
        failure: BaseException | None = None
        fatal = 0
        try:
            _, fatal = session.leave()
        except SandboxError as problem:
            failure = problem
        self._session = None
        if self._undo is not None:
            failure = self._unwind(error, failure)
        if self._handle is not None:
            with suppress(ValueError):
                _active.remove(self._handle)
        self._is_suspended = False
        self._conclude(session, failure, fatal, error)

    def _conclude(
        self, session: Session, failure: BaseException | None, fatal: int, error: BaseException | None
    ) -> None:
        """The last step of an exit: tells what went wrong, if anything did."""
        self._is_suspended = False
        self._findings = self._collect(session)
        if fatal and not self._given.is_automatic:
            failure = failure or self._verdict()
        if failure is None:
            return
        if error is None:
            raise failure
        if error is not failure and not isinstance(error, type(failure)):
            _tell(error, failure)

    def _suspend(self) -> None:
        self._need().suspend()
        self._is_suspended = True
        if self._handle is not None and self._handle.fs is not None:
            self._handle.fs._suspend()
        self._sync_zone()

    def _resume(self) -> None:
        self._need().resume()
        self._is_suspended = False
        if self._handle is not None and self._handle.fs is not None:
            self._handle.fs._resume()
        self._sync_zone()

    def keep_journal(self, path: str | os.PathLike[str]) -> None:
        """For harnesses, after the exit and before the next entry: finishes what was recorded, to the file `path`."""
        session = self._recorded if self._handle is None else self._handle._session
        if session is None:
            raise SandboxError("this Sandbox recorded no journal, so there is none to keep")
        session.keep_journal(os.fspath(path))

    def discard_journal(self) -> None:
        """For harnesses: what was recorded is not needed. The scratch file is used again by the next sandbox."""

    @property
    def findings(self) -> list[Finding]:
        """What the engine noticed in the last run of this sandbox, also after its exit."""
        if self._findings is not None:
            return self._findings
        return self._collect(self._handle._session) if self._handle is not None else []

    def _collect(self, session: Session) -> list[Finding]:
        """The engine's findings, and the files outside an isolated directory."""
        found = session.findings()
        if self._handle is not None and self._handle.fs is not None:
            found += map(outside_write, self._handle.fs.outside)
        return found

    def __call__(self, function: F) -> F:
        """As a decorator: each call runs in a fresh sandbox with these options."""
        from hermetic._decorator import decorate

        return decorate(self, function)

    def _clone(self) -> Sandbox:
        """A Sandbox of its own for one call of a decorated function."""
        return self._twin(self._seed, self._test_id)

    def _enter(self) -> SandboxHandle:
        """Entry with journals, directories or an environment of its own. Whatever fails, all of it is undone."""
        recorded, settings, seed, options = self._prepare()
        self._undo = []
        session: Session = settings.plan.open()
        self._settings_now = settings
        has_clock = settings.config["clock"] == "virtual"
        handle: SandboxHandle = self._make_handle(session, seed, has_clock, self._given.record)
        try:
            self._undo.append(session.close)
            self._arrange(handle, options)
            if recorded is not None:
                handle.mode, handle.journal_path = "replay", recorded.path
                handle._replay_warnings = list(recorded.warnings(options["root"], options["test"]))
                self._warn(handle, settings)
                session.enter(settings.plan, seed or 0, replay=recorded.raw)
            elif self._given.record is not None:
                self._enter_recording(session, settings, seed or 0)
            else:
                self._warn(handle, settings)
                session.enter(settings.plan, seed or 0)
        except BaseException as error:
            # The environment comes back before the directories go, as at a regular exit.
            session.close()
            failure = self._unwind(error, None)
            if failure is not None:
                _tell(error, failure)
            raise
        self._session, self._handle = session, handle
        _active.append(handle)
        return handle

    def _warn(self, handle: SandboxHandle, settings: Settings) -> None:
        """Comes before the engine's entry: showing a warning runs code that takes locks and reads clocks."""
        for text in handle.replay_warnings:
            warnings.warn(f"hermetic replay: {text}", UserWarning, stacklevel=3)
        if settings.allow and handle.mode == "deterministic" and settings.config["rng"] == "all":
            warnings.warn(
                "hermetic: network allowlist with rng='all': real TLS connections get deterministic entropy; "
                "use rng='seed' beside an allowlist",
                UserWarning,
                stacklevel=3,
            )

    def _prepare(self) -> tuple[Recorded | None, Settings, int | None, dict[str, Any]]:
        """Everything that can be refused before anything is changed."""
        options: dict[str, Any] = {
            "fs": self._given.fs,
            "chdir": self._given.chdir,
            "scrub_env": self._given.scrub_env,
            "tz": self._given.tz,
            "root": self._given.root or "",
            "test": self._test_id,
        }
        seed = self._seed
        if self._given.replay is None:
            settings = self._given.settings
            if seed is None and settings.has_seed:
                seed = _fresh_seed()
            return None, settings, seed, options
        from hermetic import _journal

        recorded = _journal.Recorded(self._given.replay)
        theirs = recorded.options()
        values = [theirs.get(name, own) for name, own in zip(_settings.OPTIONS, self._given.options)]
        options.update({name: theirs[name] for name in ("fs", "chdir", "scrub_env") if name in theirs})
        options["tz"] = theirs.get("tz") or recorded.head.get("fingerprint", {}).get("tz_env") or self._given.tz
        options["root"] = self._given.root if self._given.root is not None else os.getcwd()
        options["test"] = self._test_id or _journal.running_test()
        extra = _settings.AUTOMATIC if self._given.is_automatic else 0
        pinned = recorded.config.get("pinned") or ()
        extra |= (_settings.PINNED_CLOCK if "now" in pinned else 0) | (_settings.PINNED_SEED if "seed" in pinned else 0)
        try:
            settings = _settings.settings(values, extra, options["root"])
        except OptionError as error:
            raise ReplayMismatch(f"the journal {recorded.path} has a setting that cannot be used: {error}") from error
        own = recorded.seed
        seed = own if own is not None else seed
        return recorded, settings, _fresh_seed() if seed is None and settings.has_seed else seed, options

    def _arrange(self, handle: SandboxHandle, options: dict[str, Any]) -> None:
        """Environment, zone and directories, after the session has remembered the environment."""
        from hermetic import _environment

        assert self._undo is not None
        if not (options["scrub_env"] or self._given.env or options["tz"]) and options["fs"] == "off":
            return
        zone = os.environ.get("TZ")
        if options["scrub_env"]:
            _environment.scrub()
        if self._given.env:
            _environment.override(self._given.env)
        if options["tz"] is not None or os.environ.get("TZ") != zone:
            self._undo.append(self._sync_zone)
            _environment.apply_zone(options["tz"])
        if options["fs"] == "isolate":
            from hermetic import _filesystem

            files = _filesystem.create(handle.seed, self._test_id)
            self._undo.append(lambda: files._leave(self._is_suspended))
            files._enter(options["chdir"], frozenset(self._given.env or ()))
            handle.fs = files

    def _enter_recording(self, session: Session, settings: Settings, seed: int) -> None:
        assert self._undo is not None and self._given.record is not None
        target, head = self._given.record, self._head(settings.plan, seed)
        if self._given.is_automatic:
            session.enter(settings.plan, seed, record=target, head=head)
            return
        scratch = _scratch_beside(target)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        self._undo.append(lambda: _finish(session, scratch, target))
        session.enter(settings.plan, seed, record=scratch, head=head)

    def _frame(self) -> tuple[str, str]:
        """What native code asks for when it writes the head of a journal."""
        from hermetic._journal import frame

        return frame(self._given)

    def _unwind(self, error: BaseException | None, failure: BaseException | None) -> BaseException | None:
        """Undoes in reverse; each step runs even if another one failed. Returns the first failure."""
        steps, self._undo = self._undo or [], None
        for step in reversed(steps):
            try:
                step()
            except Exception as problem:
                failure = failure or problem
        return failure

    def _verdict(self) -> BaseException:
        """The error for a fatal finding that the body swallowed or never saw."""
        finding = next(finding for finding in self.findings if finding.fatal)
        site = f" (at {finding.site})" if finding.site and finding.site not in finding.message else ""
        message = f"{finding.message}{site}"
        if finding.kind == "refusal":
            return NetworkBlockedError(message, (finding.subject, finding.port))
        return ERRORS.get(finding.kind, SandboxError)(message)

    def _sync_zone(self) -> None:
        if self._given.tz is not None or self._given.env is not None or self._given.replay is not None:
            from hermetic import _environment

            _environment.apply_zone(None)

    def _need(self) -> Session:
        if self._session is None:
            raise SandboxError("this Sandbox is not entered")
        return self._session


sandbox = Sandbox
"""Makes a sandbox: a context manager, and a decorator for functions of every kind.

    with hermetic.sandbox(seed=42, now="2021-06-01") as sb:
        sb.clock.advance(3600)
"""


def outside_write(path: str) -> Finding:
    """The finding for a file that was written outside the directories of `fs="isolate"`."""
    message = f"hermetic saw a write outside the isolated directories: {path}"
    finding: Finding = _settings.native().Finding("outside-write", message, subject=path)
    return finding


def _fresh_seed() -> int:
    return int.from_bytes(_settings.native().real_urandom(SEED_BYTES), "big")


def _path(option: str, value: Any) -> str | None:
    """A journal's path, absolute, so that a later chdir does not move it."""
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise OptionTypeError(f"{option}={value!r}: accepted is a path, or None")
    return os.path.abspath(os.fsdecode(value))


def _scratch_beside(path: str) -> str:
    """A name for the raw journal while it is written; never one that this process has used before."""
    global _scratch_count
    _scratch_count += 1
    number = "" if _scratch_count == 1 else f"-{_scratch_count}"
    return f"{path}.part-{os.getpid()}{number}"


def _finish(session: Session, scratch: str, target: str) -> None:
    try:
        if not session.is_inside and session.id:
            session.keep_journal(target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(scratch)


def _tell(error: BaseException, failure: BaseException) -> None:
    """The body has failed already; what went wrong besides goes along with its error."""
    text = f"hermetic: {type(failure).__name__}: {failure}"
    if sys.version_info >= (3, 11):
        error.add_note(text)
    else:
        warnings.warn(text, UserWarning, stacklevel=4)


def _refuse_unknown(unknown: Mapping[str, Any]) -> NoReturn:
    from difflib import get_close_matches
    from inspect import signature

    known = [name for name in signature(Sandbox.__init__).parameters if name not in ("self", "unknown")]
    name = next(iter(unknown))
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"accepted are {', '.join(known)}"
    raise OptionTypeError(f"unknown option {name}={unknown[name]!r}: {hint}")

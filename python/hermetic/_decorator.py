"""`@sandbox(...)` for plain, async, generator and async generator functions.

The body of a generator runs inside, and so does whatever runs between its first value and its end: there is one world
per process. Two calls that overlap in time (async functions) cannot both have it; the second raises SandboxActiveError.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hermetic._errors import OptionTypeError

if TYPE_CHECKING:
    from hermetic._sandbox import Sandbox

F = TypeVar("F", bound=Callable[..., Any])


def decorate(sandbox: Sandbox, function: F) -> F:
    """Wraps a function so that each call runs in a sandbox of its own. Classes are refused."""
    if isinstance(function, (staticmethod, classmethod)):
        return cast(F, type(function)(decorate(sandbox, function.__func__)))
    if isinstance(function, type):
        raise OptionTypeError(
            f"@sandbox on the class {function.__qualname__}: accepted are functions; decorate its methods, or mark the "
            "class with pytest.mark.hermetic"
        )
    if not callable(function):
        raise OptionTypeError(f"@sandbox on {function!r}: accepted are functions")
    if inspect.isasyncgenfunction(function):
        return cast(F, _async_generator(sandbox, function))
    if inspect.iscoroutinefunction(function):
        return cast(F, _coroutine(sandbox, function))
    if inspect.isgeneratorfunction(function):
        return cast(F, _generator(sandbox, function))
    return cast(F, _plain(sandbox, function))


def _plain(sandbox: Sandbox, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with sandbox._clone():
            return function(*args, **kwargs)

    return call


def _coroutine(sandbox: Sandbox, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with sandbox._clone():
            return await function(*args, **kwargs)

    return call


def _generator(sandbox: Sandbox, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with sandbox._clone():
            return (yield from function(*args, **kwargs))

    return call


def _async_generator(sandbox: Sandbox, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with sandbox._clone():
            inner = function(*args, **kwargs)
            try:
                value = await inner.__anext__()
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        value = await inner.athrow(error)
                    else:
                        value = await inner.asend(sent)
            except StopAsyncIteration:
                return
            finally:
                await inner.aclose()

    return call

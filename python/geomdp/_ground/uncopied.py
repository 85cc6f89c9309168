"""Objects that nothing may copy, and calls whose local variables no traceback shows."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from types import FrameType, TracebackType
from typing import Any, ClassVar, NoReturn, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Uncopied:
    """Base class of objects that cannot be copied or pickled, nor read as their state."""

    __slots__ = ()
    #: Why; the end of the error.
    _uncopied: ClassVar[str]

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"a {kind} cannot be copied or pickled: {self._uncopied}")

    __getstate__ = __reduce__


class Withheld(Uncopied):
    """Base class of objects with exact counts, which no tool shows or copies by walking them."""

    __slots__ = ()
    _uncopied = "it holds exact counts"

    def __dir__(self) -> list[str]:
        # Inspectors and debuggers show the values of these names.
        return [name for name in super().__dir__() if name not in ("frame", *self.__slots__)]


def unseen(call: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a call that sees exact counts as one whose errors show none (:func:`hide`).

    Every public call that takes or holds exact counts or records is one. A generator stays one.
    """

    @wraps(call)
    def shown(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            del args, kwargs
            hide(error)
            raise

    @wraps(call)
    def each(*args: Any, **kwargs: Any) -> Any:
        try:
            items = cast(Any, call)(*args, **kwargs)
            args, kwargs = (), {}
            yield from items
        except BaseException as error:
            # A misspelt keyword is refused before the call begins.
            args, kwargs = (), {}
            hide(error)
            raise

    return cast(Callable[_P, _T], each) if inspect.isgeneratorfunction(call) else shown


def hide(error: BaseException) -> None:
    """Clear the local variables of all calls that an error and its causes have left.

    They are exact counts, or a draw that was not published, and tools print those that a traceback
    keeps. To be called where the error is caught; the variables of that call and its callers stay.
    """
    own = error.__traceback__
    found = [(error, own and own.tb_next)]
    known = {id(error)}
    for each, start in found:
        with suppress(RuntimeError):  # An error that the caller is handling: its call goes on.
            for frame in _frames(start):
                frame.clear()
            for cause in (each.__cause__, each.__context__):
                if cause is not None and id(cause) not in known:
                    known.add(id(cause))
                    found.append((cause, cause.__traceback__))


def _frames(at: TracebackType | None) -> Iterator[FrameType]:
    while at is not None:
        yield at.tb_frame
        at = at.tb_next

"""Objects that nothing may copy, and calls whose local variables no traceback shows."""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from types import CodeType, FrameType, FunctionType, TracebackType
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
    """Return a call whose errors show nothing of what it was given (:func:`hide`).

    Every public call is one (:func:`public`), and so is what an engine calls. A generator stays
    one.
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


#: The calls that `unseen` returns run one of these.
_HIDING = {each for each in unseen.__code__.co_consts if isinstance(each, CodeType)}
#: Calls that hide what they were given themselves, as they are too small for another call.
HIDING_THEMSELVES = frozenset({"GeometricMechanism.release"})


def is_unseen(call: object) -> bool:
    """Return whether a function is a call that :func:`unseen` returned."""
    return isinstance(call, FunctionType) and call.__code__ in _HIDING


def public(module: str) -> None:
    """Make each call of what a module names in ``__all__`` unseen; its last line calls this.

    Classes and functions of a private room get the module for a home, since pickles name it.
    """
    space = vars(sys.modules[module])
    for name in space["__all__"]:
        space[name] = published(space[name], module)


def published(value: Any, home: str) -> Any:
    """Return what a module names as :func:`public` does."""
    own = getattr(value, "__module__", None) or ""
    if isinstance(value, type):
        for kind in value.__mro__:
            if kind.__module__.startswith("geomdp"):
                _hide_members(kind)
    elif isinstance(value, FunctionType):
        room, plain = value.__globals__, value
        value = _unseen_once(plain)
        if room.get(plain.__name__) is plain:  # Pickles of a partial call look it up.
            room[plain.__name__] = value
    else:
        return value
    if own.startswith("geomdp") and "._" in own:
        value.__module__ = home
    return value


def _hide_members(kind: type) -> None:
    """Make the methods and properties unseen that users call, or that run when they do."""
    for name, member in [*vars(kind).items()]:
        if name == "__class__" or (name[0] == "_" and name[:2] != "__"):
            continue
        if isinstance(member, FunctionType):
            setattr(kind, name, _unseen_once(member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(kind, name, type(member)(_unseen_once(member.__func__)))
        elif isinstance(member, property):
            get, put, drop = map(_unseen_once, (member.fget, member.fset, member.fdel))
            setattr(kind, name, property(get, put, drop, member.__doc__))


def _unseen_once(call: Any) -> Any:
    """Return a function of the package as an unseen one, and all else as it is."""
    if not isinstance(call, FunctionType) or is_unseen(call):
        return call
    ours = call.__globals__.get("__name__", "").startswith("geomdp")
    return unseen(call) if ours and call.__qualname__ not in HIDING_THEMSELVES else call


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

"""Objects that nothing may copy, and calls whose local variables no traceback shows."""

from collections.abc import Callable
from typing import ClassVar, NoReturn, TypeVar

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


def unseen(work: Callable[[], _T]) -> _T:
    """Return the result of a call. If it raises, its local variables are not in the traceback.

    They hold exact counts or a draw that was not published. The caller must not hold them either.
    """
    try:
        return work()
    except BaseException as error:
        del work
        error.__context__ = None
        raise error.with_traceback(None) from None

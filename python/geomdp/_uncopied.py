"""Objects that nothing may copy."""

from typing import ClassVar, NoReturn


class Uncopied:
    """Base class of objects that cannot be copied or pickled, nor read as their state."""

    __slots__ = ()
    #: Why; the end of the error.
    _uncopied: ClassVar[str]

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"a {kind} cannot be copied or pickled: {self._uncopied}")

    __getstate__ = __reduce__

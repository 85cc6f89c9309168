"""Domains: the inputs or outputs of a step, described by type and shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from geomdp._ground import parameters
from geomdp._ground.notebook import showable
from geomdp._inputs import arrays, columns, labels
from geomdp.measurement import _types
from geomdp.measurement._types import DType


class _Domain:
    """Base class of the domains."""

    __slots__ = ()

    def __class_getitem__(cls, parameter: Any) -> Self:
        return cls(parameter)  # type: ignore[call-arg]

    def member(self, value: Any) -> bool:
        """Return whether a value is in the domain.

        Parameters
        ----------
        value : object
            Any value.

        Examples
        --------
        >>> from geomdp.measurement import AllDomain
        >>> AllDomain("u8").member(255), AllDomain("u8").member(256)
        (True, False)

        """
        try:
            self._cast(value)
        except (TypeError, OverflowError):
            return False
        return True

    def _cast(self, value: Any) -> Any:
        raise NotImplementedError


def as_member(domain: _Domain, value: Any) -> Any:
    """Return a value of a domain in the form that functions on it take, or refuse it."""
    return domain._cast(value)


@showable
@dataclass(frozen=True, slots=True, repr=False)
class AllDomain(_Domain):
    """All values of one type: a single count or record.

    Parameters
    ----------
    T : type
        One of the types in :mod:`geomdp.measurement`.

    Examples
    --------
    >>> from geomdp.measurement import AllDomain
    >>> AllDomain("i32")
    AllDomain(int32)

    """

    T: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "T", _types.atom("T", self.T))

    def _cast(self, value: Any) -> Any:
        """Return a value of the domain; an int becomes a numpy integer."""
        if isinstance(value, np.generic) and value.dtype == self.T:
            return value
        if self.T.kind not in "iu" and isinstance(value, _scalars(self.T)):
            return value
        if type(value) is int and self.T.kind in "iu":
            return self.T.type(arrays.as_int(value, np.iinfo(self.T)))
        raise _foreign(value, self, f"one value of type {_types.spell(self.T)}")

    def __repr__(self) -> str:
        return f"AllDomain({_types.spell(self.T)})"


@showable
@dataclass(frozen=True, slots=True, repr=False)
class VectorDomain(_Domain):
    """Arrays or sequences, of any length, of values of one type.

    Arrays of counts may have more than one dimension.

    Parameters
    ----------
    element_domain : AllDomain
        The domain of the items.

    Examples
    --------
    >>> from geomdp.measurement import AllDomain, VectorDomain
    >>> VectorDomain(AllDomain(str)).member(["yes", "no"])
    True

    """

    element_domain: AllDomain

    def __post_init__(self) -> None:
        if not isinstance(self.element_domain, AllDomain):
            raise TypeError(
                parameters.refusal("element_domain", self.element_domain, "an AllDomain(T)")
            )

    @property
    def T(self) -> DType:  # noqa: N802 (the name in AllDomain)
        """The type of the items."""
        dtype: DType = self.element_domain.T
        return dtype

    def _cast(self, value: Any) -> Any:
        """Return a value of the domain as an array; a sequence of str is returned unchanged."""
        T = self.T
        if columns.is_column(value):
            [value], _ = labels.detach(arg=value)
        if isinstance(value, np.ndarray) and value.ndim:
            arrays.refuse_masked("arg", value)
            if value.dtype.kind == T.kind and T.kind == "U":
                return value
            if value.dtype.kind == T.kind and value.dtype.newbyteorder("=") == T:
                return value
            if T.kind == "U" and value.dtype.kind in "OT":
                value = value.tolist()
        if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
            if T.kind in "iu":
                return arrays.as_array(value, T)
            if all(isinstance(item, _scalars(T)) for item in value):
                return value if T.kind == "U" else np.array(value, dtype=T)
        raise _foreign(value, self, f"an array or a sequence of type {_types.spell(T)}")

    def __repr__(self) -> str:
        return f"VectorDomain({self.element_domain!r})"


Domain: TypeAlias = AllDomain | VectorDomain


def _scalars(T: DType) -> tuple[type, ...]:
    """Return the Python and numpy types of a single value of this type, except for int."""
    same: dict[str, tuple[type, ...]] = {"U": (str,), "b": (bool, np.bool_)}
    # np.float64 is a subclass of float; np.float32 is not.
    return same.get(T.kind, (float if T.str[1:] == "f8" else T.type,))


def _foreign(value: Any, domain: Domain, accepted: str) -> TypeError:
    """Return the error for a value outside a domain. It omits the value, which is secret."""
    kind = type(value).__name__
    if isinstance(value, np.ndarray):
        # The dtype of a string array would reveal the length of the longest string.
        dtype = "str" if value.dtype.kind == "U" else value.dtype
        kind = f"{value.ndim}-dimensional array of dtype {dtype}"
    return TypeError(f"arg of type {kind} is not in {domain!r}: give {accepted}")


#: OpenDP's current names.
atom_domain = AllDomain
vector_domain = VectorDomain

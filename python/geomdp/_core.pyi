"""The Rust core. Converts and calls; parameters and arrays are checked before they come here.

A dtype is given by kind and size, as in ``numpy.dtype.str``: ``"i8"`` is int64.
"""

from collections.abc import Callable
from typing import Any, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Folded",
    "Groups",
    "Ids",
    "Mechanism",
    "ReleaseKey",
    "Rows",
    "Tiers",
    "columns",
    "kernel",
    "release_not_private",
    "sample_bernoulli",
    "sample_geometric",
    "tiers_not_private",
]

# certificate.rs

class _Fields(TypedDict):
    rate: tuple[int, int] | None
    sampled_rate: tuple[int, int] | None
    range: int
    limb_bits: int
    digits: list[tuple[int, int, list[int]]]
    words_per_draw: int
    eta: tuple[int, int] | None
    delta: tuple[int, int] | None
    floor: tuple[int, int] | None
    floor_value_bits: int
    tanh_half_rate: tuple[int, int] | None
    total_variation: float
    tight_epsilon: float | None

class _TierFields(_Fields):
    keep: tuple[list[int], int] | None
    kappa: tuple[int, int]

# keyed.rs

@final
class ReleaseKey:
    def __new__(cls, secret: bytes | None) -> ReleaseKey: ...
    def secret(self) -> bytes: ...
    def wipe(self) -> None: ...

@final
class Ids:
    def __new__(cls, size: int) -> Ids: ...
    def __len__(self) -> int: ...
    def repeat(self) -> bool: ...
    def add_integers(self, ids: NDArray[Any], nulls: NDArray[Any] | None, signed: bool) -> None: ...
    def add_bytes(
        self,
        offsets: NDArray[np.int64],
        data: NDArray[np.uint8],
        nulls: NDArray[Any] | None,
    ) -> None: ...

# lib.rs

@final
class Mechanism:
    def __new__(cls, rate: tuple[int, int] | None, bounds: tuple[int, int] | None) -> Mechanism: ...
    def limits(self, dtype: str) -> tuple[int, int]: ...
    def release_scalar(self, count: int, dtype: str) -> int: ...
    def release_into(
        self,
        counts: NDArray[Any],
        out: NDArray[Any],
        progress: Callable[[int], object] | None,
        threads: int,
    ) -> None: ...
    def top(
        self,
        counts: NDArray[Any],
        k: int,
        progress: Callable[[int], object] | None,
        threads: int,
    ) -> list[int]: ...
    def top_among(
        self,
        places: NDArray[np.uint64],
        counts: NDArray[np.int64],
        size: int,
        k: int,
        threads: int,
    ) -> list[int]: ...
    def release_keyed(
        self,
        key: ReleaseKey,
        name: str,
        ids: Ids,
        start: int,
        counts: NDArray[Any],
        out: NDArray[Any],
        progress: Callable[[int], object] | None,
        threads: int,
    ) -> None: ...
    def certificate(self, dtype: str, tight: bool) -> _Fields: ...

@final
class Folded:
    def __new__(cls, rate: tuple[int, int] | None, twice: tuple[int, int]) -> Folded: ...
    def release_scalar(self, count: int, dtype: str) -> int: ...
    def release_into(
        self,
        counts: NDArray[Any],
        out: NDArray[Any],
        progress: Callable[[int], object] | None,
        threads: int,
    ) -> None: ...

@final
class Tiers:
    def __new__(cls, rates: list[tuple[int, int]], bounds: tuple[int, int]) -> Tiers: ...
    def release_into(
        self, counts: NDArray[Any], outs: list[NDArray[Any]], threads: int
    ) -> None: ...
    def certificates(self) -> list[_TierFields]: ...

@final
class Groups:
    def __new__(cls, stop: float, block: int, fall: float, blocks: int) -> Groups: ...
    def reach(
        self,
        key: ReleaseKey,
        counts: NDArray[np.int64],
        thresholds: NDArray[np.int64],
        out: NDArray[np.int64],
        threads: int,
    ) -> None: ...
    def points(
        self,
        key: ReleaseKey,
        index: int,
        threshold: int,
        parts: int,
        mean: tuple[int, int],
        words: int,
    ) -> tuple[bytes, bytes]: ...
    def digits(self) -> list[tuple[int, int, list[int]]]: ...

def tiers_not_private(
    tiers: Tiers,
    keys: list[bytes],
    counts: NDArray[Any],
    outs: list[NDArray[Any]],
    threads: int,
) -> None: ...
def sample_geometric(prob: float, trials: int, out: NDArray[Any]) -> None: ...
def sample_bernoulli(prob: float, out: NDArray[Any]) -> None: ...
def release_not_private(
    mechanism: Mechanism,
    key: bytes,
    counts: NDArray[Any],
    out: NDArray[Any],
    threads: int,
) -> None: ...
def kernel() -> tuple[str, str, list[tuple[str, bool]]]: ...

# rows.rs

@final
class Rows:
    def __new__(cls, delimiter: str) -> Rows: ...
    def header(self, chunk: bytes) -> list[str] | None: ...
    def select(self, columns: list[tuple[int, str]]) -> None: ...
    def counts(self, chunk: bytes) -> bytes: ...
    def text(self, counts: NDArray[np.int64]) -> bytes: ...

def columns(data: bytes) -> tuple[list[str], list[tuple[list[str], bytes]], bytes]: ...

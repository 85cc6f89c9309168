"""The internals of OpenDP that its adapter needs, tried on OpenDP 0.14.0 to 0.16.0."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from geomdp._ground.extras import tried

tried("opendp", "0.17")  # Before the imports, which a later version may not have.

import opendp.prelude as dp  # noqa: E402
from opendp.context import constructors  # noqa: E402
from opendp.mod import GLOBAL_FEATURES, _PartialConstructor  # noqa: E402

__all__ = ["constructors", "partial", "promised"]

_FEATURE = "honest-but-curious"
_FEATURE_LOCK = Lock()


def partial(constructor: Callable[[dp.Domain, dp.Metric], dp.Measurement]) -> Any:
    """Return a constructor that OpenDP's ``>>`` accepts, which accepts no other kind."""
    made = _PartialConstructor(constructor)  # type: ignore[no-untyped-call]
    # Drop the empty dictionary that `serialize` would write; without it `serialize` raises.
    vars(made).pop("__opendp_dict__", None)
    return made


@contextmanager
def promised() -> Iterator[None]:
    """Promise OpenDP that the functions and maps of new user-defined measurements are correct.

    OpenDP has one such setting for the whole process: do not change it in another thread at the
    same time.
    """
    with _FEATURE_LOCK:
        given = _FEATURE in GLOBAL_FEATURES
        dp.enable_features(_FEATURE)
        try:
            yield
        finally:
            if not given:
                dp.disable_features(_FEATURE)

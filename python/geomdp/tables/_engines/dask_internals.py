"""The internals of Dask that its adapter needs, tried on Dask and Distributed 2026.8.0."""

from typing import Any

from dask.base import get_scheduler
from distributed import Client

from geomdp._ground.extras import tried

tried("dask", "2027.0")
tried("distributed", "2027.0")


def client() -> Client | None:
    """Return the Client that evaluates by default, if there is one."""
    find: Any = get_scheduler
    found = getattr(find(), "__self__", None)
    return found if isinstance(found, Client) else None


def types(collection: Any) -> Any:
    """Return an object without rows that has the collection's types, of pandas or numpy."""
    return collection._meta

"""Counts day by day: a stream of counts under one privacy loss, safe against crashes.

From a tree of noisy sums, a stream gives the total of any span of steps, at any time and as often
as you like, and a record costs epsilon only once, however long the stream runs.
``docs/guides/streams.md`` is the guide.

>>> import tempfile, pathlib
>>> from geomdp.tables.streams import Stream
>>> folder = tempfile.TemporaryDirectory()
>>> visits = Stream.open(pathlib.Path(folder.name) / "visits.jsonl", horizon=365, epsilon=1)
>>> published = visits.release(0, [512])
>>> published = visits.release(1, [512, 498])
>>> lower, upper = visits.interval(0, 2, alpha=0.05)
>>> upper - visits.total(0, 2)
8
>>> folder.cleanup()
"""

from geomdp._ground.uncopied import public
from geomdp.tables.streams._stream import Stream

__all__ = ["Stream"]

public(__name__)

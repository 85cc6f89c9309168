"""Counts on a tree, such as districts in regions in a country, that add up, with intervals.

A :class:`Hierarchy` is a public tree. Its :meth:`~Hierarchy.release` adds noise to the count of
every node, and epsilon is split between the levels. A :class:`NoisyHierarchy` gives the unbiased
least-squares estimates, which add up; intervals for any node, any union of nodes and all nodes at
once; and the closest integers that add up and are not negative. None of these costs more privacy.

Frames need the extra ``frames``; nothing else here does.
"""

from geomdp.hierarchy._noisy import ByNode, Interval, Noise, NoisyHierarchy
from geomdp.hierarchy._read import read
from geomdp.hierarchy._tree import Hierarchy

__all__ = ["Hierarchy", "NoisyHierarchy", "ByNode", "Interval", "read"]

# Pickles name this module, wherever a class is written.
for _class in (Hierarchy, Noise, NoisyHierarchy, ByNode, Interval):
    _class.__module__ = __name__

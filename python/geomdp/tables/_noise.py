"""The interface between releases and noise: the only file of tables that knows the noise's kind.

Add another noise here. A release asks a noise for

- its plan, before anything is spent: ``certificate()`` raises if there is none;
- its draws: ``release(counts, out=, threads=)``, and :func:`top_among` for searches;
- its privacy loss at a distance: :func:`loss`;
- its bounds: ``bounds``, or None;
- its tails: those of one count, and the total variation from the ideal noise, by
  ``certificate(dtype)``; those of sums by ``rate`` (``sums.py``, ``weighted.py`` and
  ``thresholds.py`` in ``_analysis``), or by the object itself in :mod:`geomdp.accuracy`;
- its name in files: :func:`facts` and :func:`of_facts`, and a digest of the :func:`plan`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from geomdp.mechanism import GeometricMechanism, top_among
from geomdp.mechanism import as_mechanism as as_noise
from geomdp.mechanism import exact_loss as loss
from geomdp.tables._published import fraction

__all__ = [
    "GeometricMechanism",
    "Noise",
    "as_noise",
    "facts",
    "loss",
    "of_facts",
    "plan",
    "top_among",
]

#: Noise of an epsilon, a sensitivity and bounds.
Noise: TypeAlias = GeometricMechanism


def plan(noise: Noise) -> tuple[str, str]:
    """Return the certificate of a noise as JSON, and its digest."""
    text = noise.certificate(np.int64).to_json()
    return text, hashlib.sha256(text.encode()).hexdigest()


def facts(noise: Noise, certificate: bool) -> dict[str, Any]:
    """Return the facts of a noise for a file, with its certificate or without."""
    text, digest = plan(noise)
    found = {
        "rate": str(noise.rate),
        "bounds": None if noise.bounds is None else list(noise.bounds),
        "plan_sha256": digest,
    }
    return found | ({"certificate": json.loads(text)} if certificate else {})


def of_facts(said: Mapping[str, Any], sensitivity: int) -> Noise:
    """Return the noise that a file states."""
    bounds = said["bounds"]
    epsilon = fraction(said["rate"]) * sensitivity
    return Noise(epsilon, sensitivity, None if bounds is None else tuple(bounds))

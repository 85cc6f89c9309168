"""The door to the Rust core, which all other files of the package take it from."""

import numpy as np

from geomdp import _core as core

__all__ = ["core", "kernel"]


def kernel() -> str:
    """Return the name of the kernel's back end in this process, and the reason for it.

    The back end is the fastest one that this processor can run: "avx512", "avx2", "neon" or
    "portable". All give the same noise for the same tape. The tape is computed by VAES on vectors
    of 512 bits or of 256, else by AES instructions ("aes"), else by portable code; all give the
    same tape for the same key. A release by key and ids uses AES instructions where this names
    "vaes-256".

    Returns
    -------
    str
        The name, the code that computes the tape, and the features of the processor that decide,
        present and missing, such as
        "avx2: tape by aes; has aes avx2; lacks vaes avx512f avx512bw avx512cd avx512dq avx512vl".

    Examples
    --------
    >>> from geomdp import kernel
    >>> name, why = kernel().split(": ")
    >>> name in ("avx512", "avx2", "neon", "portable")
    True

    """
    name, tape, features = core.kernel()
    has, lacks = (
        " ".join(feature for feature, found in features if found == wanted) or "none"
        for wanted in (True, False)
    )
    return f"{name}: tape by {tape}; has {has}; lacks {lacks}"


def _first_calls() -> None:
    """Make a call of each kind before any other thread can, without randomness.

    The core looks up some names and types of Python once, on the first call that needs them. A
    process that was forked while another thread did so waited for it for ever.
    """
    counts, outs = np.zeros(2, np.int64), [np.zeros(2, np.int64)] * 2
    mechanism = core.Mechanism((1, 1), None)
    mechanism.limits("i8")
    mechanism.certificate("i8", False)
    core.release_not_private(mechanism, bytes(32), counts, outs[0], 1)
    core.Folded((1, 1), (0, 2))
    tiers = core.Tiers([(1, 1), (1, 2)], (0, 1))
    tiers.certificates()
    core.tiers_not_private(tiers, [bytes(32)] * 2, counts, outs, 1)
    core.columns(b"a,n\r\nx,1\r\n")


_first_calls()

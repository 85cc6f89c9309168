"""The code that adds the noise in this process."""

from geomdp import _core


def kernel() -> str:
    """Return the name of the kernel's back end in this process, and the reason for it.

    The back end is the fastest one that this processor can run: "avx512", "avx2", "neon" or
    "portable". All give the same noise for the same tape. The tape is computed with vaes, else with
    aes, else without AES instructions.

    Returns
    -------
    str
        The name, and which of the processor features that decide are present and missing, such as
        "avx2: has aes avx2; lacks vaes avx512f avx512bw avx512dq avx512vl".

    Examples
    --------
    >>> from geomdp import kernel
    >>> name, why = kernel().split(": ")
    >>> name in ("avx512", "avx2", "neon", "portable")
    True

    """
    name, features = _core.kernel()
    has, lacks = (
        " ".join(feature for feature, found in features if found == wanted) or "none"
        for wanted in (True, False)
    )
    return f"{name}: has {has}; lacks {lacks}"

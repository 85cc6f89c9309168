"""The command line: plan, count, add noise and publish, for CSV and Parquet files.

Numbers are taken exactly as written. The exit code is 0 on success, 2 if a command or a parameter
is invalid, and 1 for any other failure: files, their data, interrupts. Every error is one line on
standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from geomdp._ground.uncopied import public
from geomdp.cli._arguments import UsageError, parser
from geomdp.cli._budget import BUDGET
from geomdp.cli._count import COUNT
from geomdp.cli._delimited import DataError
from geomdp.cli._files import print_text
from geomdp.cli._plan import ACCURACY, CERTIFICATE, COMPOSE, EPSILON
from geomdp.cli._release import RELEASE

__all__ = ["main"]

_COMMANDS = {
    "accuracy": ACCURACY,
    "epsilon": EPSILON,
    "compose": COMPOSE,
    "certificate": CERTIFICATE,
    "count": COUNT,
    "budget": BUDGET,
    "release": RELEASE,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the name of the program; those of this process if not given.

    Returns
    -------
    int
        The exit code: 0, 1 or 2.

    Examples
    --------
    >>> from geomdp.cli import main
    >>> main(["compose", "0.1x50"])
    5.0
    50 releases with these privacy losses are together (5.0, 0)-differentially private.
    0

    """
    try:
        given = parser(_COMMANDS).parse_args(argv)
        print_text(given.run(given))
    except SystemExit:
        return 0  # The parser printed help or the version.
    except BrokenPipeError:
        return 1  # The reader closed the pipe.
    except UsageError as error:
        return _complain(error, 2)
    except OSError as error:
        reason = error.strerror or error
        return _complain(f"{error.filename}: {reason}" if error.filename else reason, 1)
    except (DataError, MemoryError) as error:
        return _complain(str(error) or "out of memory", 1)
    except KeyboardInterrupt:
        return _complain("interrupted", 1)
    return 0


def _complain(why: object, code: int) -> int:
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in f"geomdp: error: {why}")
    print(line, file=sys.stderr)
    return code


public(__name__)

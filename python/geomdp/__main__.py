"""The command line: the program ``geomdp``, and ``python -m geomdp``."""

import sys

__all__ = ["run"]


def run() -> int:
    """Import and run the command; an interrupt of the imports is one line on standard error too."""
    try:
        from geomdp.cli import main  # noqa: PLC0415 (takes most of the time)

        return main()
    except KeyboardInterrupt:
        print("geomdp: error: interrupted", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(run())

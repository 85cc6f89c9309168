"""The command line, as ``python -m geomdp``."""

import sys

from geomdp.cli import main

if __name__ == "__main__":
    sys.exit(main())

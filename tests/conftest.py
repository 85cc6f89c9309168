"""Settings of all tests: a slow machine fails none of them."""

import os

from hypothesis import settings

settings.register_profile("no deadlines", deadline=None)
settings.load_profile("no deadlines")

# Tests run side by side on all processors already. More threads for small matrices only wait for
# each other, and took a fifth of the time of the tests of tables. Numpy reads this as it loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

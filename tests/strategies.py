"""Numbers of every size, and a check that a float64 is an exact number rounded up."""

import math
from fractions import Fraction

from hypothesis import strategies as st

from exact import stated

MAX = 2**64 - 1

positive_floats = st.one_of(
    st.floats(min_value=5e-324, allow_infinity=False),
    st.floats(min_value=5e-324, max_value=2.0**-1022),
    st.floats(min_value=1e300, allow_infinity=False),
    st.floats(min_value=1e-3, max_value=1e3),
    st.integers(-1074, 1023).map(lambda n: math.ldexp(1.0, n)),
)
positive_numbers = st.one_of(
    positive_floats,
    st.integers(1, 2**200),
    st.fractions(min_value=0, max_value=2**1000).filter(bool),
    st.builds(Fraction, st.integers(1, 2**1100), st.integers(1, 2**1200)),
)
distances = st.one_of(
    st.integers(0, 10),
    st.integers(0, MAX),
    st.integers(0, 80).map(lambda n: 2**n),
    st.integers(0, 2**1100),
)


def check_rounded_up(loss: float, exact: Fraction) -> None:
    assert type(loss) is float
    assert loss == math.inf or stated(loss) >= exact
    assert stated(math.nextafter(loss, -math.inf)) < exact or loss == exact == 0

"""The total privacy loss of many releases, exactly, rounded up.

A release of privacy loss l is at worst randomised response, and a release of this package at
distance 1 is no better than that. The joint privacy loss of many releases is therefore a finite sum
(Kairouz, Oh and Viswanath 2015, theorem 3.3; Murtagh and Vadhan 2016), and the bounds computed here
are the least that hold for every choice of releases (``docs/proofs.md``, section 14). Where an
individual can change a cell by more than 1, :func:`loss_distribution` gives a smaller loss than
randomised response would.

Each release may depend on the outputs of earlier ones, and be about other data. The *losses* may
depend on earlier outputs only at delta 0; otherwise fix them in advance.

>>> from geomdp import accounting
>>> budget = accounting.Budget(epsilon=1)
>>> for _ in range(10):
...     budget.book(0.1)
>>> budget.remaining, accounting.compose([0.1] * 10)
(0.0, 1.0)
"""

from geomdp._ground.uncopied import public
from geomdp.accounting._bookings import Booking, Protects
from geomdp.accounting._budget import Budget
from geomdp.accounting._compose import compose, compose_delta, rdp, split, zcdp
from geomdp.accounting._losses import LossDistribution, loss_distribution

__all__ = [
    "compose",
    "compose_delta",
    "split",
    "Budget",
    "Booking",
    "Protects",
    "loss_distribution",
    "LossDistribution",
    "zcdp",
    "rdp",
]

public(__name__)

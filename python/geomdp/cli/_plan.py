"""The commands that plan: accuracy, epsilon, compose, certificate."""

from __future__ import annotations

import argparse
from collections import Counter
from fractions import Fraction

from geomdp import accounting, accuracy
from geomdp.cli._arguments import Command, Option, flag, integer, loss, mechanism, refusing, shared


def _accuracy(given: argparse.Namespace) -> str:
    n = given.simultaneous
    with refusing(given):
        made = mechanism(given)
        if given.bounds is None:
            a = accuracy.scale_to_accuracy(made.scale, given.alpha, n=n or 1)
        else:
            a = accuracy.simultaneous_accuracy(made, given.alpha, n=n or 1)
    where = "" if given.bounds is None else ", for any true count within the bounds"
    sentence = _sentence(n, a, given.alpha)
    return f"{a}\n{sentence[0].upper()}{sentence[1:]}{where}.\n"


def _epsilon(given: argparse.Namespace) -> str:
    n, reach = given.simultaneous, given.sensitivity or 1
    with refusing(given):
        least = accuracy.accuracy_to_epsilon(
            given.accuracy, given.alpha, sensitivity=reach, n=n or 1
        )
    sentence = _sentence(n, given.accuracy, given.alpha)
    return f"{least}\nThis is the least epsilon for which {sentence}.\n"


def _sentence(n: int | None, a: int, alpha: str) -> str:
    subject = "a noisy count" if n in (None, 1) else f"at least one of {n} noisy counts"
    return (
        f"{subject} differs from the true count by more than {a} with probability at most {alpha}"
    )


def _compose(given: argparse.Namespace) -> str:
    losses: Counter[Fraction] = Counter()
    for each, n in given.losses:
        losses[Fraction(each)] += n
    delta = given.delta or "0"
    with refusing(given):
        epsilon = accounting.compose(losses, Fraction(delta))
    n = losses.total()
    said = "releases with these privacy losses are together" if n > 1 else "release is"
    return f"{epsilon}\n{n} {said} ({epsilon}, {delta})-differentially private.\n"


def _certificate(given: argparse.Namespace) -> str:
    with refusing(given):
        certificate = mechanism(given).certificate(given.dtype, tight=given.tight)
        return f"{certificate.to_json() if given.json else certificate}\n"


ACCURACY = Command(
    _accuracy,
    "how accurate a release is",
    """\
Print the accuracy at level alpha: the least a for which the probability of an
error of more than a is at most alpha. A sentence that explains it follows.

With --bounds, this is the accuracy of the clamped release, and otherwise that of
the noise alone.""",
    "--epsilon 0.5 --alpha 0.05 --bounds 0 4526 --simultaneous 24",
    shared("--epsilon", "--scale", "--sensitivity", "--bounds", "--alpha", "--simultaneous"),
)
EPSILON = Command(
    _epsilon,
    "the least epsilon for an accuracy",
    """\
Print the least epsilon that gives this accuracy at level alpha, rounded up, for
noise without bounds. A sentence that explains it follows.""",
    "--accuracy 5 --alpha 0.05 --simultaneous 200",
    {"--accuracy": Option("A", "an integer", {"type": integer, "required": True})}
    | shared("--alpha", "--sensitivity", "--simultaneous"),
)
COMPOSE = Command(
    _compose,
    "the total privacy loss of many releases",
    """\
Print an epsilon for which all the releases together are (epsilon, delta)-private.
It is rounded up, and is the least one wherever that can be computed. A sentence
that explains it follows.

If delta is not 0, all privacy losses must be fixed before the first release.""",
    "--delta 1e-6 0.1x50 0.5x2",
    shared("--delta")
    | {
        "losses": Option(
            "E[xN]",
            "the privacy loss of a release, or of each of N releases",
            {"type": loss, "nargs": "+"},
        )
    },
)
CERTIFICATE = Command(
    _certificate,
    "why a release is private",
    "Print the exact data and inequalities that prove the sampled distribution private.",
    "--epsilon 0.5 --bounds 0 4526 --tight",
    shared("--epsilon", "--scale", "--sensitivity", "--bounds", "--dtype")
    | {
        "--tight": flag("compute the exact privacy loss, for bounds up to 100000 apart"),
        "--json": flag("print the whole certificate, for a verifier"),
    },
)

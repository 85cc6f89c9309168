"""A published file as one page: a table that answers, in any browser, without a network.

The page holds the bytes of a CSV file and of its description, so everything it shows follows from
the files that :func:`geomdp.tables._publish.published.write` would write. Its scripts and its style
are the files beside this one, and its content security policy allows these alone.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.notebook import many
from geomdp.tables._facts import about as _about

#: The confidences of the page's slider, in percent.
CONFIDENCES: Sequence[float] = (50, 80, 90, 95, 99, 99.9)
#: The most rows of a page, which then opens in about a second.
MOST_ROWS = 20_000
#: Beyond this a browser rounds integers.
_MOST_NUMBER = 2**53


def level(confidence: float) -> Fraction:
    """Return the significance level of a confidence in percent."""
    return 1 - Fraction(str(confidence)) / 100


def intervals(
    ends: Callable[[Fraction, bool], tuple[NDArray[Any], NDArray[Any]]],
) -> dict[str, Any]:
    """Return the lower and upper ends of all rows by confidence, each for itself and all at once.

    Sorted by its counts, the page shows those that hold at once: the first rows are then those
    whose noise was greatest. Ends that a browser would round are open there, and null.
    """

    def near(found: NDArray[Any]) -> list[Any]:
        fit = np.abs(found.astype(float)) < _MOST_NUMBER
        return np.where(fit, found, np.array(None)).reshape(-1).tolist()

    return {
        name: [[near(x) for x in ends(level(confidence), together)] for confidence in CONFIDENCES]
        for name, together in (("ends", False), ("together", True))
    }


def page(rows: bytes, description: bytes, answers: Mapping[str, Any]) -> bytes:
    """Return the page of a CSV file and its description, with the library's answers."""
    known = json.loads(description)
    facts = known["geomdp"]
    data = {
        "csv": rows.decode(),
        "description": description.decode(),
        "name": known["path"],
        "confidences": CONFIDENCES,
        **answers,
    }
    about, sentences = facts["about"], _sentences(facts)
    title = about.get("title") or facts["label"] or "Noisy counts"
    # For data portals. They show its description alone, which says that counts are noisy.
    dataset = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "identifier": facts["id"],
        **_about.dataset(about | {"title": title}),
        "description": " ".join([*filter(None, [about.get("description")]), *sentences]),
    }
    style, script = _text("page.css"), _text("noise.js") + _text("page.js")
    fields = {
        "policy": f"{_policy(style)}; script-src '{_digest(script)}'",
        "title": html.escape(title),
        "about": _shown(about),
        "meaning": paragraphs(sentences),
        "style": style,
        "dataset": _held(dataset),
        "data": _held(data),
        "script": script,
    }
    return _filled("page.html", fields)


def plain(title: str, about: Mapping[str, str], sections: Mapping[str, str]) -> bytes:
    """Return a page without scripts: sections of HTML, below their headings."""
    style = _text("page.css")
    fields = {
        "policy": _policy(style),
        "title": html.escape(title),
        "about": _shown(about),
        "style": style,
        "sections": "\n".join(
            f"<section>\n<h2>{html.escape(heading)}</h2>\n{each}\n</section>"
            for heading, each in sections.items()
        ),
    }
    return _filled("plain.html", fields)


def listed(texts: Mapping[str, str]) -> str:
    """Return names and their texts as HTML."""
    items = (f"<dt>{html.escape(x)}</dt><dd>{html.escape(y)}</dd>" for x, y in texts.items())
    return "\n".join(['<dl class="about">', *items, "</dl>"])


def table(names: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """Return a table of texts as HTML."""

    def row(kind: str, texts: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{kind}>{html.escape(text)}</{kind}>' for text in texts)}</tr>"

    body = "\n".join(row("td", each) for each in cells)
    head = f"<thead>{row('th', names)}</thead>"
    return f'<div class="table">\n<table>\n{head}\n<tbody>\n{body}\n</tbody>\n</table>\n</div>'


def paragraphs(sentences: Iterable[str]) -> str:
    return "\n".join(f"<p>{html.escape(each)}</p>" for each in sentences)


def _policy(style: str) -> str:
    """Return a content security policy that allows this style, and nothing else."""
    return f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src '{_digest(style)}'"


def _filled(name: str, fields: Mapping[str, str]) -> bytes:
    """Return a file beside this one, with its fields filled in."""
    found = []
    for part in _text(name).split("{{"):
        field, end, rest = part.rpartition("}}")
        found += [fields[field] if end else "", rest]
    return "".join(found).encode()


def _held(data: Any) -> str:
    """Return JSON for an element of data: nothing in it can end that, and all of it is ASCII."""
    return json.dumps(data).replace("<", "\\u003c")


def _shown(about: Mapping[str, str]) -> str:
    """Return what the publisher says, below the title."""
    texts = {key.capitalize(): text for key, text in about.items() if key != "title"}
    found = []
    if "Description" in texts:
        found.append(f'<p class="about">{html.escape(texts.pop("Description"))}</p>')
    if texts:
        found.append(listed(texts))
    return "\n".join(found)


def _text(name: str) -> str:
    return (resources.files(__name__) / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _loss(number: Fraction) -> str:
    """Return a privacy loss as a decimal that equals it, or rounded up if there is no short one."""
    return parameters.text(number) if parameters.is_typed(number) else _up(number)


def _up(number: Fraction) -> str:
    """Return a positive number with four digits, rounded up."""
    digits = 3 - math.floor(math.log10(number))
    return f"{math.ceil(number * Fraction(10) ** digits) / 10.0**digits:.4g}"


def _limits(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return a sentence about what was kept of each individual, and its limits."""
    values = facts["values"]
    if values is None:
        if facts["l1"] is not None:
            most = f"with at most {many(facts['l1'], 'record')} in all"
        else:
            times = "once" if facts["linf"] == 1 else f"{facts['linf']} times"
            most = f"in at most {many(facts['l0'], 'cell')}, at most {times} in each"
        return f"Each individual counts {most}; further records were left out.", most
    low, high = values
    if facts["l1"] is not None:
        most = f"with at most {facts['l1']} in all, and values from {low} to {high}"
    else:
        most = f"in at most {many(facts['l0'], 'cell')}, with a sum from {low} to {high} in each"
    kept = f"These are sums of values. Each individual counts {most}"
    return f"{kept}; what was beyond these limits was left out.", most


def _left_out(axes: Mapping[str, Any]) -> str:
    """Return sentences about which records are in the table, by its columns without `other`."""
    alone = {label: axis["complete"] for label, axis in axes.items() if not axis["other"]}
    kinds = (
        (False, "Only records with one of the values that this table may show are in it, of"),
        (True, "As the publisher states, all records have one of the listed values of"),
    )
    found = [(text, [x for x, all_in in alone.items() if all_in is kind]) for kind, text in kinds]
    return "".join(f" {text} {', '.join(labels)}." for text, labels in found if labels)


def _thresholds(at_least: Any) -> str:
    """Return a threshold, or two, in words."""
    if not isinstance(at_least, list | tuple):
        return str(at_least)
    return f"{at_least[0]} (words of a public list) or {at_least[1]} (others)"


def _noise(facts: Mapping[str, Any], epsilon: Fraction) -> str:
    """Return sentences about the noise, and about what was done to noisy counts."""
    if facts["top"] is not None:
        noise = (
            f"These are the names of {many(facts['top'], 'cell')}, the largest first, chosen by "
            "counts to which random noise was added. No counts are published."
        )
    else:
        noise = (
            "Random noise was added to every count (discrete Laplace noise of known size), so "
            "counts are not exact, but the interval of each contains the true count with the "
            "stated confidence. If you sort by the counts, the intervals widen so that all of "
            "them hold at once, because the largest counts tend to have the most noise."
        )
    if facts["at_least"] is not None:
        ruled = any(isinstance(x.get("levels"), dict) for x in facts["axes"].values())
        noise += (
            f" Only groups with a noisy count of at least {_thresholds(facts['at_least'])} are "
            "shown, and some of them may be empty"
            + (
                ""
                if not ruled
                else ": where no list says what occurs, such a row may be any text "
                "or number at random"
            )
            + "."
            + (
                " The last row is the sum of all other groups, with noise of its own."
                * bool(facts["rest"])
            )
        )
    if facts["rounded"] is not None:
        noise += (
            f" Counts were then rounded to multiples of {facts['rounded']}: intervals allow for it."
        )
    if facts["tier"] is not None:
        finer = [x for x in map(Fraction, facts["tier"]["epsilons"]) if x > epsilon]
        noise += (
            " This table was published at several levels of precision; this one is called "
            f"{facts['tier']['name']!r}."
        )
        if finer:
            others = " and ".join(map(_loss, finer))
            noise += (
                f" More precise ones exist, with a privacy loss of {others}. Readers who have one "
                "of those need only the most precise."
            )
    if facts["corrects"]:
        noise = f"This table corrects an earlier one (id {facts['corrects'][0]}). {noise}"
    return noise


def _sentences(facts: Mapping[str, Any]) -> list[str]:
    """Return sentences that explain a release to readers new to differential privacy."""
    epsilon = Fraction(facts["epsilon"])
    odds = Fraction(
        math.exp(min(float(epsilon), 700.0)) * (1 + 2**-40)
    )  # more than the error of exp
    alone = facts["individual"] is None and facts["l0"] == 1
    if alone and facts["values"] is not None:
        one, (low, high) = "one record", facts["values"]
        limits = (
            "These are sums of values. Each record counts as one individual, with a value from "
            f"{low} to {high}; values beyond that were moved to the nearer end."
        )
    elif alone and facts["linf"] == 1:
        one, limits = "one record", "Each record counts as one individual."
    else:
        one = "one individual"
        limits, most = _limits(facts)
        if facts["individual"] is None:
            limits = f"The publisher states that each individual counts {most}."
    if facts["unit"] not in ("record", "individual"):
        limits = f"Privacy is that of each {facts['unit']!r}. {limits}"
    limits += _left_out(facts["axes"])
    guess = f"the odds that {one} is among the data"
    if facts["neighbours"] == "change":
        guess = f"the odds between two guesses about {one}"
    if facts["part_of"] is not None:
        limits += (
            " The rows are steps of a stream, whose privacy loss for one record is "
            f"{_loss(Fraction(facts['part_of']))} in all."
        )
    if facts["totals"]:
        limits += (
            " Estimates add up to public totals, which the publisher states and which are not "
            "covered by the privacy loss."
        )
    return [
        _noise(facts, epsilon),
        f"The privacy loss, epsilon, is {_loss(epsilon)}: for somebody who knows all other "
        f"records, {guess} change by a factor of at most {_up(odds)}.",
        limits,
        "Intervals are for the counts as they are after these limits. They allow for the noise, "
        "but not for errors in the data or for sampling error.",
        "You may use these numbers freely: no sum, comparison or download costs any more privacy.",
    ]

"""A published file as one page: a plain table, which scripts enhance, in any browser, offline.

All that a reader has to see is HTML: title, how to read a number, tables with intervals, downloads,
source and notes. The downloads are links that hold the bytes of the CSV file and its description.
Scripts add search, order, other confidences, pictures and sums. They and the style are the files
beside this one, and the content security policy of the page allows these alone.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground.notebook import many
from geomdp.tables._facts import about as _about
from geomdp.tables._facts import rounding
from geomdp.tables._publish.page import sentences
from geomdp.tables._publish.page.sentences import between, joined, number
from geomdp.tables._publish.page.shown import CONFIDENCES, MAIN, Sheet, Shown

#: The most rows of a page, which then opens in about a second.
MOST_ROWS = 20_000
#: From this many levels on, ordered numbers or dates have a chart.
_CHARTED = 7
#: Letters that an address of data, or an attribute within ', cannot hold as they are.
_CODED = str.maketrans({chr(code): f"%{code:02X}" for code in [*range(32), *b"%#?&'<>", 127]})

escape = html.escape


def page(rows: bytes, description: bytes, shown: Shown) -> bytes:
    """Return the page of a CSV file and its description, with what it shows."""
    known = json.loads(description)
    facts, name = known["geomdp"], known["path"]
    about, ranked = facts["about"], shown.intervals is None
    title = about.get("title") or facts["label"] or "Noisy counts"
    how, meaning = sentences.how_to_read(facts, shown), sentences.meaning(facts, shown)
    # For data portals. They show its description alone, which says that counts are noisy.
    dataset = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "identifier": facts["id"],
        **_about.dataset(about | {"title": title}),
        "description": " ".join([*filter(None, [about.get("description")]), how[0], *meaning]),
    }
    style, script = _text("page.css"), _text("noise.js") + _text("page.js")
    several = len(shown.sheets) > 1
    fields = {
        "policy": f"{_policy(style)}; script-src '{_digest(script)}'",
        "title": escape(title),
        "subtitle": _told(about, ("description", "period")),
        "question": "What does this mean?" if ranked else "What do these numbers mean?",
        "how": escape(" ".join(how)),
        "chart": _chart(facts, shown),
        "tables": "\n".join(
            _table(facts, shown, sheet, place if several else None)
            for place, sheet in enumerate(shown.sheets, 1)
        ),
        "files": f"{_link(rows, name, 'text/csv', 'CSV file')} and "
        + _link(description, f"{name}.json", "application/json", "its description"),
        "source": _told(about, ("source", "publisher", "contact", "licence")),
        "meaning": paragraphs(meaning),
        "style": style,
        "dataset": _held(dataset),
        "data": _held(_for_scripts(facts, shown)),
        "script": script,
    }
    return _filled("page.html", fields)


def _for_scripts(facts: Mapping[str, Any], shown: Shown) -> dict[str, Any]:
    """Return the numbers that scripts need, in the order of the page's rows."""
    order = np.concatenate([sheet.rows for sheet in shown.sheets])

    def at(values: NDArray[Any] | None) -> list[Any] | None:
        return None if values is None else values[order].tolist()

    kinds = shown.intervals and [
        [int(x) if math.isfinite(x) else None for x in kind]
        for kind in shown.intervals.kinds.tolist()
    ]
    return {
        "confidences": CONFIDENCES,
        "counts": at(shown.counts),
        "estimates": at(shown.estimates),
        "widths": kinds,
        "kinds": at(shown.intervals.of_rows) if shown.intervals and len(kinds or []) > 1 else None,
        "cells": None
        if shown.cells is None
        else "".join(map(str, map(int, at(shown.cells) or []))),
        "rate": shown.rate,
        "sums": shown.sums is None,
        "step": 2 * rounding.half(facts["rounded"]),
        "signed": shown.least is None,
        "ranked": shown.intervals is None,
        "tree": shown.tree,
        "depths": None if shown.tree is None else at(shown.depths),
    }


def _table(facts: Mapping[str, Any], shown: Shown, sheet: Sheet, place: int | None) -> str:
    ranked, what = shown.intervals is None, facts["name"][:1].upper() + facts["name"][1:]
    by = f" by {joined(sheet.columns)}" if sheet.columns else ""
    caption = f"The {sheet.rows.size:,} largest{by}" if ranked else f"{what}{by}"
    if place is not None:
        caption = f"Table {place}. {caption}"
    heads = [f"<th scope=col>{escape(label)}" for label in sheet.columns] or ["<td>"]
    if ranked:
        heads = ["<th scope=col class=n>rank", *heads]
    else:
        heads += [
            f"<th scope=col class=n>{escape(facts['name'])}",
            f"<th scope=col class=i>{_kind()}",
        ]
    body = []
    lower, upper = (shown.numbers, shown.numbers) if ranked else shown.ends()
    texts = [shown.levels[label] for label in sheet.columns]
    columns = (shown.numbers, lower, upper, shown.depths, shown.totals)
    zeros = np.zeros_like(shown.counts)
    each = (zeros if values is None else values for values in columns)
    numbers = zip(*(values[sheet.rows].tolist() for values in each), strict=True)
    for row, (value, low, high, depth, total) in zip(sheet.rows.tolist(), numbers, strict=True):
        # Every name is the header of its row: cells with numbers are known by that.
        names = "".join(
            f"<th{f' class=d{min(depth, 5)}' * (depth > 0 and x == shown.tree)}>{escape(each[row])}"
            for x, each in enumerate(texts)
        )
        names = names or "<th>all"
        cells = f"{names}<td>{number(value)}<td>{between(low, high)}"
        if ranked:
            cells = f"<td>{value}{names}"
        # A line may end within a tag: texts of cells are those of the release alone.
        body.append(f"<tr{' class=sum' * (total and not depth)}\n>{cells}")
    inside = "".join(body)
    return (
        f'<div class=scroll tabindex=0 role=region aria-label="{escape(caption)}">\n'
        f'<table class="counts{" ranks" * ranked}">'
        f"\n<caption>{escape(caption)}</caption>\n"
        f"<thead><tr>{''.join(heads)}</thead>\n<tbody>{inside}</table>\n</div>"
    )


def _kind() -> str:
    return f"{CONFIDENCES[MAIN]}% interval"


def _told(about: Mapping[str, str], keys: Iterable[str]) -> str:
    """Return some of what the publisher says."""
    return "\n".join(
        f'<p class="about {key}">{f"{key.capitalize()}: " * (key != "description")}'
        f"{escape(about[key])}</p>"
        for key in keys
        if key in about
    )


def _link(content: bytes, name: str, kind: str, text: str) -> str:
    """Return a link that downloads a file, whose bytes it holds: browsers need no script for it."""
    address = f"data:{kind};charset=utf-8,{content.decode().translate(_CODED)}"
    size = f"{len(content) / 1000:,.0f} kB" if len(content) > 999 else many(len(content), "byte")
    return f"<a download=\"{escape(name)}\" href='{address}'>{text}</a> ({size})"


def _chart(facts: Mapping[str, Any], shown: Shown) -> str:
    """Return a line with a band, if the levels of the only column are ordered numbers or dates."""
    places = shown.ordered
    if places is None or len(places) < _CHARTED:
        return ""
    [(label, names)] = shown.levels.items()
    ends = np.stack(shown.ends())
    finite = ends[np.isfinite(ends)]
    low, high = min(0, *finite.tolist()), max(1, *finite.tolist())
    step = 10 ** int(math.log10(high))
    tick = max(x * step for x in (1, 2, 5) if x * step <= high)

    def x(value: float) -> Any:
        return 48 + 364 * (value - places[0]) / (places[-1] - places[0])

    def y(value: float) -> Any:
        return 158 - 146 * (np.clip(value, low, high) - low) / (high - low)

    def path(values: Iterable[float]) -> list[str]:
        return [f"{x(p):.1f},{y(v):.1f}" for p, v in zip(places, values, strict=True)]

    levels = "".join(
        f'<line class="axis" x1="48" x2="412" y1="{y(at):.0f}" y2="{y(at):.0f}"/>'
        f'<text x="44" y="{y(at) + 4:.0f}" text-anchor="end">{number(at)}</text>'
        for at in sorted({0, tick, low})
    )
    lower, upper = (path(each) for each in ends.tolist())
    told = (
        f"{facts['name'][:1].upper()}{facts['name'][1:]} by {label}. The band shows the {_kind()}s."
    )
    return (
        f"<figure>\n<figcaption>{escape(told)}</figcaption>\n"
        f'<svg viewBox="0 0 420 176" role="img" aria-label="{escape(told)}">{levels}'
        f'<polygon class="band" points="{" ".join([*upper, *lower[::-1]])}"/>'
        f'<polyline class="line" points="{" ".join(path(shown.numbers.tolist()))}"/>'
        f'<text x="48" y="174">{escape(names[0])}</text>'
        f'<text x="412" y="174" text-anchor="end">{escape(names[-1])}</text></svg>\n</figure>'
    )


def plain(title: str, about: Mapping[str, str], sections: Mapping[str, str]) -> bytes:
    """Return a page without scripts: sections of HTML, below their headings."""
    style = _text("page.css")
    fields = {
        "policy": _policy(style),
        "title": escape(title),
        "about": _told(about, [key for key in about if key != "title"]),
        "style": style,
        "sections": "\n".join(
            f"<section>\n<h2>{escape(heading)}</h2>\n{each}\n</section>"
            for heading, each in sections.items()
        ),
    }
    return _filled("plain.html", fields)


def listed(texts: Mapping[str, str]) -> str:
    """Return names and their texts as HTML."""
    items = (f"<dt>{escape(x)}</dt><dd>{escape(y)}</dd>" for x, y in texts.items())
    return "\n".join(['<dl class="about">', *items, "</dl>"])


def table(names: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """Return a table of texts as HTML."""

    def row(kind: str, texts: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{kind}>{escape(text)}</{kind}>' for text in texts)}</tr>"

    body = "\n".join(row("td", each) for each in cells)
    head = f"<thead>{row('th', names)}</thead>"
    return f'<div class="table">\n<table>\n{head}\n<tbody>\n{body}\n</tbody>\n</table>\n</div>'


def paragraphs(sentences: Iterable[str]) -> str:
    return "\n".join(f"<p>{escape(each)}</p>" for each in sentences)


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
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _text(name: str) -> str:
    return (resources.files(__name__) / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

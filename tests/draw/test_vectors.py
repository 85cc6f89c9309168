"""The known answers of vectors/, by the program beside them and by the one that makes them."""

import copy
import itertools
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import make_vectors
from geomdp import GeometricMechanism
from geomdp.testing import release_not_private
from json_schema import errors
from make_vectors import FILES, FOLDER, MISTAKES, check, refusing

SCHEMA = json.loads((FOLDER.parent / "docs/vectors.schema.json").read_text())
DOCUMENTS = {path.name: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}


def test_check_passes_all_vectors_without_the_package() -> None:
    command = [sys.executable, "-I", "-S", str(FOLDER / "check.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(run.stdout.splitlines()) == len(DOCUMENTS) == len(FILES)
    assert sum(len(each["vectors"]) for each in DOCUMENTS.values()) >= 300
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 2**20


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_are_those_of_the_schema(name: str) -> None:
    document = DOCUMENTS[name]
    assert errors(document, SCHEMA, SCHEMA) == []
    [plan, *_] = document["plans"]
    for path, bad in [
        (("format",), "geomdp-vectors-2"),
        (("vectors", 0, "plan"), 1),
        (("vectors", 0, "more"), ""),
        (("vectors", 0, "flags"), [3]),
        (("vectors", 0, "counts"), [7]),
        (("vectors", 0, "masses"), ["12"]),
        (("plans", plan, "dtype"), "float64"),
        (("plans", plan, "epsilon"), "0.1"),
        (("plans", plan, "certificate", "limb_bits"), 64),
    ]:
        changed = copy.deepcopy(document)
        *places, last = path
        part: Any = changed
        for place in places:
            part = part[place]
        part[last] = bad
        assert errors(changed, SCHEMA, SCHEMA), path


def test_flags_are_those_of_the_mistakes_that_a_vector_refuses() -> None:
    """The package gives the other files, with their flags."""
    document = DOCUMENTS["tapes.json"]
    assert refusing(document) == [vector["flags"] for vector in document["vectors"]]
    noted = {flag: name for each in DOCUMENTS.values() for flag, name in each["notes"].items()}
    assert noted == {flag: name for flag, (name, *_) in MISTAKES.items()}
    for flag in MISTAKES:
        assert sum(flag in v["flags"] for d in DOCUMENTS.values() for v in d["vectors"]) > 3


#: Tapes in full come from the kernel alone, which needs a Rust compiler.
@pytest.mark.parametrize("name", sorted(FILES.keys() - {"tapes.json"}))
def test_package_gives_the_vectors(name: str) -> None:
    assert make_vectors.text(name) == (FOLDER / name).read_text(encoding="utf-8")


def test_package_has_the_plans_of_the_tapes() -> None:
    for plan in DOCUMENTS["tapes.json"]["plans"].values():
        rate, upper = Fraction(plan["epsilon"]), int(plan["bounds"][1])
        mechanism = GeometricMechanism(rate, bounds=(0, upper))
        assert json.loads(mechanism.certificate(plan["dtype"]).to_json()) == plan["certificate"]


def test_places_near_chunks_have_the_words_of_the_specification() -> None:
    setting, key = make_vectors.Setting(2**-20), bytes(range(32))
    noise = release_not_private(setting.mechanism, np.zeros(5 * 2048, np.int64), key)
    plan, aes = check.Plan(setting.entry), check.Aes(key)
    for place in [0, 15, 16, *(2048 * k + d for k in range(1, 5) for d in (-1, 0, 1))]:
        block, lane = divmod(place, check.LANES)
        at = [(block * plan.words + j) * check.LANES + lane for j in range(plan.words)]
        tape = [check.words(aes((n // 2).to_bytes(16, "little")))[n % 2] for n in at]
        assert noise[place] == plan.noisy(0, tape)


def last_place(value: Any) -> Any:
    """Return a value with its last number off by one, in its last place."""
    if isinstance(value, list):
        return [*value[:-1], last_place(value[-1])]
    if isinstance(value, dict):
        return {**value, "values": last_place(value["values"])}
    if value[:2] == "0x":
        return hex(int(value, 16) ^ 1)
    return str(int(value) + 1) if len(value) < 64 else f"{int(value, 16) ^ 1:064x}"


@pytest.mark.parametrize("name", sorted(FILES))
def test_check_fails_on_any_changed_answer(name: str) -> None:
    document = DOCUMENTS[name]
    fields = [
        next(field for field in ("masses", "noisy", "values") if field in each)
        for each in document["vectors"]
    ]
    changed = [
        {**each, field: last_place(each[field])}
        for each, field in zip(document["vectors"], fields, strict=True)
    ]
    failures = list(check.failures({**document, "vectors": changed}))
    for failure, field in zip(failures, fields, strict=True):
        assert f"ValueError('{field} does not fit the rest')" in failure


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("keys.json", "key"),
        ("ids.json", "key"),
        ("ids.json", "name"),
        ("chosen.json", "ids"),
        ("tapes.json", "tapes"),
        ("distributions.json", "bits"),
        ("groups.json", "key"),
    ],
)
def test_check_fails_on_changed_questions(name: str, field: str) -> None:
    document = copy.deepcopy(DOCUMENTS[name])
    for vector in document["vectors"]:
        if field == "name":
            vector[field] += "x"
        elif field == "bits":
            vector[field] += 1
        elif field == "tapes":  # the other sign
            vector[field] = [[hex(int(tape[0], 16) ^ 1), *tape[1:]] for tape in vector[field]]
        else:
            vector[field] = last_place(vector[field])
    # Some noise is the same by chance, or beyond the bounds for all keys.
    assert len(list(check.failures(document))) > len(document["vectors"]) // 2


def test_check_reports_a_changed_threshold_and_a_file_that_is_none(tmp_path: Path) -> None:
    document = copy.deepcopy(DOCUMENTS["tapes.json"])
    for plan in document["plans"].values():
        for digit in plan["certificate"]["digits"]:
            digit["thresholds"] = [hex(int(t, 16) + 1) for t in digit["thresholds"]]
    said: list[str] = []
    (tmp_path / "changed.json").write_text(json.dumps(document))
    (tmp_path / "empty.json").write_text("{}")
    paths = [str(tmp_path / name) for name in ("changed.json", "empty.json", "missing.json")]
    for path in paths:
        assert check.main([path], said.append) == 1
    assert said[0].count("FAILED changed.json: vector") > 20
    assert "KeyError('format')" in said[1]
    assert "FileNotFoundError" in said[2]


def test_vectors_meet_every_case() -> None:
    """All dtypes, ties, the floor's slot, zero, the last value, each with 1 to 3 own words."""
    digits, met = set(), set()
    for document in (DOCUMENTS[name] for name in DOCUMENTS.keys() - {"groups.json"}):
        plans = {name: check.Plan(plan) for name, plan in document["plans"].items()}
        digits |= {len(plan.digits) for plan in plans.values()}
        for vector in document["vectors"]:
            plan = plans[vector["plan"]]
            for tape in check.tapes(plan, vector) if "tapes" in vector or "key" in vector else ():
                for number, thresholds, j in _numbers(plan, tape):
                    reached = sum(threshold <= number for threshold in thresholds)
                    kind = "first" if j == 0 else "top" if j + 1 == len(plan.digits) else "inner"
                    at = kind, plan.digits[j].own
                    met |= {(*at, "tie")} if number in thresholds else set()
                    met |= {(*at, "none")} if reached == 0 else set()
                    met |= {(*at, "all")} if reached == len(thresholds) else set()
    for name in ("keys.json", "ids.json"):
        dtypes = {plan["dtype"] for plan in DOCUMENTS[name]["plans"].values()}
        assert dtypes == set(make_vectors.DTYPES)
    assert {0, 1, 2} < digits
    assert max(digits) >= 8
    kinds, cases = ("first", "inner", "top"), ("tie", "none", "all")
    assert met >= set(itertools.product(kinds, (1, 2, 3), cases))


def _numbers(plan: Any, tape: list[int]) -> list[tuple[int, list[int], int]]:
    found, at = [], 1
    for j, digit in enumerate(plan.digits):
        number = 0
        for word in [*tape[at : at + digit.own], tape[0]]:
            number = number << 63 | word >> 1
        found.append((number, digit.thresholds, j))
        at += digit.own
    return found

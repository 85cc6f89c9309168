"""What was paid is published: files that are interrupted at any step are completed, and no more."""

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import geomdp
from geomdp import GeometricMechanism
from geomdp._ground import lock, new_file
from geomdp.accounting import Budget, _journal
from geomdp.tables import Design
from geomdp.tables._publish import kept, published
from geomdp.tables._release import publishing, steps, top
from published_kinds import DESIGNS, PEOPLE
from test_published import Dying, Killed

VISITS = PEOPLE.assign(age=PEOPLE["age"] % 7)
PAIR = Design({"area": [*"ABC"]}).sum_and_count(VISITS, "age", bounds=(0, 6))
FLAT = DESIGNS["flat"].count(PEOPLE)


def one(table: Any, end: str, **how: Any) -> Callable[[Path, Any], Any]:
    return lambda folder, budget: table(budget=budget, label="May", save=folder / f"x.{end}", **how)


#: Each kind of release, as a call that pays and publishes in a folder.
CALLS: dict[str, Callable[[Path, Any], Any]] = {
    "table": one(FLAT.release, "csv", epsilon=1),
    "page": one(FLAT.release, "html", epsilon=1),
    "rounded": one(FLAT.release, "parquet", epsilon=1, rounded=5),
    "groups": one(FLAT.release, "csv", epsilon=1, at_least=5, rest=("rest", "1/4")),
    "top": one(FLAT.top, "csv", k=2, epsilon=1),
    "tiers": lambda folder, budget: FLAT.release(
        tiers={"public": "0.5", "office": 1},
        budget=budget,
        label="May",
        save={"public": folder / "x.csv", "office": folder / "y.csv"},
    ),
    "sums and counts": lambda folder, budget: PAIR.release(
        epsilon=1,
        budget=budget,
        label="May",
        save={"sums": folder / "x.csv", "counts": folder / "y.csv"},
    ),
    "sums of groups": lambda folder, budget: PAIR.release(
        epsilon=1,
        at_least=5,
        rest=("rest", "1/4"),
        budget=budget,
        label="May",
        save={"sums": folder / "x.csv", "counts": folder / "y.csv"},
    ),
}
calls = pytest.mark.parametrize("name", CALLS)


@contextlib.contextmanager
def patched(patches: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for place, name, value in patches:
            patch.setattr(place, name, value, raising=False)
        yield


def killed_at(step: int, call: Callable[[], Any]) -> bool:
    """Return whether a call is killed at a step."""
    dying = Dying(step)
    modules = new_file, published, kept, _journal, publishing
    patches = [
        *((module, "os", dying) for module in modules),
        (new_file, "open", dying.dying(open)),
    ]
    with patched(patches):
        try:
            call()
        except Killed:
            return True
    return False


def has_counts(path: Path) -> bool:
    with path.open("rb", 0) as file:
        left = kept._left(file)
    return left is not None and left.drawn is not None


def standing(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.glob("[xy].*")}


@calls
def test_what_was_paid_is_published_by_the_same_call(name: str, tmp_path: Path) -> None:
    """Of kills at each step: 75 of 3,544 payments had published nothing."""
    outcomes = set()
    for step in itertools.count(0, 1 if name == "table" else 4):
        (folder := tmp_path / str(step)).mkdir()
        budget = Budget.open(folder / "2026.jsonl", epsilon=2)
        killed = killed_at(step, lambda: CALLS[name](folder, budget))  # noqa: B023
        before, paid = standing(folder), bool(budget.spent)
        drawn = any(map(has_counts, folder.glob(".*.kept")))

        def refused(*_: Any, **__: Any) -> Any:
            pytest.fail("it drew what may have been shown")

        places = (GeometricMechanism, "release"), (top, "top_among"), (steps, "draw_tiers")
        with patched([(*each, refused) for each in places] if drawn or before else []):
            try:
                made = CALLS[name](folder, Budget.open(folder / "2026.jsonl"))
                after = "published"
            except FileExistsError:
                made, after = None, "stood"
        outcomes.add((paid, drawn, after))
        # It is paid once, and nothing that readers have seen has changed.
        [booking] = budget.history
        assert booking.label == "May"
        assert before.items() <= standing(folder).items()
        hidden = [each for each in os.listdir(folder) if each.startswith(".")]
        assert hidden == []
        for path in folder.glob("[xy].*"):
            if path.suffix in (".csv", ".parquet"):
                read = geomdp.read(path)
                assert read.id in booking.ids
                if made is not None and name == "table":
                    assert read.to_dict() == made.to_dict()
            elif path.suffix == ".html":
                assert booking.ids[0] in path.read_text()
        if not killed:
            break
    assert outcomes >= {(False, False, "published"), (True, True, "published")}
    if name == "table":
        assert outcomes >= {(True, False, "published"), (True, False, "stood")}


def left_behind(folder: Path, budget: Budget) -> Path:
    """Leave what a call leaves that is killed after its draw."""

    def gone(*_: Any, **__: Any) -> Any:
        raise Killed

    with patched([(published, "write", gone)]), pytest.raises(Killed):
        CALLS["table"](folder, budget)
    [found] = folder.glob(".geomdp-*.kept")
    return found


def test_another_release_is_not_made_in_place_of_one_that_was_paid(tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=9)
    found = left_behind(tmp_path, budget)
    path, spent = tmp_path / "x.csv", budget.spent
    others = Budget.open(tmp_path / "2027.jsonl", epsilon=9)
    for given in (
        {"label": "June", "epsilon": 1},
        {"label": "May", "epsilon": 2},
        {"label": "May", "epsilon": 1, "rounded": 5},
        {"label": "May", "epsilon": 1, "about": {"title": "x"}},
        {"label": "May", "epsilon": 1, "budget": others},
    ):
        with pytest.raises(ValueError, match="label = 'May' is that of a release that waits"):
            FLAT.release(**{"budget": budget, "save": path} | given)
    assert (budget.spent, others.spent, path.exists()) == (spent, [], False)
    # A file that stands in its way is no reason to lose it.
    path.write_text("x")
    with pytest.raises(FileExistsError):
        CALLS["table"](tmp_path, budget)
    path.unlink()
    assert found.exists()
    # Whoever deletes it gives it up, and its label with it.
    found.unlink()
    with pytest.raises(ValueError, match="label = 'May' is not accepted"):
        CALLS["table"](tmp_path, budget)


def test_what_no_budget_has_booked_is_given_up(tmp_path: Path) -> None:
    left_behind(tmp_path, Budget(epsilon=9))
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=9)
    CALLS["table"](tmp_path, budget)
    assert [len(budget.spent), *sorted(os.listdir(tmp_path))] == [
        1, "2026.jsonl", "x.csv", "x.csv.json"
    ]  # fmt: skip


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.99, 1.1])
def test_counts_that_are_cut_are_drawn_anew(cut: float, tmp_path: Path) -> None:
    """Nobody but their owner could read them."""
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=9)
    found = left_behind(tmp_path, budget)
    if os.name == "posix":
        assert stat.S_IMODE(found.stat().st_mode) == 0o600
    whole = found.read_bytes()
    line = whole.index(b"\n") + 1
    found.write_bytes((whole + b"x" * 99)[: line + round(cut * (len(whole) - line))])
    assert CALLS["table"](tmp_path, budget).id in budget.history[0].ids
    assert len(budget.history) == 1


def test_one_call_at_a_time_publishes_to_a_name(tmp_path: Path) -> None:
    """Another one would take what is being drawn for what an interrupted call left."""
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=9)
    with (
        kept.place(str(tmp_path / "x.csv")),
        pytest.raises(FileExistsError, match="is being published by another call"),
    ):
        CALLS["table"](tmp_path, budget)
    assert budget.spent == []
    CALLS["table"](tmp_path, budget)


def test_a_refused_booking_leaves_nothing(tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon="0.5")
    with pytest.raises(ValueError, match="this release costs 1"):
        CALLS["table"](tmp_path, budget)
    assert os.listdir(tmp_path) == ["2026.jsonl"]


# Faults of the disk


@calls
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EBADF])
def test_a_folder_that_knows_no_sync_takes_files(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some network folders: all formats raised after the payment."""
    sync = os.fsync

    def unknown(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(number, os.strerror(number))
        sync(file)

    monkeypatch.setattr(os, "fsync", unknown)
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=2)
    CALLS[name](tmp_path, budget)
    assert [label for label, _ in budget.spent] == ["May"]
    assert not [each for each in os.listdir(tmp_path) if each.startswith(".")]


@calls
def test_after_the_rows_have_their_name_the_way_is_forward(name: str, tmp_path: Path) -> None:
    """An error of the folder deleted the description: published, and not to be read."""
    sync, found = new_file.sync_folder, set()
    for step in itertools.count():
        (folder := tmp_path / str(step)).mkdir()
        budget = Budget.open(folder / "2026.jsonl", epsilon=2)
        calls = itertools.count()

        def failing(path: str) -> None:
            if next(calls) == step:  # noqa: B023
                raise OSError(errno.EIO, "no disk")
            sync(path)

        with patched([(new_file, "sync_folder", failing)]):
            try:
                CALLS[name](folder, budget)
                break
            except OSError:
                found.add(bool(budget.spent))
        with contextlib.suppress(FileExistsError):
            CALLS[name](folder, budget)
        assert len(budget.spent) == 1
        for path in [*folder.glob("[xy].csv"), *folder.glob("[xy].parquet")]:
            assert geomdp.read(path).id in budget.history[0].ids
        assert not [each for each in os.listdir(folder) if each.startswith(".")]
    assert found == {False, True}


@calls
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_is_met_before_anything_is_paid(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rehearsal is a save of zeros: what it writes is brought to the disk, and removed."""

    def full(_: int) -> None:
        raise OSError(number, os.strerror(number))

    budget = Budget(epsilon=2)
    monkeypatch.setattr(new_file.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left|Input/output"):
        CALLS[name](tmp_path, budget)
    assert (budget.spent, os.listdir(tmp_path)) == ([], [])


@calls
def test_a_release_that_the_disk_stops_after_the_draw_is_in_the_error(
    name: str, tmp_path: Path
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    budget = Budget(epsilon=2)
    with patched([(published, "write", full)]), pytest.raises(OSError, match="no space") as caught:
        CALLS[name](tmp_path, budget)
    assert "attribute `released`" in caught.value.__notes__[0]
    again = CALLS[name](tmp_path, budget)
    made = caught.value.released  # type: ignore[attr-defined]
    if name == "sums of groups":
        assert again.sums._chosen_by == again.counts.id
    if name in ("sums and counts", "sums of groups"):
        made, again = made.sums, again.sums
    assert again.id == made.id
    assert len(budget.spent) == 1


def test_noise_that_is_not_kept_is_not_shown(tmp_path: Path) -> None:
    """The same booking draws again, so nobody may have seen it."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    budget = Budget(epsilon=2)
    with patched([(kept.Place, "keep", full)]), pytest.raises(OSError, match="no space") as caught:
        CALLS["table"](tmp_path, budget)
    assert not hasattr(caught.value, "released")
    assert CALLS["table"](tmp_path, budget).id == budget.history[0].ids[0]


# What is left in folders


def test_the_next_call_in_a_folder_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    live = new_file._created(str(tmp_path / ".geomdp-11.part"), "x")
    for each in ("22.part", "22.csv", "22.csv.json", "33.part"):
        (tmp_path / f".geomdp-{each}").write_text("x")
    FLAT.release(epsilon=1, save=tmp_path / "y.csv")
    assert sorted(os.listdir(tmp_path)) == [".geomdp-11.part", "y.csv", "y.csv.json"]
    live.close()
    FLAT.release(epsilon=1, save=tmp_path / "z.csv")
    assert not (tmp_path / ".geomdp-11.part").exists()


def test_the_next_call_in_a_folder_completes_a_save(tmp_path: Path) -> None:
    made = FLAT.release(epsilon=1, save=tmp_path / "x.csv")
    waiting = Path(published._waiting(str(tmp_path / "x.csv"), "7"))
    (tmp_path / "x.csv.json").rename(waiting)
    live = new_file._created(str(tmp_path / ".geomdp-7.part"), "x")
    FLAT.release(epsilon=1, save=tmp_path / "y.csv")
    assert waiting.exists()  # Its rows are being written.
    live.close()
    FLAT.release(epsilon=1, save=tmp_path / "z.csv")
    assert not waiting.exists()
    assert (tmp_path / "x.csv.json").exists()
    assert geomdp.read(tmp_path / "x.csv").id == made.id


def test_a_part_without_a_lock_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file system has no locks, nobody knows whether its writer lives."""

    def none(_: Any) -> bool:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(lock, "_acquired", none)
    (tmp_path / ".geomdp-22.part").write_text("x")
    FLAT.release(epsilon=1, save=tmp_path / "y.csv")
    assert (tmp_path / ".geomdp-22.part").exists()


def test_a_page_has_counts_of_any_size(tmp_path: Path) -> None:
    """They were paid, and nothing was published."""
    design = Design({"n": range(40)})
    table = design.sum(pd.DataFrame({"n": [1], "v": 1}), "v", bounds=(0, 2**32))
    budget = Budget(epsilon=1)
    # Its noise has a scale of 2**57: with probability 2**-160, no count is at least 2**53.
    noisy = table.release(epsilon="1/33554432", budget=budget, save=tmp_path / "x.html")
    counts = noisy.counts.tolist()
    assert max(map(abs, counts)) >= 2**53
    held = (tmp_path / "x.html").read_text()
    assert all(f",{each}%0D%0A" in held for each in counts)
    assert all(f"<td>{max(each, 0):,}<td>" in held for each in counts)


@pytest.mark.parametrize("name", ["at_least", "named", "padded", "tier", "count_id", "bounds", "x"])
def test_what_a_release_does_not_take_is_refused_by_name_before_it_is_paid(name: str) -> None:
    """`named` was taken by a table, `padded` and `at_least` were ignored by the largest cells."""
    budget = Budget(1)
    releases: list[Any] = [partial(FLAT.top, 1)]
    if name != "at_least":
        releases.append(PAIR.release)
    if name not in ("at_least", "bounds"):
        releases.append(FLAT.release)
    for release in releases:
        with pytest.raises(TypeError, match=f"^{name} is not accepted by this release: give any"):
            release(epsilon=1, budget=budget, **{name: 3})
    assert not budget.spent

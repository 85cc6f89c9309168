"""The files of budgets and streams: crashes, damage, other names, backups, and hostile content."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import geomdp
from geomdp._ground import lock
from geomdp.accounting import Budget, _journal
from geomdp.tables.streams import Stream


class Kind(NamedTuple):
    """A kind of file: makes one, adds an entry to it, and tells all that its entries say."""

    open: Callable[[Path], Any]
    add: Callable[[Any], object]
    told: Callable[[Any], list[Any]]


KINDS = {
    "ledger": Kind(
        lambda path: Budget.open(
            path, epsilon=4, losses={"1/3": 9}, delta="0.9", groups=["\u00e9", "f"]
        ),
        lambda budget: budget.group("\u00e9").book("1/3", label=os.urandom(8).hex()),
        lambda budget: budget.history,
    ),
    "stream": Kind(
        lambda path: Stream.open(path, horizon=20, epsilon="0.5", arity=2),
        # Two releases of so many counts are equal with a probability of 1e-8.
        lambda stream: stream.release(stream.released, lambda *_: [7, 8, 9, 6, 5]),
        lambda stream: [stream.release(step, None) for step in range(stream.released)],
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Nobody else writes marks here.
    monkeypatch.setattr(_journal, "_TRIES", 1)
    return tmp_path / "a.jsonl"


def filled(kind: Kind, path: Path, entries: int) -> list[bytes]:
    """Return the file without entries, and after each of them."""
    opened = kind.open(path)
    states = [path.read_bytes()]
    for _ in range(entries):
        kind.add(opened)
        states.append(path.read_bytes())
    return states


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def after_crashes(old: bytes, new: bytes) -> Iterator[bytes]:
    """Yield each file that a crash can leave while an entry is added."""
    start = old.index(b"\n") + 1
    stop = start + _journal._MARK
    for cut in range(len(old), len(new) + 1):
        yield old + new[len(old) : cut]
    for cut in range(start, stop + 1):
        # A mark is written in order, or its sectors in the other order.
        yield new[:cut] + old[cut:stop] + new[stop:]
        yield old[:cut] + new[cut:]


@pytest.mark.parametrize("entries", [0, 1])
def test_a_crash_at_any_byte_leaves_an_entry_or_none(
    kind: Kind, path: Path, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_journal, "_sync", lambda file: None)
    *_, old, new = filled(kind, path, entries + 1)
    after = kind.told(kind.open(path))
    seen = 0
    for content in after_crashes(old, new):
        path.write_bytes(old)
        known = kind.open(path)
        path.write_bytes(content)
        found = kind.told(kind.open(path))
        # Behind the mark an entry may be there or not, until the next writer.
        assert same(found, after) or same(found, after[:-1])
        whole = content[len(old) :] == new[len(old) :]
        kind.add(known)  # It reads what is new.
        told = kind.told(kind.open(path))
        assert len(told) > entries
        assert same(told[: entries + whole], after[: entries + whole])
        seen += 1
    assert seen > 500


def damages(chance: random.Random, content: bytes) -> bytes:
    """Return content with one damage."""
    at, to = sorted(chance.sample(range(len(content)), 2))
    part = content[at:to]
    return chance.choice(
        [
            lambda: (
                content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
            ),
            lambda: content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :],
            lambda: content[:at],
            lambda: content[:at] + content[to:],
            lambda: content[:at] + part + part + content[to:],
            lambda: content[:at] + part[::-1] + content[to:],
            lambda: content[:at] + bytes(len(part)) + content[to:],
            lambda: content[:at] + chance.randbytes(len(part)) + content[to:],
            lambda: content[:at] + content[to:] + part,
            lambda: content[: at - at % 512] + bytes(512) + content[at - at % 512 + 512 :],
            lambda: b"\n".join(chance.sample(lines := content.split(b"\n"), len(lines))),
            lambda: content + part,
        ]
    )()


def refusal(call: Callable[[], object]) -> str | None:
    """Return the message of the ValueError of a call, if it raises one."""
    try:
        call()
    except ValueError as error:
        return str(error)
    return None


def test_damage_is_refused_or_loses_budget(
    kind: Kind, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a reader, and by a writer, which may find more."""
    monkeypatch.setattr(_journal, "_sync", lambda file: None)
    *_, content = filled(kind, path, 2)
    entries = kind.told(kind.open(path))
    seed = random.randrange(2**32)
    chance, refused = random.Random(seed), 0
    cuts = [content[:cut] for cut in range(len(content))]
    # Among them are digits, which become others: a line that is read with another amount.
    flips = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(len(cuts))]
    for damaged in (*cuts, *flips, *(damages(chance, content) for _ in range(1200))):
        path.write_bytes(damaged)
        for use in (lambda: kind.told(kind.open(path)), lambda: kind.add(kind.open(path))):
            found = refusal(use)
            if found is None:
                assert same(kind.told(kind.open(path))[:2], entries), (seed, damaged)
            else:
                assert "a.jsonl" in found, (seed, damaged)
                refused += 1
    assert refused > 2000


def test_writes_are_on_the_disk_in_order(
    kind: Kind, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name first, once for each who opens the file: its maker may have been killed before that.

    The entry before the mark, and the mark before the call returns.
    """
    opened = kind.open(path)
    done: list[str] = []
    write, sync, sync_folder = _journal._write, _journal._sync, _journal.sync_folder

    def writing(file: Any, at: int, content: bytes) -> None:
        done.append("mark" if b'"end"' in content else "entry")
        write(file, at, content)

    def syncing(file: Any) -> None:
        done.append("disk")
        sync(file)

    def naming(name: str) -> None:
        assert os.path.samefile(os.path.dirname(name), path.parent)
        done.append("folder")
        sync_folder(name)

    monkeypatch.setattr(_journal, "sync_folder", naming)
    monkeypatch.setattr(_journal, "_write", writing)
    monkeypatch.setattr(_journal, "_sync", syncing)
    entry = ["entry", "disk", "mark", "disk"]
    kind.add(opened)
    kind.add(opened)
    assert done == ["folder", *entry, *entry]
    (path.parent / "other").mkdir()
    (link := path.parent / "other/soft").symlink_to(path)
    kind.add(kind.open(link))
    assert done[9:] == ["folder", *entry]


def test_a_failed_write_leaves_nothing(
    kind: Kind, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, content = filled(kind, path, 2)
    write = _journal._write

    def full(file: Any, at: int, content: bytes) -> None:
        write(file, at, content[:-9])
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(_journal, "_write", full)
        with pytest.raises(OSError, match="disk full"):
            kind.add(kind.open(path))
    assert path.read_bytes() == content
    kind.add(kind.open(path))
    assert len(kind.told(kind.open(path))) == 3


def test_any_name_of_a_file_is_the_file(kind: Kind, path: Path) -> None:
    filled(kind, path, 1)
    names = [path, path.with_name("hard"), path.with_name("soft")]
    os.link(path, names[1])
    names[2].symlink_to(path)
    opened = [kind.open(name) for name in names]
    for each in opened:
        kind.add(each)
    assert {len(kind.told(each)) for each in opened} == {4}
    assert {os.path.samefile(path, name) for name in names} == {True}
    assert sorted(os.listdir(path.parent)) == ["a.jsonl", "hard", "soft"]


def test_a_backup_has_what_is_final(kind: Kind, path: Path) -> None:
    *_, old, new = filled(kind, path, 3)
    copy = path.with_name("copy.jsonl")
    path.write_bytes(old + new[len(old) : -5])
    opened = kind.open(path)
    opened.backup(copy)
    assert copy.read_bytes() == old
    assert same(kind.told(kind.open(copy)), kind.told(opened))
    with pytest.raises(FileExistsError, match=r"copy\.jsonl"):
        opened.backup(copy)
    path.write_bytes(old.replace(b"1", b"2", 1))
    with pytest.raises(ValueError, match=r"a\.jsonl is damaged"):
        opened.backup(path.with_name("other.jsonl"))
    assert sorted(os.listdir(path.parent)) == ["a.jsonl", "copy.jsonl"]


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("entries", [0, 1, 2])
def test_an_older_copy_in_its_place_is_noticed_by_those_who_saw_more(
    kind: Kind, path: Path, entries: int, renamed: bool
) -> None:
    """In the same file or in another one, and if it has as many entries again, or more."""
    opened = kind.open(path)
    content = path.read_bytes()
    kind.add(opened)
    (copy := path.with_name("copy") if renamed else path).write_bytes(content)
    copy.replace(path)
    filled(kind, path, entries)
    for use in (kind.told, kind.add):
        message = "is damaged" if entries else "has fewer entries than before"
        with pytest.raises(ValueError, match=rf"a\.jsonl {message}"):
            use(opened)
    assert len(kind.told(kind.open(path))) == entries


@pytest.mark.parametrize("entries", [1, 3])
def test_an_entry_is_not_added_behind_one_that_was_cut_or_edited(
    kind: Kind, path: Path, entries: int
) -> None:
    """Under an open budget the file shrank: it was told PAID, and then all were refused."""
    *_, before, content = filled(kind, path, entries)
    opened = kind.open(path)
    last = range(len(before), len(content))
    cut = [content[:at] for at in last]
    edited = [content[:at] + b"?" + content[at + 1 :] for at in last]
    for damaged in (*cut, *edited):
        with path.open("rb+") as file:
            file.write(damaged)
            file.truncate()
        with pytest.raises(ValueError, match=r"a\.jsonl is damaged, or no "):
            kind.add(opened)
        assert path.read_bytes() == damaged
    path.write_bytes(content)
    kind.add(opened)
    assert len(kind.told(kind.open(path))) == entries + 1


def test_a_current_copy_in_its_place_is_gone_on_with(kind: Kind, path: Path) -> None:
    opened = kind.open(path)
    for _ in range(3):
        kind.add(opened)
        (copy := path.with_name("copy")).write_bytes(path.read_bytes())
        copy.replace(path)
    assert same(kind.told(opened), kind.told(kind.open(path)))


class Replaced:
    """Functions before one of whose calls the file loses its name."""

    def __init__(self, path: Path, how: str, left: int) -> None:
        self.path, self.how, self.left, self.old = path, how, left, path.read_bytes()

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            if not self.left:
                self.now()
            self.left -= 1
            return call(*arguments)

        return counted

    def now(self) -> None:
        if self.how == "deleted":
            self.path.unlink()
            return
        current = self.path.read_bytes() if self.how == "a current copy" else self.old
        (copy := self.path.with_name("copy")).write_bytes(current)
        copy.replace(self.path)


@pytest.mark.parametrize("how", ["deleted", "a current copy", "an older copy"])
def test_what_is_paid_is_in_the_file_that_has_the_name(kind: Kind, path: Path, how: str) -> None:
    """A spender that waited for the lock booked in a file that no longer had the name."""
    for step in itertools.count():
        path.unlink(missing_ok=True)
        filled(kind, path, 2)
        opened = kind.open(path)
        before = kind.told(opened)
        replaced, paid = Replaced(path, how, step), True
        with pytest.MonkeyPatch.context() as patch:
            for module, name in (
                (lock, "_acquired"),
                (lock, "leads_to"),
                (_journal, "_write"),
                (_journal, "_sync"),
                (_journal, "leads_to"),
            ):
                patch.setattr(module, name, replaced.around(getattr(module, name)))
            try:
                kind.add(opened)
            except (ValueError, FileNotFoundError):
                paid = False
        if replaced.left >= 0:
            break
        if paid:
            assert same(kind.told(kind.open(path))[:2], before)
            assert len(kind.told(kind.open(path))) == 3
        elif how != "deleted":
            kind.add(kind.open(path))
        # Before the lock is had, a copy with all entries is as good.
        assert paid == (step < 2 and how != "deleted")
    assert step == 7


def test_a_budget_in_memory_has_no_backup(path: Path) -> None:
    with pytest.raises(ValueError, match=r"open one with Budget\.open"):
        Budget(1).backup(path)


def sealed(head: Any, *entries: Any) -> bytes:
    """Return a file whose digests fit; text is JSON, where json.dumps would make none like it."""

    def line(before: str, fields: Any) -> bytes:
        if not isinstance(fields, str):
            return _journal._sealed(before, fields)
        text = fields.encode()
        return text[:-1] + _journal._DIGEST + _journal._of(before, text) + b'"}\n'

    first = line("", head)
    last, rest = _journal._digest("", first), b""
    for each in entries:
        rest += (entry := line(last, each))
        last = _journal._digest(last, entry)
    return first + _journal._mark(len(first) + _journal._MARK + len(rest), last) + rest


LEDGER = {"epsilon": "4", "delta": "0", "losses": "None", "rho": "None", "groups": ["a", "b"]}
STREAM = {"horizon": "20", "epsilon": "1/2", "arity": "2", "levels": "5"}
BOOKED = {"label": None, "loss": "1", "cost": {"1": 1}, "time": "2026-01-01T00:00:00+00:00"}
STEP = {"step": 0, "shape": [1], "nodes": ["AAAAAAAAAAA="]}
DEEP = '{"a": ' + "[" * 10**5 + "]" * 10**5 + "}"
LONG = "1" * 10**6
ID = "0123456789abcdef" * 2


def head(kind: str, limits: Any, **more: Any) -> dict[str, Any]:
    return {"geomdp": kind, "format": 1, "limits": limits, **more}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 5000,
        b"SQLite format 3\0" + bytes(4080),
        b"[" * 10**6,
        sealed(DEEP),
        sealed("[1]"),
        sealed(head("ledger", LEDGER) | {"format": 2}),
        sealed(head("ledger", LEDGER, format=int("9" * 4000))),
        sealed(head("stream", LEDGER)),
        sealed(head("ledger", [1])),
        sealed(head("ledger", LEDGER | {"more": 1})),
        sealed(head("ledger", LEDGER | {"epsilon": "1e999999999"})),
        sealed(head("ledger", LEDGER | {"epsilon": {"a": [1]}})),
        *(
            sealed(head("ledger", LEDGER | {name: each}))
            for name in LEDGER
            for each in (
                "-1",
                "1e9",
                "0.5",
                "2/4",
                "1e999999999",
                LONG,
                1,
                None,
                [1],
                {},
            )
        ),
        *(
            sealed(head("ledger", LEDGER | {"groups": each}))
            for each in (["b", "a"], ["a", "a"], [""], [["a"]], {"a": 1}, [None], DEEP)
        ),
        *(
            sealed(head("ledger", LEDGER | {"losses": each}))
            for each in (
                "1 of 5",
                "0 of 1",
                "-1 of 1",
                "1 of -1",
                "1 of 1, 1 of 1",
                "1 of 2, 1 of 1",
                "01 of 1",
                "1 of",
                "1 of 1, ",
                f"{LONG} of 1",
                f"1 of {LONG}",
            )
        ),
        sealed(head("ledger", LEDGER | {"rho": "1"})),
        sealed(head("ledger", LEDGER | {"epsilon": "None"})),
        sealed(head("ledger", LEDGER | {"delta": "1/2"})),
        sealed(head("ledger", LEDGER | {"delta": "2", "losses": "1 of 1"})),
        *(
            sealed(head("ledger", LEDGER), each)
            for each in (
                DEEP,
                "[1]",
                {},
                *({name: BOOKED[name] for name in BOOKED if name != left} for left in BOOKED),
                *(BOOKED | {"loss": each} for each in (1, "1e999999999", "-1", "1/0", LONG, "inf")),
                *(BOOKED | {"cost": {each: 1}} for each in ("1e99999999", "-1", "1/0", LONG, "")),
                *(BOOKED | {"cost": {"1": each}} for each in (0, -1, True, 1.0, 1e999, "1", None)),
                *(BOOKED | {"cost": each} for each in ([], 1, None, "1")),
                *(BOOKED | {"label": each} for each in (1, [], {}, "\ud800")),
                *(BOOKED | {"time": each} for each in (1, "x", LONG)),
                *(
                    BOOKED | {"groups": each}
                    for each in ([], ["c"], ["b", "a"], ["a", "a"], "a", "ab", [1], {"a": 1}, 0)
                ),
                *(
                    BOOKED | {"ids": each}
                    for each in ([], "", ID, [1], [ID, ID], [ID[1:]], [ID.upper()], {"0": ID}, 0)
                ),
                '{"label": null, "loss": "1", "cost": {"1": ' + LONG + "}}",
            )
        ),
    ],
)
def test_a_hostile_ledger_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for limits in ({"epsilon": 4}, {}):
        start = time.process_time()
        assert "a.jsonl" in (refusal(lambda: Budget.open(path, **limits)) or "")  # noqa: B023
        assert time.process_time() - start < 1
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "content",
    [
        sealed(head("ledger", STREAM)),
        *(
            sealed(head("stream", STREAM | {name: each}))
            for name in STREAM
            for each in (
                "0",
                "-1",
                "1/3/3",
                "1e999999999",
                "1e9",
                LONG,
                3,
                None,
                [],
                {},
                "9" * 4000,
            )
        ),
        *(sealed(head("stream", STREAM | {name: "5/2"})) for name in STREAM if name != "epsilon"),
        sealed(head("stream", STREAM | {"levels": "6"})),
        sealed(head("stream", STREAM | {"horizon": "1000000"})),
        *(
            sealed(head("stream", STREAM), each)
            for each in (
                DEEP,
                "[1]",
                {},
                *(STEP | {"shape": each} for each in ([-1], [2], [1.0], ["1"], 1, None, [10**30])),
                *(STEP | {"shape": each} for each in ([1] * 100, [0, 10**18])),
                *(STEP | {"nodes": each} for each in ([], ["AAAA"], ["-"], [1], 1, None)),
            )
        ),
        sealed(head("stream", STREAM), STEP, STEP | {"shape": []}),
    ],
)
def test_a_hostile_stream_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    start = time.process_time()
    assert "a.jsonl" in (refusal(lambda: KINDS["stream"].told(geomdp.read(path))) or "")
    assert time.process_time() - start < 1
    assert path.read_bytes() == content


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_pipe_is_refused(path: Path) -> None:
    """Opening one would wait for its other end."""
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"a\.jsonl is no ledger"):
        Budget.open(path, epsilon=1)
    with pytest.raises(ValueError, match=r"a\.jsonl is no stream"):
        geomdp.read(path)


RACE = """
import os, sys, threading, time
from geomdp.accounting import Budget

def no_links(*_):
    raise PermissionError

name, opened, *without_links = sys.argv[1:]
if without_links:
    os.link = no_links

class Slow(Budget):
    __slots__ = ()

    def _take(self, *arguments):
        # With a lock of the process, closing any other open file of the ledger drops it.
        thread = threading.Thread(target=lambda: open(opened, "rb").close())
        thread.start()
        thread.join()
        time.sleep(0.3)
        return super()._take(*arguments)

print("ready", flush=True)
sys.stdin.read(1)
try:
    Slow.open(name, epsilon=1).book(0.5)
    print("won")
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("names", "links"),
    [
        (["a.jsonl"] * 3, True),
        (["a.jsonl"] * 3, False),
        (["a.jsonl", "hard"], True),
        (["a.jsonl", "soft"], True),
    ],
)
def test_of_several_processes_one_gets_the_last_half(
    path: Path, names: list[str], links: bool
) -> None:
    """Of a new file, or by its other names, while a thread reads it, as for a backup."""
    if len(names) == 2:
        Budget.open(path, epsilon=1).book("1/2")
        (os.link if "hard" in names else os.symlink)(path, path.with_name(names[1]))
    runners = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, name, path, *([] if links else ["without"])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=path.parent,
        )
        for name in names
    ]
    for runner in runners:
        assert runner.stdout is not None
        assert runner.stdout.readline() == "ready\n"
    for runner in runners:
        assert runner.stdin is not None
        runner.stdin.write("x")
        runner.stdin.flush()
    said = sorted(runner.communicate(timeout=60)[0].strip() for runner in runners)
    refusal = "this release costs 0.5, but only 0 of 1 is left: 0.5 too much"
    assert said == [refusal, *["won"] * (len(names) - 1)]
    budget = Budget.open(path, epsilon=1)
    assert (budget.remaining, len(budget.history)) == (0, 2)
    assert {*os.listdir(path.parent)} == {*names}


KILLED = """
import os, random, signal, sys, time
from geomdp.accounting import Budget
from geomdp.tables.streams import Stream

class Ledger:
    def __init__(self, name):
        self.budget = Budget.open(name, epsilon=10**6)

    def add(self):
        label = os.urandom(8).hex()
        self.budget.book("0.1", label=label)
        return label

    def told(self):
        return [booking.label for booking in self.budget.history]

class Steps:
    def __init__(self, name):
        self.stream = Stream.open(name, horizon=10**4, epsilon=0.5, arity=2)

    def add(self):
        return self.line(self.stream.released)

    def line(self, step):
        return f"{step} {sorted(self.stream.release(step, range(step + 1)).items())}"

    def told(self):
        return [self.line(step) for step in range(self.stream.released)]

kind, seed, *names = sys.argv[1:]
opened, chance = {"ledger": Ledger, "stream": Steps}[kind], random.Random(seed)
kills, shown = 0, []
while kills < 30 or len(shown) < 80:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        file = opened(names[kills % len(names)])
        while True:
            os.write(writing, (file.add() + "\\n").encode())
    os.close(writing)
    time.sleep(chance.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    kills += 1
    with os.fdopen(reading) as lines:
        shown += lines.read().splitlines()
    told = opened(names[kills % len(names)]).told()
    # What was shown is in the file once, and at most one entry more for each child.
    assert set(shown) <= set(told)
    assert len(set(shown)) == len(shown) <= len(told) <= len(shown) + kills
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize(
    ("kind", "names"),
    [("ledger", ["a"]), ("ledger", ["a", "other/b", "link"]), ("stream", ["a"])],
)
def test_a_killed_process_shows_nothing_that_is_not_in_the_file(
    tmp_path: Path, kind: str, names: list[str]
) -> None:
    """Under several names too, of which the next process takes another: SQLite booked too little.

    A mount of a single file is the same file, as a hard link is.
    """
    if len(names) > 1:
        Budget.open(tmp_path / "a", epsilon=10**6)
        (tmp_path / "other").mkdir()
        os.link(tmp_path / "a", tmp_path / "other/b")
        (tmp_path / "link").symlink_to("a")
    seed = str(random.randrange(2**32))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, kind, seed, *names],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0, (seed, done.stderr)


MAKING = """
import os, signal, sys

left = int(sys.argv[1])

def no_links(*_):
    raise PermissionError

def dying(call):
    def counted(*arguments, **more):
        global left
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return call(*arguments, **more)
    return counted

from geomdp.accounting import Budget
os.link = no_links
for name in ("close", "fsync", "fstat", "link", "open", "rename", "replace", "unlink"):
    setattr(os, name, dying(getattr(os, name)))
Budget.open("a.jsonl", epsilon=1)
"""


def no_links(*_: object) -> None:
    raise PermissionError


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_maker_that_is_killed_is_in_nobodys_way(path: Path) -> None:
    """Where hard links do not exist, one kill left an empty file, which was damaged for ever."""
    for step in itertools.count():
        done = subprocess.run(
            [sys.executable, "-c", MAKING, str(step)],
            check=False,
            capture_output=True,
            cwd=path.parent,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "link", no_links)
            Budget.open(path, epsilon=1).book("0.5")
        assert Budget.open(path).remaining == 0.5
        if not done.returncode:
            break
        path.unlink()
    assert step > 4

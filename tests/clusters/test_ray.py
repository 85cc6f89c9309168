"""Releases on a Ray cluster draw once for each count, whatever happens to the tasks."""

import base64
import doctest
import gc
import itertools
import logging
import os
import pickle
import re
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import ray
import ray.data
from ray import cloudpickle
from ray.exceptions import ActorDiedError, RayError

import geomdp.tables.ray
from contract import WIDE, Contract, Engine, Tables, by_ids, night, tuples
from forms import shows
from geomdp import GeometricMechanism
from geomdp._ground import identity
from geomdp.keyed import ReleaseKey
from geomdp.tables import Design
from geomdp.tables.ray import release_columns
from test_neighbouring_data import known, observed

# Ray warns about its own defaults.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")

NONE = GeometricMechanism.from_scale(0)
ROWS, BLOCKS = 1000, 5
IDS = ["town", "i"]

# Workers do not have this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=150 * 2**20,
        log_to_driver=False,
        logging_level="ERROR",
    )
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # The default takes 200 tasks in separate processes.
    context.default_hash_shuffle_parallelism = 2
    context.shuffle_strategy = "sort_shuffle_pull_based"
    yield
    ray.shutdown()


def table(rows: int = ROWS) -> pa.Table:
    """Return rows with two ids, unique only together, and equal counts in two columns."""
    numbers = np.arange(rows)
    return pa.table(
        {
            "n": numbers % 7,
            "town": pa.array([f"town {number // 50}" for number in numbers], pa.string()),
            "m": pa.array(numbers % 7, pa.int32()),
            "i": numbers % 50,
        }
    )


def counts(whole: pa.Table | None = None, blocks: int = BLOCKS) -> ray.data.Dataset:
    whole = table() if whole is None else whole
    ends = np.linspace(0, len(whole), blocks + 1).astype(int)
    return ray.data.from_arrow([whole[int(a) : int(b)] for a, b in itertools.pairwise(ends)])


def after(dataset: ray.data.Dataset, function: Callable[[pa.Table], pa.Table]) -> ray.data.Dataset:
    return dataset.map_batches(function, batch_size=None, batch_format="pyarrow")


def arrow(dataset: ray.data.Dataset) -> pa.Table:
    # Computed anew, where other calls cache.
    return pa.concat_tables(dataset.iter_batches(batch_size=None, batch_format="pyarrow"))


def rows(dataset: ray.data.Dataset) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return by_ids(arrow(dataset), IDS)


@pytest.fixture
def keepers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the actors started during the test."""
    started: list[Any] = []
    start = geomdp.tables.ray._keeper

    def record() -> Any:
        started.append(start())
        return started[-1]

    monkeypatch.setattr(geomdp.tables.ray, "_keeper", record)
    return started


def key_of(keeper: Any) -> ReleaseKey:
    key: ReleaseKey = ray.get(keeper.key.remote())
    return key


def wait_for_the_end(keeper: Any) -> None:
    """Wait until Ray reports the end of the actor; meanwhile it gives no key."""
    while True:
        with pytest.raises(RayError) as caught:
            key_of(keeper)
        if isinstance(caught.value, ActorDiedError):
            return
        assert "the release key is wiped" in str(caught.value)


@pytest.fixture
def engine() -> Engine:
    def draw(patch: pytest.MonkeyPatch, _: ReleaseKey) -> None:
        keeper = geomdp.tables.ray._keeper()
        patch.setattr(geomdp.tables.ray, "_keeper", lambda: keeper)

    def frame(table: pa.Table) -> ray.data.Dataset:
        return counts(table, 2)

    module = geomdp.tables.ray
    tables = module.count, module.sum, module.choose_limit
    keep = ray.data.Dataset.materialize
    return Engine(frame, release_columns, arrow, keep, draw, RayError, *tables)


class TestContract(Contract, Tables):
    """With the ids in blocks of Arrow."""


# Repeated tasks give equal noise


def test_release_is_the_same_however_evaluated() -> None:
    with release_columns(counts(), {"n": WIDE, "m": WIDE}, IDS, unique_ids=True) as noisy:
        first = rows(noisy)
        assert len({n for n, _ in first.values()}) > 0.99 * ROWS
        for again in (
            noisy,
            noisy.repartition(2),
            noisy.random_shuffle(),
            noisy.sort("m"),
            noisy.map_batches(lambda batch: batch, batch_size=7),
            noisy.select_columns(["m", "n", *IDS]),
        ):
            assert rows(again) == first
        assert noisy.sum("n") == sum(n for n, _ in first.values())


@pytest.mark.night
def test_noise_is_independent_of_blocks(
    keepers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of blocks before the release, and of whether there is a cluster."""
    mechanisms = {"n": WIDE, "m": GeometricMechanism(0.1, bounds=(-3, 4))}
    first = rows(release_columns(counts(), mechanisms, IDS, unique_ids=True).frame)
    [keeper] = keepers
    released = key_of(keeper).release_columns(table(), mechanisms, IDS, part=True)
    assert first == by_ids(released, IDS)
    assert {m for _, m in first.values()} == set(range(-3, 5))
    monkeypatch.setattr(geomdp.tables.ray, "_keeper", lambda: keeper)
    backwards = counts(table().take(np.arange(ROWS)[::-1]), blocks=3)
    assert rows(release_columns(backwards, mechanisms, IDS, unique_ids=True).frame) == first


@pytest.mark.parametrize("place", [*night("before"), "behind"])
def test_killed_worker(tmp_path: Path, place: str) -> None:
    seen, mark = tmp_path / "seen", tmp_path / "died"
    seen.mkdir()

    def die(block: pa.Table) -> pa.Table:
        """Record the block, and once, in the last block, kill this process."""
        (seen / uuid.uuid4().hex).write_bytes(pickle.dumps(block))
        if f"town {ROWS // 50 - 1}" in block["town"].to_pylist():
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                return block
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    dataset = after(counts(), die) if place == "before" else counts()
    unique = place == "behind"
    release = release_columns(dataset, {"n": WIDE, "m": WIDE}, IDS, unique_ids=unique)
    # Before the noise it has died while ids were compared, and dies again below.
    assert mark.exists() == (place == "before")
    mark.unlink(missing_ok=True)
    noisy = release.frame if place == "before" else after(release.frame, die)
    first = rows(noisy)
    assert mark.exists()
    if place == "behind":
        # The noisy counts that died with the worker were recomputed.
        whole = pa.concat_tables(pickle.loads(path.read_bytes()) for path in seen.iterdir())
        assert len(whole) >= ROWS + ROWS // BLOCKS
        assert set(tuples(whole, [*IDS, "n", "m"])) == {(*ids, *nm) for ids, nm in first.items()}
    assert rows(release.frame) == first
    release.wipe()


# Tables of a design


VISITS = pa.table({"who": np.arange(4000) % 80, "n": np.arange(4000) // 80 % 7})


@pytest.mark.parametrize("dies", [False, True])
def test_a_table_has_one_draw_of_each_individual(tmp_path: Path, dies: bool) -> None:
    """The 80 individuals have 7 records or more in each of 7 cells, and 6 of them count."""
    mark = tmp_path / "died"

    def tallied(design: Any, data: Any, weights: Any) -> Any:
        found = geomdp.tables.ray.tally(design, data, weights)
        if dies and len(data) and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    design = Design({"n": list(range(7))}, individual="who", l0=3, linf=2)
    _, (cells, found) = geomdp.tables.ray._counted(counts(VISITS), design, None, tallied)
    assert mark.exists() == dies
    # Of several tasks.
    assert len(cells) > 7
    assert sum(found) == 80 * 6
    assert all(n % 2 == 0 for n in found)


def test_equal_ids_of_other_types_go_to_one_task() -> None:
    """Texts of both lengths, and dictionaries in other orders."""
    texts = [pa.array(each) for each in (["né", "o"] * 9, ["o", "né"])]
    design = Design({"n": list(range(18))}, individual="who", l0=1)
    for parts in (
        [texts[0], texts[1].cast(pa.large_string())],
        [texts[0].cast(pa.large_string()), texts[1]],
        [text.dictionary_encode() for text in texts],
    ):
        blocks = [pa.table({"who": who, "n": range(len(who))}) for who in parts]
        found = geomdp.tables.ray.count(design, ray.data.from_arrow(blocks)).frame["count"]
        assert sum(found.to_pylist()) == 2


def test_blocks_of_other_types_raise() -> None:
    """Their values are in no error; only nulls and other texts have the dataset's type."""
    design = Design({"n": [1]}, individual="who", l0=1)
    for name in ("who", "n"):
        blocks = [pa.table({"who": [1], "n": [1]})] * 2
        column = pa.array([734_921], pa.int32())
        blocks[1] = blocks[1].set_column(name == "n", name, column)
        with pytest.raises(RayError, match=f"column '{name}' of type int32 in a block") as caught:
            geomdp.tables.ray.count(design, ray.data.from_arrow(blocks))
        assert "734" not in str(caught.value)
    without = [pa.table({"n": [1, 2]}), pa.table({"n": pa.nulls(3)})]
    table = geomdp.tables.ray.count(Design({"n": [1]}, other=-1), ray.data.from_arrow(without))
    assert table.frame["count"].to_pylist() == [1, 4]
    some = pa.table({"who": [1, 2, None], "n": [1, 2, 3]})
    with pytest.raises(RayError, match="column 'who' contains nulls: give every record an id"):
        geomdp.tables.ray.count(design, counts(some, 3))


def test_nothing_but_the_noise_tells_neighbours_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GeometricMechanism, "release", known)
    monkeypatch.setattr(identity, "fresh", lambda: "0" * 32)
    design, found = Design({"town": ["Rome", "Oslo"]}, margins="*"), []
    for more in ([], ["Aarau"], [None]):
        towns = pa.table({"town": pa.array(["Rome", "Oslo", *more]).dictionary_encode()})
        table = geomdp.tables.ray.count(design, counts(towns, 2))
        found.append(observed(table.release(epsilon=1), tmp_path))
    assert found[0] == found[1] == found[2]


def test_a_count_leaves_no_records_in_the_object_store() -> None:
    def known_here() -> set[bytes]:
        gc.collect()
        return {*ray._private.worker.global_worker.core_worker.get_all_reference_counts()}

    dataset = counts(VISITS)
    design = Design({"n": list(range(7))}, individual="who", l0=3, linf=2)
    before = known_here()
    kept = dataset.map_batches(lambda batch: batch).materialize()
    assert known_here() > before  # The search is not blind.
    del kept
    geomdp.tables.ray.count(design, dataset)
    assert known_here() <= before


@pytest.mark.night
def test_tables_without_rows() -> None:
    design = Design({"i": [0, 1]}, individual="town", l0=1)
    for dataset in (counts(table(0), 1), after(counts(), lambda block: block.slice(0, 0))):
        assert geomdp.tables.ray.count(design, dataset).frame["count"].to_pylist() == [0, 0]


# Only counts change


# Ray gives counts of rows such names.
@pytest.mark.parametrize(
    ("names", "ids"),
    [(["count()", "0"], ["i d"]), *night((["0"], ["kind", "when", "count()"]))],
)
def test_other_columns_are_kept(names: list[str], ids: list[str]) -> None:
    numbers = list(range(20))
    whole = pa.table(
        {
            "i d": [f"é {number}" for number in numbers],
            "count()": pa.array(numbers, pa.uint8()),
            "0": pa.array([None, *numbers[1:]], pa.int16()),
            "kind": pa.array([f"k{number}" for number in numbers]).dictionary_encode(),
            "when": pa.array(numbers, pa.timestamp("us", "Europe/Berlin")),
            "list": pa.array([[number] for number in numbers]),
            "pair": pa.array([{"a": number, "b": None} for number in numbers]),
            "half": pa.array([number / 2 for number in numbers], pa.float32()),
        }
    )
    # Unsigned counts need bounds.
    whole_bytes = GeometricMechanism.from_scale(0, bounds=(0, 255))
    mechanisms = {name: whole_bytes if name == "count()" else NONE for name in names}
    noisy = release_columns(counts(whole, 3), mechanisms, ids, nulls="keep").frame
    assert noisy.schema().base_schema.equals(whole.schema)
    found = arrow(noisy).sort_by("when")
    assert found.schema.equals(whole.schema)
    assert found.to_pylist() == whole.to_pylist()


@pytest.mark.night
def test_pandas_blocks() -> None:
    whole = pd.DataFrame(
        {"i": pd.Categorical(["x", "y", "z"]), "n": pd.array([1, None, 3], dtype="Int64")}
    )
    noisy = release_columns(ray.data.from_pandas(whole), {"n": NONE}, ["i"], nulls="keep").frame
    found = sorted(noisy.take_all(), key=lambda row: str(row["i"]))
    assert found == [{"i": "x", "n": 1}, {"i": "y", "n": None}, {"i": "z", "n": 3}]


@pytest.mark.night
def test_datasets_without_rows() -> None:
    noisy = release_columns(counts(table(0), 1), {"n": WIDE}, IDS).frame
    assert noisy.count() == 0
    few = after(counts(), lambda block: block.slice(0, 0))
    assert release_columns(few, {"n": WIDE}, IDS).frame.count() == 0
    with pytest.raises(KeyError, match="town"):
        # Ray does not know its columns.
        release_columns(ray.data.from_items([]), {"n": WIDE}, IDS)


# Errors


#: A row without one of its ids, and rows whose ids are of other types.
NULL = table(1).set_column(1, "town", pa.nulls(1, pa.string()))
OTHER = table().cast(
    pa.schema([("n", "int64"), ("town", "large_string"), ("m", "int32"), ("i", "int8")])
)


@pytest.mark.night
@pytest.mark.parametrize("strategy", ["sort_shuffle_pull_based", "default"])
def test_repeated_ids_of_other_types_raise(
    keepers: list[Any], strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ray.data.DataContext.get_current()
    if strategy == "default":
        monkeypatch.setattr(context, "_shuffle_strategy", type(context)().shuffle_strategy)
    parts = ray.data.from_arrow([table()[:500], OTHER[499:]])
    with pytest.raises(ValueError, match=r"ids = \[.*\] are not unique") as caught:
        release_columns(parts, {"n": WIDE}, ["town", "i", "m"])
    assert "town 9" not in str(caught.value)
    assert not keepers


@pytest.mark.night
def test_null_id() -> None:
    another = NULL.set_column(3, "i", pa.array([1]))
    whole = pa.concat_tables([NULL, table(), another])
    assert len(rows(release_columns(counts(whole), {"n": WIDE}, IDS).frame)) == ROWS + 2


@pytest.mark.night
def test_ids_in_other_units_between_blocks() -> None:
    """5 s and 5 ms are two ids, and 5 s and 5000 ms are one."""

    def blocks(milliseconds: Any) -> ray.data.Dataset:
        columns = [("s", range(200)), ("ms", milliseconds)]
        return ray.data.from_arrow(
            pa.table({"i": pa.array(each, pa.duration(unit)), "n": pa.array([0] * len(each))})
            for unit, each in columns
        )

    with release_columns(blocks(range(1, 200)), {"n": WIDE}, ["i"]) as noisy:
        whole = arrow(noisy)
    assert len(whole) == len(set(whole["i"].to_pylist())) == 399
    assert len(set(whole["n"].to_pylist())) > 390
    with pytest.raises(ValueError, match="not unique"):
        release_columns(blocks(range(5000, 6000, 1000)), {"n": WIDE}, ["i"])


@pytest.mark.night
def test_unique_ids_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    function = geomdp.tables.ray._map

    def note(dataset: Any, step: Any, **arguments: Any) -> Any:
        asked.append(step.__name__)
        return function(dataset, step, **arguments)

    monkeypatch.setattr(geomdp.tables.ray, "_map", note)
    release_columns(counts(), {"n": WIDE}, IDS, unique_ids=True).wipe()
    assert asked == ["_release_columns"]
    release_columns(counts(), {"n": WIDE}, IDS).wipe()
    assert asked[1:] == ["_ids", "_repeated", "_release_columns"]


@pytest.mark.parametrize("way", ["nothing", "materialize", "parquet"])
@pytest.mark.night
def test_rows_differing_between_readings_are_not_noticed(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hence the documentation asks to write and read them first."""

    def draw(block: pa.Table) -> pa.Table:
        column = pa.array(np.frombuffer(os.urandom(8 * len(block)), np.int64) >> 8)
        return block.set_column(block.column_names.index("n"), "n", column)

    dataset = after(counts(), draw)
    if way == "materialize":
        dataset = dataset.materialize()
    elif way == "parquet":
        dataset.write_parquet(str(tmp_path))
        # On two processors the other reader waits for a minute.
        context = ray.data.DataContext.get_current()
        monkeypatch.setattr(context, "use_datasource_v2", False, raising=False)
        dataset = ray.data.read_parquet(str(tmp_path))
    with release_columns(dataset, {"n": WIDE}, IDS) as noisy:
        assert (rows(noisy) == rows(noisy)) == (way != "nothing")


@pytest.mark.night
def test_noise_is_independent_of_block_types() -> None:
    """Types may change when Ray cuts blocks differently."""
    keeper = geomdp.tables.ray._keeper()
    ids = ["i", "town"]
    kinds = {"i": pa.duration("s"), "town": pa.string(), "n": pa.int64()}

    def release(block: pa.Table) -> Any:
        noisy = geomdp.tables.ray._release_columns(block, keeper, {"n": WIDE}, kinds, "refuse")
        return noisy["n"].to_pylist()

    found = []
    for duration, string, values in [
        (pa.duration("s"), pa.dictionary(pa.int8(), pa.string()), range(1000)),
        (pa.duration("ms"), pa.large_string(), range(0, 10**6, 1000)),
    ]:
        columns = [pa.array(values, duration), pa.array(["x"] * 1000).cast(string)]
        block = pa.table([*columns, np.zeros(1000, np.int64)], [*ids, "n"])
        found.append(release(block))
    assert found[0] == found[1]
    assert len(set(found[0])) > 990
    for place, name, column in [(2, "n", pa.int32()), (1, "town", pa.int64())]:
        other = block.set_column(place, name, pa.array([734_921] * 1000, column))
        with pytest.raises(
            TypeError, match=rf"column '{name}' of type {column} in a block"
        ) as info:
            release(other)
        assert "734" not in str(info.value)


def test_max_errored_blocks_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray.data.DataContext.get_current(), "max_errored_blocks", 1)
    with pytest.raises(ValueError, match="max_errored_blocks"):
        release_columns(counts(), {"n": WIDE}, IDS)


# The key


def store() -> bytes:
    """Return the memory of the object store, which is mapped into this process."""
    maps = Path("/proc/self/maps").read_text()
    spans = re.findall(r"^(\w+)-(\w+) .*plasma", maps, re.MULTILINE)
    assert spans
    with Path("/proc/self/mem").open("rb") as memory:
        found = []
        for start, end in spans:
            memory.seek(int(start, 16))
            found.append(memory.read(int(end, 16) - int(start, 16)))
    return b"".join(found)


def test_key_is_not_shown(keepers: list[Any]) -> None:
    release = release_columns(counts(), {"n": WIDE}, IDS, unique_ids=True)
    [keeper] = keepers
    _, (_, secret) = key_of(keeper).__reduce__()
    assert len(secret) == 32
    kept = release.frame.materialize()
    places: list[bytes | str] = [cloudpickle.dumps(release.frame), repr(release.frame), store()]
    places += [repr(release), kept.stats()]
    logs = Path(ray._private.worker._global_node.get_logs_dir_path())
    places += [path.read_bytes() for path in logs.rglob("*") if path.is_file()]
    assert any(b"_Keeper" in place for place in places if isinstance(place, bytes))
    assert not shows(secret, *places)
    # The search is not blind.
    there = ray.put(np.frombuffer(secret * 10**5, np.uint8))
    assert shows(secret, store())
    assert shows(secret, pickle.dumps({"a": secret}))
    assert shows(secret, base64.b64encode(secret).decode())
    del there


def test_wiping_ends_the_actor_of_the_key(keepers: list[Any]) -> None:
    release = release_columns(counts(), {"n": WIDE}, IDS, unique_ids=True)
    rows(release.frame)
    release.wipe()
    wait_for_the_end(keepers[0])
    with pytest.raises(RayError, match="key of this release is wiped"):
        rows(release.frame.repartition(2))


@pytest.mark.night
def test_lost_key_raises(keepers: list[Any]) -> None:
    """The release ends with its process; no other key takes its place."""
    release = release_columns(counts(), {"n": WIDE}, IDS, unique_ids=True)
    rows(release.frame)
    [keeper] = keepers
    os.kill(ray.get(keeper.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(RayError, match="or lost with its actor"):
            rows(release.frame)
    release.wipe()


@pytest.mark.night
def test_frame_keeps_the_key() -> None:
    frame = release_columns(counts(), {"n": WIDE}, IDS, unique_ids=True).frame
    gc.collect()
    first = rows(frame)
    time.sleep(1)
    assert rows(frame) == first


@pytest.mark.night
def test_docstring_example() -> None:
    failed, attempted = doctest.testmod(geomdp.tables.ray, globs={})
    assert (failed, attempted > 5) == (0, True)


def test_wipe_after_shutdown() -> None:
    """Runs last."""
    release = release_columns(counts(), {"n": WIDE}, IDS, unique_ids=True)
    ray.shutdown()
    release.wipe()
    assert not ray.is_initialized()

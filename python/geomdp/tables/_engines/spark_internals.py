"""The internals of Spark that its adapter needs, tried on PySpark 4.3.0."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark import TaskContext
from pyspark.core.broadcast import Broadcast, _from_id
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from geomdp._ground.extras import tried
from geomdp.keyed import ReleaseKey

tried("pyspark", "4.4")

#: Settings of SQL that say how rows are computed, stored or shown. Any other may decide which rows
#: there are: `caseSensitive`, which column a file's is; `ansi.enabled`, whether errors are nulls.
HOW = [
    f"spark.sql.{name}"
    for name in (
        "adaptive.",
        "autoBroadcastJoinThreshold",
        "broadcastTimeout",
        "codegen.",
        "dataset.queryExecution.id",
        "debug.",
        "execution.",
        "files.max",
        "files.openCostInBytes",
        "inMemoryColumnarStorage.",
        "orc.compression.codec",
        "parquet.compression.codec",
        "repl.",
        "shuffle.",
        "sources.partitionOverwriteMode",
        "streaming.",
        "ui.",
    )
]
ZONE = "spark.sql.session.timeZone"
#: Whether the zone decides about rows after all: spark_plan refuses all other sources that read it.
INT96 = "spark.sql.parquet.int96TimestampConversion"


def is_classic(frame: Any) -> bool:
    """Return whether a value is a DataFrame of a classic session."""
    return isinstance(frame, ClassicDataFrame)


def analyzed(frame: DataFrame) -> Any:
    """Return the analyzed plan, an object of Spark's JVM."""
    return frame._jdf.queryExecution().analyzed()


def collations(frame: DataFrame) -> Callable[[Any], bool]:
    """Return the JVM's function that tells whether a type has a collated string."""
    jvm: Any = frame.sparkSession._jvm
    found: Callable[[Any], bool] = (
        jvm.org.apache.spark.sql.util.SchemaUtils.hasNonUTF8BinaryCollation
    )
    return found


def forgetting(frame: DataFrame) -> Callable[[], object]:
    """Return a function that takes the reference to its broadcast from a ``mapInArrow``.

    Spark cannot create tasks that refer to a destroyed broadcast. Without the reference they start,
    and fail with an error that names the key.
    """
    function = analyzed(frame).expressions().head().func()
    pop: Callable[[], object] = function.broadcastVars().pop
    return pop


def deciding(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that may decide which rows there are."""
    how = (*HOW, *([] if settings.get(INT96) == "true" else [ZONE]))
    return {
        name: value
        for name, value in settings.items()
        if name.startswith("spark.sql.") and not name.startswith(how)
    }


def check_settings(before: Mapping[str, str]) -> None:
    """Refuse, in a task, settings that differ from those at the time of the release.

    Spark reads many of them again for each evaluation. Other rows would be a second release.
    """
    context: Any = TaskContext.get()
    properties = context._localProperties
    if "spark.sql.execution.id" not in properties:
        raise ValueError(
            "the rdd of a release is not accepted, since its tasks do not have the session's "
            "settings: evaluate the frame, or the rdd of its checkpoint()"
        )
    now = deciding(properties)
    if changed := [name for name in {*before, *now} if before.get(name) != now.get(name)]:
        raise ValueError(
            f"settings have changed since the release: {sorted(changed)}; set them back, since the "
            "rows may depend on them"
        )


class Held:
    """Wraps the key's broadcast; unpickles in tasks as the broadcast itself."""

    def __init__(self, broadcast: Broadcast[ReleaseKey]) -> None:
        self._broadcast = broadcast

    def __reduce__(self) -> tuple[Any, ...]:
        # This also tells Spark that tasks with this function need the broadcast.
        _, arguments = self._broadcast.__reduce__()
        return _fetch, arguments


def _fetch(number: int) -> Broadcast[ReleaseKey]:
    try:
        return _from_id(number)
    except PySparkRuntimeError as error:
        raise ValueError(
            "the key of this release is wiped: nothing more can be evaluated"
        ) from error

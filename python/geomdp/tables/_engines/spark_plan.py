"""Checks that a Spark plan gives the same rows each time, and whether it shows ids to be unique.

A plan is accepted if every node and every expression in it is listed here. Spark's own flag,
`deterministic`, is weaker: it allows rows that depend on the order in which tasks end, on the
splits of files, and on the zone and the language of the process that computes them.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


NODES = _words(
    # The plan contains the rows.
    "LocalRelation OneRowRelation Range",
    # Each row is kept, dropped, changed or repeated independently.
    "Project Filter Expand Generate",
    # All rows stay, in another order or partition.
    "Sort Repartition RepartitionByExpression RebalancePartitions Union",
    # Whole rows are compared, and equal rows are identical.
    "Distinct Intersect Except",
    # All matching pairs of rows; AGGREGATES over groups.
    "Join Aggregate",
    # Names and hints.
    "SubqueryAlias View ResolvedHint WithCTE CTERelationDef CTERelationRef",
)
#: Sources that read files. docs/keyed.md asks users not to change the files. All but Parquet
#: read timestamps with the zone of the session (CSV, JSON) or of the process (ORC).
FILES = _words(
    "ParquetFileFormat OrcFileFormat CSVFileFormat JsonFileFormat TextFileFormat",
    "ParquetTable OrcTable CSVTable JsonTable TextTable",
)
#: Nodes with a source that is not a part of the plan.
SOURCES = _words("LogicalRelation DataSourceV2Relation")
#: Fields of files' metadata that do not follow the splits of a file.
WHOLE_FILE = _words("file_path file_name file_size file_modification_time row_index")
#: Aggregates that do not depend on the order of rows, if their results have EXACT types.
AGGREGATES = _words(
    "Count CountIf RegrCount Sum Min Max BitAndAgg BitOrAgg BitXorAgg BoolAnd BoolOr",
    "HyperLogLogPlusPlus",
)
#: Types whose sums do not depend on the order, and whose equal values are identical.
EXACT = _words("boolean byte short integer long decimal string binary date timestamp timestamp_ntz")
#: Expressions that contain a plan.
SUBQUERIES = _words("ScalarSubquery ListQuery Exists")
#: All expressions that are accepted. The others depend only on the values of one row.
EXPRESSIONS = AGGREGATES.union(
    SUBQUERIES,
    _words(
        # Columns, constants, and wrappers that a plan puts around functions.
        "AttributeReference OuterReference Literal Alias SortOrder AggregateExpression InSubquery "
        "With CommonExpressionDef CommonExpressionRef KnownNullable KnownNotNull "
        "PreciseTimestampConversion",
        # Part of a pivot, over groups with one row for each value.
        "PivotFirst",
        # Arrays, maps, structs.
        "CreateArray CreateMap CreateNamedStruct MapFromArrays GetArrayItem GetMapValue "
        "GetStructField ElementAt Size ArrayContains Explode PosExplode Inline Stack",
        # Casts, comparisons, logic.
        "Cast EqualTo EqualNullSafe EqualNull LessThan LessThanOrEqual GreaterThan "
        "GreaterThanOrEqual Between In InSet And Or Not IsNull IsNotNull IsNaN NaNvl "
        "AtLeastNNonNulls If CaseWhen Coalesce Nvl Nvl2 NullIf NullIfResult NullIfZero ZeroIfNull "
        "Greatest Least",
        # Numbers.
        "Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus UnaryPositive Abs "
        "TryAdd TrySubtract TryMultiply TryDivide TryMod TryEval Round BRound Ceil Floor "
        "RoundCeil RoundFloor Rint Signum Sqrt Cbrt Exp EulerNumber Log Log2 Log10 Log1p "
        "Logarithm Pow WidthBucket Conv BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseCount "
        "ShiftLeft ShiftRight ShiftRightUnsigned",
        # Hashes and codes.
        "Murmur3Hash XxHash64 Md5 Sha1 Sha2 Crc32 Hex Unhex Base64 UnBase64",
        # Strings. Upper, Lower, InitCap and ILike follow the language of the process.
        "Concat ConcatWs Length OctetLength BitLength Substring "
        "SubstringIndex Left Right StringTrim StringTrimBoth StringTrimLeft StringTrimRight "
        "StringLPad StringRPad StringReplace StringTranslate StringRepeat StringSplit "
        "StringLocate StringInstr StringSpace Reverse Overlay Contains StartsWith EndsWith Like "
        "RLike RegExpReplace RegExpExtract SplitPart Levenshtein SoundEx Ascii Chr "
        "FormatNumber FormatString",
        # Given dates and times. Functions that read a clock have other names.
        "Year Quarter Month WeekOfYear WeekDay DayOfYear DayOfMonth DayOfWeek Hour Minute Second "
        "SecondWithFraction Extract DatePart DateAdd DateSub DateDiff AddMonths MonthsBetween "
        "LastDay NextDay TruncDate TruncTimestamp TimestampAdd TimestampDiff TimestampAddInterval "
        "TimestampAddYMInterval DateAddInterval DateAddYMInterval ExtractANSIIntervalDays "
        "SubtractDates SubtractTimestamps MakeDate MakeTimestamp ParseToDate ParseToTimestamp "
        "GetTimestamp UnixTimestamp ToUnixTimestamp FromUnixTime DateFormatClass UnixDate "
        "UnixSeconds UnixMillis UnixMicros DateFromUnixDate SecondsToTimestamp MillisToTimestamp "
        "MicrosToTimestamp FromUTCTimestamp ToUTCTimestamp ConvertTimezone",
    ),
)
#: Spark's mark of columns that are not in the files.
METADATA = "__metadata_col"
#: A zoned timestamp in the JSON of a schema, at any depth.
ZONED = re.compile('[tT]ype":"timestamp"')
#: Casts of these words read a clock.
CLOCK = re.compile("now|today|tomorrow|yesterday", re.IGNORECASE)
#: Nodes that keep, drop or move the rows of their child, and do not change the columns.
PASSING = _words(
    "Filter Sort Repartition RepartitionByExpression RebalancePartitions SubqueryAlias"
)


def unstable(plan: Any, collated: Callable[[Any], bool]) -> str | None:
    """Return the first node or expression that may give other rows when read again, if any.

    The plan is an analyzed one; `collated` tells whether a type of the JVM has a collated string.
    """
    plans = [plan]
    while plans:
        node = plans.pop()
        if (found := _unstable_node(node)) is not None:
            return found
        # Collated strings may compare equal and differ; the order of rows decides which one a group
        # keeps.
        if collated(node.schema()):
            return "a collation"
        plans += _items(node.children())
        # Those of a source are its columns, among them its files' metadata.
        expressions = [] if _name(node) in SOURCES else list(_items(node.expressions()))
        while expressions:
            each = expressions.pop()
            if (found := _unstable_expression(each, collated)) is not None:
                return found
            if _name(each) in SUBQUERIES:
                plans.append(each.plan())
            expressions += _parts(each)
    return None


def groups_by(plan: Any, places: list[int]) -> bool:
    """Return whether the plan shows that no two rows agree in the columns at these places.

    It does if all columns that it groups by are among them, and each group is kept or dropped as a
    whole afterwards.
    """
    output = list(_items(plan.output()))
    ids = [output[place] for place in places]
    while (name := _name(plan)) != "Aggregate":
        if name == "Project":
            ids = _sources(ids, plan.projectList())
        elif name not in PASSING:
            return False
        plan = plan.child()
    ids = _sources(ids, plan.aggregateExpressions())
    return all(
        any(each.semanticEquals(key) for each in ids) for key in _items(plan.groupingExpressions())
    )


def _unstable_node(node: Any) -> str | None:
    name = _name(node)
    if name in SOURCES:
        return _unstable_source(node)
    if name == "Deduplicate":
        # Otherwise the first row to arrive gives the other columns.
        output = {each.exprId().id() for each in _items(node.child().output())}
        stable = output == {each.exprId().id() for each in _items(node.keys())}
    elif name == "LogicalRDD":
        # The plan does not show the functions of other RDDs.
        stable = node.rdd().isCheckpointed()
    else:
        stable = name in NODES
    return None if stable else name


def _unstable_expression(each: Any, collated: Callable[[Any], bool]) -> str | None:
    name = _name(each)
    if name not in EXPRESSIONS:
        return name
    if name in AGGREGATES and (kind := _type(each)) not in EXACT:
        return f"{name} of type {kind}"
    if name in ("Cast", "Literal") and collated(each.dataType()):
        return "a collation"
    if name == "Cast" and _asks_a_clock(each):
        return "Cast of a word for a time"
    if _of_a_file(each):
        return "_metadata"
    if name == "GetStructField" and _of_a_file(each.child()):
        field = each.extractFieldName()
        return None if field in WHOLE_FILE else f"_metadata.{field}"
    return None


def _parts(expression: Any) -> Iterator[Any]:
    """Return the expressions that are still to be checked when an expression is accepted."""
    name = _name(expression)
    if name in ("ParseToDate", "ParseToTimestamp"):
        # They contain a cast that is not among their children.
        return iter([expression.replacement()])
    if name == "GetStructField" and _of_a_file(expression.child()):
        return iter(())
    return _items(expression.children())


def _unstable_source(node: Any) -> str | None:
    """Return the source of a node if its rows may change with the session or the process."""
    if _name(node) == "DataSourceV2Relation":
        table = source = node.table()
    elif _name(table := node.relation()) == "HadoopFsRelation":
        source = table.fileFormat()
    else:
        return _name(node)
    if (name := _name(source)) not in FILES:
        return f"{_name(node)} of {name}"
    index = table.fileIndex() if table is source else table.location()
    schemas = [index.partitionSchema()]
    if not name.startswith("Parquet"):
        schemas.append(table.dataSchema())
    if any(ZONED.search(schema.json()) for schema in schemas):
        return f"zoned timestamps of {name}"
    return None


def _of_a_file(expression: Any) -> bool:
    """Return whether this is the column that Spark adds to tables of files."""
    return _name(expression) == "AttributeReference" and expression.metadata().contains(METADATA)


def _asks_a_clock(cast: Any) -> bool:
    child = cast.child()
    if not (child.foldable() and _type(child) == "string"):
        return False
    return _name(child) != "Literal" or bool(CLOCK.search(str(child)))


def _sources(columns: list[Any], given: Any) -> list[Any]:
    """Return the expressions behind these columns, without their aliases."""
    by_id = {each.exprId().id(): each for each in _items(given)}
    names = [each for each in columns if _name(each) == "AttributeReference"]
    found = [by_id[each.exprId().id()] for each in names]
    return [each.child() if _name(each) == "Alias" else each for each in found]


def _type(expression: Any) -> str:
    return str(expression.dataType().typeName()).partition("(")[0]


def _name(thing: Any) -> str:
    """Return the short name of a Spark class, and the full name of any other class."""
    name = str(thing.getClass().getName())
    return name.rpartition(".")[2] if name.startswith("org.apache.spark.sql.") else name


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(place) for place in range(sequence.size()))

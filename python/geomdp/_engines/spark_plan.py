"""Checks that a Spark plan gives the same rows each time, and whether it shows ids to be unique.

A plan is accepted if every node and every expression in it is listed here. Spark's own flag,
`deterministic`, is weaker: it allows rows that depend on the order in which tasks end.
"""

import re
from collections.abc import Iterator
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
#: Sources that read files. docs/distributed.md asks users not to change the files.
FILES = _words("HadoopFsRelation ParquetTable OrcTable CSVTable JsonTable TextTable")
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
        # Strings.
        "Concat ConcatWs Upper Lower InitCap Length OctetLength BitLength Substring "
        "SubstringIndex Left Right StringTrim StringTrimBoth StringTrimLeft StringTrimRight "
        "StringLPad StringRPad StringReplace StringTranslate StringRepeat StringSplit "
        "StringLocate StringInstr StringSpace Reverse Overlay Contains StartsWith EndsWith Like "
        "ILike RLike RegExpReplace RegExpExtract SplitPart Levenshtein SoundEx Ascii Chr "
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
#: Casts of these words read a clock.
CLOCK = re.compile("now|today|tomorrow|yesterday", re.IGNORECASE)
#: Nodes that keep, drop or move the rows of their child, and do not change the columns.
PASSING = _words(
    "Filter Sort Repartition RepartitionByExpression RebalancePartitions SubqueryAlias"
)


def unstable(jvm: Any, plan: Any) -> str | None:
    """Return the first node or expression that may give other rows when read again, if any.

    The plan is an analyzed one.
    """
    collated = jvm.org.apache.spark.sql.util.SchemaUtils.hasNonUTF8BinaryCollation
    plans = [plan]
    while plans:
        node = plans.pop()
        if not _same_rows(node):
            return _name(node)
        # Collated strings may compare equal and differ; the order of rows decides which one a group
        # keeps.
        if collated(node.schema()):
            return "a collation"
        plans += _items(node.children())
        expressions = list(_items(node.expressions()))
        while expressions:
            each = expressions.pop()
            name = _name(each)
            if name not in EXPRESSIONS:
                return name
            if name in AGGREGATES and (kind := _type(each)) not in EXACT:
                return f"{name} of type {kind}"
            if name in ("Cast", "Literal") and collated(each.dataType()):
                return "a collation"
            if name == "Cast" and _asks_a_clock(each):
                return "Cast of a word for a time"
            if name in SUBQUERIES:
                plans.append(each.plan())
            # These two contain a cast that is not among their children.
            hidden = name in ("ParseToDate", "ParseToTimestamp")
            expressions += [each.replacement()] if hidden else _items(each.children())
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


def _same_rows(node: Any) -> bool:
    name = _name(node)
    if name == "Deduplicate":
        # Otherwise the first row to arrive gives the other columns.
        output = {each.exprId().id() for each in _items(node.child().output())}
        return output == {each.exprId().id() for each in _items(node.keys())}
    if name == "LogicalRDD":
        # The plan does not show the functions of other RDDs.
        return bool(node.rdd().isCheckpointed())
    if name == "LogicalRelation":
        return _name(node.relation()) in FILES
    if name == "DataSourceV2Relation":
        return _name(node.table()) in FILES
    return name in NODES


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

"""Commands and their options as a table, the parser made of it, and the numbers of options."""

from __future__ import annotations

import argparse
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, NoReturn

import geomdp
from geomdp._ground.notebook import showable
from geomdp._ground.parameters import shown
from geomdp._inputs.arrays import DTYPES
from geomdp.cli import _files
from geomdp.mechanism import GeometricMechanism
from geomdp.tables._facts.fields import FIELDS

DELIMITERS = {",": ",", ";": ";", "|": "|", "tab": "\t"}
#: The largest length of a number; no float needs more characters.
_LONGEST = 1100
_SUCH_AS = "such as 0.5, 1e-3 or 1/3"
#: Words of the library's errors that are options wherever they stand, and no words of English.
_OWN_WORDS = re.compile(r"\w*[0-9_]\w*|linf")


class UsageError(Exception):
    """The command line is invalid."""


@contextmanager
def refusing(given: argparse.Namespace) -> Iterator[None]:
    """Turn the library's errors for parameters into usage errors, and print its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            # The text of a KeyError is that of its argument, in quotes.
            said = error.args[0] if isinstance(error, KeyError) else error
            raise UsageError(_as_typed(str(said), given.options)) from error
    for warning in caught:
        text = _as_typed(str(warning.message), given.options)
        print(f"geomdp: warning: {text}", file=sys.stderr)


def _as_typed(text: str, options: Mapping[str, Option]) -> str:
    """Return the text of an error with the parameters that it names as the command's options."""
    for option in options:
        name = option.removeprefix("--").replace("-", "_")
        text = re.sub(rf"(?<![-\w]){name}=(?=\w|['\"])", f"{option} ", text)
        rest = r"\b" if _OWN_WORDS.fullmatch(name) else r"(?= = |=)"
        text = re.sub(rf"(?<![-\w]){name}{rest}=?(?!=)", option, text)
    return text


# Numbers, which stay text, as sentences show it


def number(text: str, wanted: str = f"a number {_SUCH_AS}", above: int = -1) -> str:
    """Return the text of a number that is taken exactly, or refuse it."""
    # An exponent of unlimited length would take unlimited memory.
    form = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[0-9]+/0*[1-9][0-9]*"
    if len(text) > _LONGEST or not re.fullmatch(form, text) or Fraction(text) <= above:
        _refuse(text, wanted)
    return text


def integer(text: str, least: float = -math.inf) -> int:
    """Return an integer, or refuse it."""
    if not re.fullmatch(r"[+-]?[0-9]{1,38}", text) or int(text) < least:
        start = "an integer of" if least == -math.inf else f"an integer of at least {least} and"
        _refuse(text, f"{start} at most 38 digits")
    return int(text)


def loss(text: str) -> tuple[str, int]:
    """Return a privacy loss and how many releases have it."""
    each, times, n = text.partition("x")
    return number(each, f"a number {_SUCH_AS}, or 0.5x20 for 20 releases"), whole(
        n if times else "1"
    )


def _refuse(text: str, wanted: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"{shown(text)} is not accepted: give {wanted}")


positive = partial(number, wanted=f"a positive number {_SUCH_AS}", above=0)
whole = partial(integer, least=1)


def by_name(given: argparse.Namespace, option: str) -> dict[str, str]:
    """Return the values of an option that is given once for each name."""
    pairs = getattr(given, option.removeprefix("--")) or ()
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UsageError(f"{option} is given twice for the same {given.options[option].metavar[0]}")
    return found


# Options and commands


class Option(NamedTuple):
    """An option of a command, or one of its arguments."""

    metavar: Any
    help: str
    #: The other arguments of the parser.
    how: Mapping[str, Any] = {}
    #: Whether it excludes others of which one is required.
    either: bool = False


class Command(NamedTuple):
    """A command."""

    #: Returns the text to print.
    run: Callable[[argparse.Namespace], str]
    summary: str
    about: str
    example: str
    options: Mapping[str, Option]


def flag(text: str) -> Option:
    """Return an option without a value."""
    return Option(None, text, {"action": "store_true"})


#: Options that mean the same for several commands.
_SHARED = {
    "source": Option("IN", "the CSV file to read"),
    "target": Option("OUT", "the file to write"),
    "--epsilon": Option("E", "the privacy loss", {"type": positive}, either=True),
    "--scale": Option("S", "the noise scale, sensitivity / epsilon", {"type": positive}, True),
    "--sensitivity": Option(
        "S",
        "the most by which one individual can change the counts in total; by default 1",
        {"type": whole},
    ),
    "--bounds": Option(
        ("L", "U"),
        "the least and the greatest noisy count; by default the limits of the signed type",
        {"type": integer, "nargs": 2},
    ),
    "--alpha": Option(
        "P", "the probability of a greater error", {"type": positive, "required": True}
    ),
    "--simultaneous": Option("N", "how many counts must be this accurate at once", {"type": whole}),
    "--delta": Option("D", "from 0 to 1; by default 0", {"type": number}),
    "--dtype": Option(
        "TYPE",
        "the type of the counts, int8 to int64 or uint8 to uint64; by default int64",
        {"choices": list(DTYPES)},
    ),
    "--delimiter": Option(
        "D",
        'the delimiter of cells: "," (the default), ";", "|" or "tab"',
        {"choices": [*DELIMITERS], "default": ","},
    ),
}


def _number_or(pattern: str | None, text: str, *, least: int) -> int | str:
    """Return an integer, or a text of this form."""
    return text if pattern and re.search(pattern, text) else integer(text, least=least)


def _how(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the parser reads an option whose value has this schema."""
    if "enum" in schema:
        return {"choices": schema["enum"]}
    if schema["type"] == "object":
        return {"nargs": 2, "action": "append"}
    if "integer" in schema["type"]:
        return {"type": partial(_number_or, schema.get("pattern"), least=schema["minimum"])}
    return {"action": "append"} if "array" in schema["type"] else {}


#: The options that say what a published table states.
STATED = {
    f"--{name.replace('_', '-')}": Option(*field.option, _how(field.schema))
    for name, field in FIELDS.items()
    if field.option is not None
}


def shared(*names: str) -> dict[str, Option]:
    """Return options that mean the same for several commands."""
    return {name: _SHARED[name] for name in names}


def mechanism(given: argparse.Namespace) -> GeometricMechanism:
    """Return the mechanism of --epsilon and --sensitivity, or of --scale."""
    if given.scale is None:
        return GeometricMechanism(given.epsilon, given.sensitivity or 1, bounds=given.bounds)
    if given.sensitivity is not None:
        raise UsageError("--sensitivity is for --epsilon: leave it out with --scale")
    return GeometricMechanism.from_scale(given.scale, given.bounds)


# The parser


@showable
class _Parser(argparse.ArgumentParser):
    """Raises errors for main to report; argparse prints several lines, or nothing."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, _: Any = None) -> None:
        _files.print_text(message)


@showable
class _Version(argparse.Action):
    """Reads the version when it is asked for: it is in the package's metadata."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.exit(message=f"geomdp {geomdp.__version__}\n")


_ABOUT = """\
Publish counts with the geometric mechanism of differential privacy, and compute
how accurate the noisy counts are.

Numbers are taken exactly: 0.1 is a tenth, and 1/3 a third.

Exit codes: 0 on success; 2 if a command or a parameter is invalid; 1 for any
other failure. Every error is one line on standard error."""


def parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """Return the parser of some commands."""
    made = _Parser("geomdp", **_help(_ABOUT, "geomdp accuracy --epsilon 0.5 --alpha 0.05"))
    made.add_argument("--version", action=_Version, nargs=0, help="show the version")
    subparsers = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in commands.items():
        example = f"geomdp {name} {command.example}"
        added = subparsers.add_parser(name, help=command.summary, **_help(command.about, example))
        added.set_defaults(run=command.run, options=command.options)
        either = sum(option.either for option in command.options.values()) > 1
        choice = added.add_mutually_exclusive_group(required=True) if either else added
        for each, option in command.options.items():
            how = {"metavar": option.metavar, **option.how}
            if option.metavar is None:
                del how["metavar"]
            group = choice if option.either and either else added
            group.add_argument(each, help=option.help, **how)
    return made


def _help(about: str, example: str) -> dict[str, Any]:
    return {
        "description": about,
        "epilog": f"example:\n  {example}",
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }

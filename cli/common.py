"""Shared parts of commands: common options, examples in the help, one-line messages for user errors."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def _long_id(text: str, folders: Iterable[Path] = ()) -> str:
    """Return the case id that a short one stands for, and every other text unchanged."""
    if "#" not in text:
        return text
    from ..cases.errors import OpconformError  # noqa: PLC0415 - imports are late, so that --help is fast
    from ..cases.short import long_id  # noqa: PLC0415

    try:
        return long_id(text, folders)
    except OpconformError as error:
        raise click.BadParameter(str(error)) from None


def _case_argument(context: click.Context, _argument: click.Parameter, text: str) -> str:
    return _long_id(text, context.meta.get(_RESULTS, ()))


def _keep_results(context: click.Context, _option: click.Parameter, folders: tuple[Path, ...]) -> None:
    context.meta[_RESULTS] = folders


_RESULTS = "opconform.results"


def path_option(name: str, metavar: str, help_: str, **more: Any) -> Callable[[Command], Command]:
    """Return an option that takes a path; `exists`, `file_okay` and `dir_okay` say of what kind.

    `more` are other settings of an option.
    """
    kind = {key: more.pop(key) for key in ("exists", "file_okay", "dir_okay") if key in more}
    return click.option(name, metavar=metavar, type=click.Path(path_type=Path, **kind), help=help_, **more)


def number_option(
    name: str, help_: str, least: int = 1, metavar: str = "N", **more: Any
) -> Callable[[Command], Command]:
    """Return an option that takes a whole number from `least` on, or to `most`; its help shows a default."""
    kind = click.IntRange(least, more.pop("most", None))
    return click.option(name, metavar=metavar, type=kind, help=help_, show_default="default" in more, **more)


SELECT = click.option(
    "--select",
    "globs",
    metavar="GLOB",
    multiple=True,
    callback=lambda _context, _option, globs: tuple(map(_long_id, globs)),
    help="Case ids, long or short, such as 'onnx/Mean-*/float16/*', or with one slash operator versions, such as "
    "'onnx/ReduceMean-13' or 'onnx/*Mean-*'. Repeatable.",
)
CASE_ID = click.argument("case_id", metavar="CASE_ID", callback=_case_argument)
RESULTS = path_option(
    "--results",
    "DIR",
    "A results folder in which to look for a short CASE_ID that the default suite does not have. Repeatable.",
    exists=True,
    file_okay=False,
    multiple=True,
    is_eager=True,  # CASE_ID needs it
    expose_value=False,
    callback=_keep_results,
)
STRENGTH = click.option(
    "--strength", metavar="T", default="2", show_default=True, help="Strength of the covering array, or full."
)
DRAWS = number_option("--draws", "Number of draws of each random fill.", default=1)
SEED = number_option("--seed", "Seed of all random inputs.", least=0, default=0)
SUITE = click.option(
    "--suite", metavar="NAME", help="A named list of cases in place of the plan, such as smoke. --select narrows it."
)
SPECS = path_option("--specs", "DIR", "Use this folder of spec files.", exists=True, file_okay=False)
JOBS = number_option("--jobs", "Worker processes.  [default: number of cores]")
MEMORY = number_option("--memory", "Memory limit of a worker process, in MiB.", least=64, metavar="MIB")
PYTHON = path_option(
    "--python", "PATH", "An interpreter for built-in backends that has the library and NumPy, from Python 3.9 on."
)
REQUIRE = click.option(
    "--require", "requires", metavar="SILENCE=OPTION", multiple=True, help="Fail every other answer to a silence."
)
QUIET = click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
PARTIAL = click.option("--partial", is_flag=True, help="Accept missing or unfinished shards.")
FOLDERS = click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))


def sections(command: Command) -> Command:
    """Add the options that show parts of a summary in full to a command."""
    for option in (
        click.option("--verbose", "-v", is_flag=True, help="Show all of it: --kinds, --operators and --statistics."),
        click.option("--statistics", is_flag=True, help="Show silences, accuracy, and the arithmetic of each backend."),
        click.option("--operators", is_flag=True, help="Show figures of each operator version and type."),
        click.option("--kinds", is_flag=True, help="Show every kind of failure, with messages and a first case."),
    ):
        command = option(command)
    return command


def pop_sections(options: dict[str, Any]) -> frozenset[Any]:
    """Remove the options that `sections` adds from `options`, and return the sections to show."""
    names = ("kinds", "operators", "statistics")
    wanted = {name for name in names if options.pop(name)}
    return frozenset(names if options.pop("verbose") else wanted)


def seconds_option(name: str, default: float, help_: str) -> Callable[[Command], Command]:
    """Return an option that takes a number of seconds, above 0 and finite."""
    kind = click.FloatRange(0.001)
    return click.option(name, metavar="S", type=kind, default=default, show_default=True, callback=_finite, help=help_)


def timeout_of(what: str) -> Callable[[Command], Command]:
    """Return the option with the time limit of a case that is run."""
    help_ = f"Time limit of {what} in seconds; preparing its program may take three times as long."
    return seconds_option("--timeout", 10.0, help_)


def planned(command: Command) -> Command:
    """Add the options that select the cases to a command."""
    for option in (SUITE, SEED, DRAWS, STRENGTH, SELECT):
        command = option(command)
    return command


def _finite(_context: click.Context, _option: click.Parameter, value: float) -> float:
    """Return a finite number: a range check accepts NaN and infinity."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds.")
    return value


class Examples(click.Command):
    """A command whose help ends with examples, one per line."""

    def __init__(self, *args: Any, examples: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self._examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples unchanged."""
        if self._examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self._examples.splitlines()))
        super().format_epilog(ctx, formatter)


def command(
    examples: str, *, name: str | None = None, group: click.Group | None = None
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Return a decorator that makes a command, which exits with the function's return value.

    `name` is the function's if it is left out. A user error is printed in one line, and the command exits with 2.
    """

    def made(function: Callable[..., int | None]) -> click.Command:
        @wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> None:
            from ..cases.errors import OpconformError  # noqa: PLC0415 - imports are late, so that --help is fast
            from ..cases.runner import NotInstalled  # noqa: PLC0415

            try:
                code = function(*args, **kwargs)
            except (OpconformError, NotInstalled) as error:
                click.echo(f"opconform: {error}", err=True)
                code = 2
            except BrokenPipeError:  # `| head` has read enough
                code = 0
            sys.exit(code or 0)

        return (group or click).command(name, cls=Examples, examples=examples)(guarded)

    return made


def selection_of(options: dict[str, Any]) -> Any:
    """Remove the options that select cases from `options`, and return the selection."""
    from ..cases.ids import Selection, strength_of  # noqa: PLC0415

    strength = strength_of(options.pop("strength"))
    drawn = options.pop("draws", 1), options.pop("seed", 0)
    return Selection(tuple(options.pop("globs")), strength, *drawn, suite=options.pop("suite", None))


def printed(lines: Iterable[str], code: int = 0) -> int:
    """Print lines, and return the exit code."""
    for line in lines:
        click.echo(line)
    return code


def printed_each(lines: Iterable[tuple[str, bool]]) -> int:
    """Print lines, and return the number of those that report something wrong."""
    wrong = 0
    for line, is_wrong in lines:
        click.echo(line)
        wrong += is_wrong
    return wrong

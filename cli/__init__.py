"""The command line: the group of all commands. Commands are declared here, and each has a module of its own."""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from . import commands, run


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Treat a termination signal and a closed terminal as an interruption, unless the signal is ignored."""
    ends = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    main_thread = threading.current_thread() is threading.main_thread()
    taken = [number for number in ends if main_thread and signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


_EXHAUSTED = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN})
_LEAST_ADDRESSES = 256 << 20
_LONGEST = 500


def failed_unexpectedly(error: Exception) -> int:
    """Tell that something failed that no command expects, and return 3: 1 means non-conformant and nothing else."""
    failed = 3
    if os.environ.get("OPCONFORM_TRACEBACK"):
        traceback.print_exception(error)
        return failed
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _EXHAUSTED):
        message = f"this machine, or a limit such as `ulimit`, allows no more: {str(error) or type(error).__name__}"
    elif isinstance(error, OSError):
        message = str(error)
    else:
        at = traceback.extract_tb(error.__traceback__)[-1:]
        origin = f" ({Path(at[0].filename).name}:{at[0].lineno})" if at else ""
        words = " ".join(str(error)[:_LONGEST].split())
        message = (
            f"failed unexpectedly: {type(error).__name__}: {words}{origin}\n"
            "  if a file that it reads is damaged, restore it; if none is, this is a mistake of opconform: report it\n"
            "  to the project, with the output of the same command under OPCONFORM_TRACEBACK=1"
        )
    with suppress(OSError, MemoryError):
        click.echo(f"opconform: {message}", err=True)
    return failed


def _check_address_space() -> None:
    """Exit with 3 if `ulimit -v` leaves too little to import NumPy, whose libraries would end the process with 1."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread takes address space
    if limit < _LEAST_ADDRESSES:
        problem = f"is {limit >> 20} MiB; at least {_LEAST_ADDRESSES >> 20} are needed"
        click.echo(f"opconform: the limit of address space (`ulimit -v`) {problem}", err=True)
        sys.exit(3)


class _InOrder(click.Group):
    """A group whose help lists its commands in the order in which they were added."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the commands' names."""
        return list(self.commands)


class _Interruptible(_InOrder):
    """A group whose commands exit with 130 when interrupted; click's own code would mean non-conformant.

    If standard output cannot be written they exit with 2; characters that its encoding lacks are escaped. What no
    command expects exits with 3.
    """

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            try:
                return super().main(*args, **kwargs)
            finally:
                if sys.stdout is not None:  # a process may be started without one
                    sys.stdout.flush()
        except OSError as error:
            if error.filename is not None or error.errno in _EXHAUSTED:
                sys.exit(failed_unexpectedly(error))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python fails again while it exits
            if isinstance(error, BrokenPipeError):  # `| head` has read enough
                sys.exit(0)
            with suppress(OSError):
                click.echo(f"opconform: standard output cannot be written: {error.strerror}", err=True)
            sys.exit(2)
        except Exception as error:
            sys.exit(failed_unexpectedly(error))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that the arguments name. Raises UsageError, which names a maintainers' command in full."""
        if args and args[0] not in self.commands and args[0] in dev.commands:
            ctx.fail(f"no such command {args[0]!r}; expected `{ctx.command_path} dev {args[0]}`")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        _check_address_space()
        try:
            with _ended_in_order():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("opconform: interrupted", err=True)
            sys.exit(130)


@click.group(cls=_Interruptible, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="opconform")
def main() -> None:
    """Check implementations of tensor operators against the standards, version by version."""
    atexit.register(_end_fast)


def _end_fast() -> None:
    """Keep the garbage collector from visiting everything again while the process exits."""
    if "duckdb" not in sys.modules:  # its binding reports whatever is left then on stderr
        gc.freeze()


@click.group(cls=_InOrder)
def dev() -> None:
    """Maintain the suite itself: spec files, the lock, wrong implementations, others' test data."""


_COMMANDS = (
    (run.run, "Run the suite against backends."),
    (run.list_, "List operator versions, cases or backends."),
    (run.show, "Show a case or an operator version."),
    (run.claims, "Write what a backend supports, as a profile."),
    (run.minimise, "Shrink a case that fails."),
    (run.bisect, "Find the release in which a case began to fail."),
    (commands.audit_model, "Judge each node of a model."),
    (commands.can, "Say which nodes of a model a backend computes rightly."),
    (commands.check_runner, "Check a program against the process protocol."),
    (commands.report, "Print the results of runs, or make their site."),
    (commands.compare, "Show what changed between two runs."),
    (commands.history, "Keep the results of many runs."),
    (commands.finding, "Write reports for the makers of backends."),
    (commands.submit, "Pack a run into one archive."),
    (commands.verify, "Check a corpus or a submission."),
    (commands.rejudge, "Judge a run again, with this release."),
    (commands.export, "Write cases to files for other languages."),
    (commands.corpus_diff, "Compare two corpora."),
    (commands.diff, "Compare two operator versions."),
    (dev, "Maintain the suite itself."),
    (commands.completion, "Make the shell complete commands."),
)
_MAINTAINERS = (
    (commands.audit, "Compare spec files with a standard, and show coverage."),
    (commands.scaffold, "Begin a spec file from the standard's schema."),
    (commands.page, "Write a page of the docs about operators."),
    (commands.bindings, "Compare a standard's operations with ONNX's."),
    (commands.lock, "Write or check the digests of all cases."),
    (commands.known_results, "Write the results that ship with a release."),
    (commands.mutants, "Test the suite on wrong and right implementations."),
    (commands.meaningless, "List the cases that admit a meaningless answer."),
    (commands.judge_data, "Judge expected outputs of ONNX's test data."),
    (commands.compare_data, "Compare test data with the suite."),
)

for _group, _members in ((main, _COMMANDS), (dev, _MAINTAINERS)):
    for _command, _summary in _members:
        _command.short_help = _summary
        _group.add_command(_command)

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
        told = f"this machine, or a limit such as `ulimit`, allows no more: {str(error) or type(error).__name__}"
    elif isinstance(error, OSError):
        told = str(error)
    else:
        at = traceback.extract_tb(error.__traceback__)[-1:]
        place = f" ({Path(at[0].filename).name}:{at[0].lineno})" if at else ""
        words = " ".join(str(error)[:_LONGEST].split())
        told = (
            f"failed unexpectedly: {type(error).__name__}: {words}{place}\n"
            "  if a file that it reads is damaged, restore it; if none is, this is a mistake of opconform: report it\n"
            "  to the project, with the output of the same command under OPCONFORM_TRACEBACK=1"
        )
    with suppress(OSError, MemoryError):
        click.echo(f"opconform: {told}", err=True)
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
        told = f"is {limit >> 20} MiB; at least {_LEAST_ADDRESSES >> 20} are needed"
        click.echo(f"opconform: the limit of address space (`ulimit -v`) {told}", err=True)
        sys.exit(3)


class _Interruptible(click.Group):
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


_COMMANDS = (
    run.run,
    run.list_,
    run.show,
    commands.check_runner,
    run.claims,
    run.minimise,
    run.bisect,
    commands.audit,
    commands.diff,
    commands.page,
    commands.report,
    commands.finding,
    commands.rejudge,
    commands.export,
    commands.submit,
    commands.compare,
    commands.history,
    commands.verify,
    commands.corpus_diff,
    commands.lock,
    commands.scaffold,
    commands.judge_data,
    commands.compare_data,
    commands.mutants,
    commands.meaningless,
    commands.completion,
)

for _command in _COMMANDS:
    main.add_command(_command)

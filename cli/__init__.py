"""The command line: the group of all commands; each is declared here and does its work in a module of its own."""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Any

import click

from . import commands, run


class _Interruptible(click.Group):
    """A group whose commands end with 130 when interrupted, where click's own code would say non-conformant."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
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
    """Keep Python from looking through all that was read, again and again, while the process ends."""
    if "duckdb" not in sys.modules:  # whose binding reports on stderr all that is then left
        gc.freeze()


_COMMANDS = (
    run.run,
    run.list_,
    run.show,
    commands.check_runner,
    run.minimise,
    commands.audit,
    commands.diff,
    commands.page,
    commands.report,
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
    commands.completion,
)

for _command in _COMMANDS:
    main.add_command(_command)

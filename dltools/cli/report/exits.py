"""The exit codes that dl-report can give, and their meanings."""

from dltools.cli.exits import Exit, table

EXITS = table(
    {
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "An input is malformed, or shows no job.",
        Exit.UNAVAILABLE: "Pictures need matplotlib, which is not installed.",
        Exit.CONFIG: "The baseline or the kind of picture is unknown, a value is out of range, or "
        "there is nothing to draw.",
    }
)

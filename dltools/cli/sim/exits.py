"""The exit codes that dl-sim can give, and their meanings."""

from dltools.cli.exits import Exit, table

EXITS = table(
    {
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "The workload, recording or trace is malformed.",
        Exit.CONFIG: "A policy, parameter or mode is unknown, or a value is out of range.",
    }
)

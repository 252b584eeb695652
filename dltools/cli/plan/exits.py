"""The exit codes that dl-plan can give, and their meanings."""

from dltools.cli.exits import Exit, table

EXITS = table(
    {
        Exit.OK: "Success, also when the plan is empty.",
        Exit.PARTIAL: "Of several inputs one could not be read to its end; the plans lack it.",
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "The input or the state is empty, cut off, malformed or of another version; "
        "or the file of --state holds no state.",
        Exit.CANT_CREATE: "The file of --save-state cannot be created.",
        Exit.CONFIG: "A policy, parameter or mode is unknown, a value is out of range, or the "
        "targets file is wrong.",
    }
)

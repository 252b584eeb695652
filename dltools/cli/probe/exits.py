"""The exit codes that dl-probe can give, and their meanings."""

from dltools.cli.exits import Exit, table

EXITS = table(
    {
        Exit.OK: "Success, also when no container runs.",
        Exit.PARTIAL: "Of several hosts one did not answer: a sample lacks it.",
        Exit.DATA: "A log or a recording is malformed.",
        Exit.UNAVAILABLE: "No engine answers.",
        Exit.RETRY: "Another --compact works on the same directory: try again.",
        Exit.PERMISSION: "Permission denied: join the group docker, or be root.",
        Exit.CONFIG: "A setting is wrong, such as a pattern that is no regular expression or a "
        "DOCKER_HOST that is no address.",
    }
)

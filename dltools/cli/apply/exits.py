"""The exit codes that dl-apply can give, and their meanings."""

from dltools.cli.exits import Exit, table

EXITS = table(
    {
        Exit.PARTIAL: "An action failed.",
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "The plan is empty, cut off or malformed, or the journal is damaged.",
        Exit.UNAVAILABLE: "No engine answers.",
        Exit.CANT_CREATE: "The journal or the lock cannot be created.",
        Exit.RETRY: "Another dl-apply is running, or the last plan was stale: try again.",
        Exit.PERMISSION: "Permission denied: be root, or join the group docker; or the state "
        "belongs to another user.",
        Exit.CONFIG: "A setting is wrong, such as a DOCKER_HOST that is no address.",
        Exit.TERMINATED: "Ended by SIGTERM or SIGHUP.",
    }
)

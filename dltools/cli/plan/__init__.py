"""dl-plan: what it does, and the exit codes that it can give."""

from __future__ import annotations

from dltools.cli import exits, options
from dltools.cli.exits import Exit, exit_codes
from dltools.cli.plan.request import Request


def plan(request: Request) -> None:
    """Decide from observations what each container should get.

    Reads the output of dl-probe in any of its formats, and prints plans as JSON Lines, or as a
    table on a terminal. A recording gives one plan, for its last sample; an Arrow stream gives one
    plan per sample as it arrives. Several inputs are merged by time. The same input and parameters
    always give the same plan.
    """
    if request.lists_policies:
        from dltools.cli.policies import print_policies

        print_policies()
        return
    from dltools.cli.plan.run import run_request

    run_request(request)


app = options.app(plan, Request)


def main() -> None:
    """Run dl-plan."""
    exits.run(app)


EXITS = exit_codes(
    {
        Exit.OK: "Success, also when the plan is empty.",
        Exit.PARTIAL: "One of several inputs could not be read to its end; the plans lack it.",
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "The input or the state is empty, cut off, malformed or of another version; "
        "or the --state file holds no state.",
        Exit.CANT_CREATE: "The --save-state file cannot be created.",
        Exit.CONFIG: "A policy, parameter or mode is unknown, a value is out of range, or the "
        "targets file is wrong.",
    }
)

"""dl-sim: what it does, and the exit codes that it can give."""

from __future__ import annotations

from dltools.cli import exits, options
from dltools.cli.exits import Exit, exit_codes
from dltools.cli.sim.request import Request


def sim(request: Request) -> None:
    """Simulate jobs on hosts in virtual time, with the policies and settings of dl-plan.

    Reads a workload file and prints one row per policy: makespan, completion times, times to
    target, satisfied models. The same workload and seed always give the same result.
    """
    from dltools.cli.sim.run import run_request

    run_request(request)


app = options.app(sim, Request)


def main() -> None:
    """Run dl-sim."""
    exits.run(app)


EXITS = exit_codes(
    {
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "The workload or recording is malformed.",
        Exit.CONFIG: "A policy, parameter or mode is unknown, or a value is out of range.",
    }
)

"""dl-probe: what it does, and the exit codes that it can give."""

from __future__ import annotations

import sys
from dataclasses import replace

from dltools.cli import exits, options
from dltools.cli.exits import Exit, exit_codes
from dltools.cli.probe.request import Request


def probe(request: Request) -> None:
    """Measure the running containers of Docker hosts: CPU, memory, GPU, limits, progress.

    Prints observations, which dl-plan reads: Parquet with one row per host, container, progress
    point and event; with -i an Arrow stream with one batch per sample. Given LOG, reads the
    progress in saved logs instead.
    """
    _leave_numpy_out()
    from dltools.cli.formats import choose_observation_format
    from dltools.cli.probe.run import run_request

    if not request.is_diagnosis:
        asked, output = request.format, request.output
        format_ = choose_observation_format(asked, output, is_stream=request.is_stream)
        request = replace(request, format=format_)
    run_request(request)


def _leave_numpy_out() -> None:
    """Let Arrow do without numpy and pandas: it imports them where they are installed, which takes
    0.2 s, and dl-probe needs neither."""
    sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]


app = options.app(probe, Request)


def main() -> None:
    """Run dl-probe."""
    exits.run(app)


EXITS = exit_codes(
    {
        Exit.OK: "Success, also when no container runs.",
        Exit.PARTIAL: "One of several hosts did not answer: a sample lacks it. Or --doctor warns.",
        Exit.DATA: "A log or a recording is malformed.",
        Exit.UNAVAILABLE: "No engine answers, or --doctor has found a failure.",
        Exit.PERMISSION: "Permission denied: join the group docker, or be root.",
        Exit.CONFIG: "A setting is wrong, such as a pattern that is not a regular expression or a "
        "DOCKER_HOST that is not an address.",
    }
)

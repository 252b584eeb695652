"""dl-apply: what it does, and the exit codes that it can give."""

from __future__ import annotations

from dataclasses import replace

from dltools.cli import exits, options
from dltools.cli.apply.request import Request
from dltools.cli.exits import Exit, exit_codes


def apply(request: Request) -> None:
    """Apply the plans that dl-plan prints to the containers of Docker hosts.

    For each action, dl-apply checks the container, writes its settings to a journal, changes them,
    reads them back, and prints the result. Settings that already match the plan are left alone.
    Models that have met their targets are copied into --deliver-dir.
    """
    from dltools.cli.apply.run import run_request
    from dltools.cli.apply.service import service_asked

    service = service_asked(request)
    if service is None:
        run_request(request)
    elif request.is_dry_run:
        print(service.text(), end="")
    elif request.installs_service:
        service.install()
    elif service.stop():
        run_request(replace(request, state_directory=service.home))
        service.forget()


app = options.app(apply, Request)


def main() -> None:
    """Run dl-apply."""
    exits.run(app)


EXITS = exit_codes(
    {
        Exit.PARTIAL: "An action failed.",
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "The plan is empty, cut off or malformed, or the journal is damaged.",
        Exit.UNAVAILABLE: "No engine answers, or no systemd runs.",
        Exit.CANT_CREATE: "The journal or the lock cannot be created.",
        Exit.RETRY: "Another dl-apply is running, or the last plan was stale: try again.",
        Exit.PERMISSION: "Permission denied: be root, or join the group docker; or the state "
        "belongs to another user.",
        Exit.CONFIG: "A setting is wrong, such as a DOCKER_HOST that is not an address; or "
        "--install-service did not write the unit.",
        Exit.TERMINATED: "Ended by SIGTERM or SIGHUP.",
    }
)

"""The command line of dl-apply: its options, and the exit codes that it can give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dltools.cli import options
from dltools.cli.exits import Exit, exit_codes, guarded, run
from dltools.cli.formats import RecordFormat, RecordFormatOption
from dltools.cli.options import (
    Contexts,
    Engines,
    Hosts,
    Input,
    Patience,
    Quiet,
    StateDir,
    Swarm,
    Verbose,
    Version,
)

if TYPE_CHECKING:
    from dltools.apply.refusals import Rules


@guarded
def apply(
    context: typer.Context,
    input_: Input = "-",
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Check everything, but change nothing.")
    ] = False,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="With --dry-run: ask no engine, and assume that each container is as the plan "
            "says.",
            rich_help_panel=options.EXPERT,
        ),
    ] = False,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Restore every container that dl-apply has changed, and exit."),
    ] = False,
    stop: Annotated[
        bool,
        typer.Option(
            "--stop", help="With --undo: first end the dl-apply that is running, as SIGTERM does."
        ),
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Print every container that dl-apply has changed (settings before and now, since "
            "when, by which run) and every job that is being moved, and exit.",
        ),
    ] = False,
    release: Annotated[
        list[str] | None,
        typer.Option(
            "--release",
            metavar="NAME",
            help="Put a container's settings back, and leave it alone from now on, whatever plans "
            "say; with --undo: no longer. Repeatable.",
        ),
    ] = None,
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Print what was changed, when, why, by which run and how that ended, the newest "
            "first, and exit; FILE is then a container's name or id.",
        ),
    ] = False,
    restore: Annotated[
        bool,
        typer.Option(
            "--restore",
            help="Restore what this run changed when the input ends, or on SIGTERM, SIGHUP or "
            "Ctrl-C.",
        ),
    ] = False,
    install_service: Annotated[
        bool,
        typer.Option(
            "--install-service",
            help="Run the pipe as a service of systemd, now and at each boot, which puts "
            "everything back when it stops; with --dry-run print its unit.",
        ),
    ] = False,
    remove_service: Annotated[
        bool,
        typer.Option(
            "--remove-service", help="Stop that service, put everything back, and remove it."
        ),
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Scheduling policy of the service, flowcon by default.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY[=VALUE]", help="Change only containers with this label. Repeatable."
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REGEX",
            help="Change only containers whose name matches. Repeatable: one match is enough.",
        ),
    ] = None,
    max_changes: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Change at most N containers of a host in each plan.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    max_age: Annotated[
        float | None,
        typer.Option(
            parser=options.duration,
            metavar="TIME",
            help="Refuse plans whose newest observation is older than this.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    hold: Annotated[
        float | None,
        typer.Option(
            parser=options.duration,
            metavar="TIME",
            help="Let the containers of a single plan take turns this long; by default until none "
            "waits for its turn. The turns of a stream end with it.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    host: Hosts = None,
    context_: Contexts = None,
    swarm: Swarm = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also change settings that somebody else has changed, and move jobs that have no "
            "checkpoint: they begin anew elsewhere.",
        ),
    ] = False,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="PID",
            envvar="DLTOOLS_BESIDE",
            help="Write although another dl-apply writes to the same engine: process PID, or any.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    deliver_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar="DLTOOLS_DELIVER_DIR",
            help="Deliver models into DIR, a folder for each; by default none is delivered.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    deliver_hook: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this command, without a shell, for each model delivered, with its folder as "
            "the last argument; it is killed after ten minutes.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    tell: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep in FILE, for all users to read, which containers wait, and until when.",
        ),
    ] = None,
    contact: Annotated[
        str, typer.Option(metavar="TEXT", help="Whom to ask, as the file of --tell says.")
    ] = "",
    lease: Annotated[
        float | None,
        typer.Option(
            parser=options.duration,
            metavar="TIME",
            help="Undo what this run has set when no plan has come for this long, 0s for never; by "
            "default three intervals between the plans of a stream or the runs of dl-plan --state, "
            "at least 10 s.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    patience: Patience = "60s",  # type: ignore[assignment]
    state_dir: StateDir = None,
    format_: RecordFormatOption = RecordFormat.AUTO,
    verbose: Verbose = False,
    quiet: Quiet = False,  # noqa: ARG001
    version: Version = False,  # noqa: ARG001
) -> None:
    """Apply the plans that dl-plan prints to the containers of Docker hosts.

    For each action, dl-apply checks the container, writes its settings to a journal, changes them,
    reads them back, and prints the result. Settings that are as wanted are left alone. Models that
    have met their targets are copied into --deliver-dir.
    """
    from dltools.cli.apply.context import Request, beside_process, choose_task, hook_command
    from dltools.cli.apply.run import run_request
    from dltools.cli.apply.service import service_asked

    service = service_asked(
        installs=install_service,
        removes=remove_service,
        policy=policy,
        labels=label or (),
        contact=contact,
        is_other=any((undo, stop, tell, status, history, release, restore))
        or any((name, host, context_, swarm, state_dir)),
    )
    if service is not None and not service.begin(installs=install_service, is_dry_run=dry_run):
        return
    request = Request(
        task=choose_task(
            is_undo=undo or remove_service,
            is_status=status,
            is_history=history,
            is_release=bool(release),
        ),
        engines=Engines(tuple(host or ()), tuple(context_ or ()), is_swarm=swarm),
        input=input_,
        is_dry_run=dry_run,
        is_offline=offline,
        restores=restore,
        hold_s=hold,
        lease_s=lease,
        deliver_directory=deliver_dir,
        deliver_hook=hook_command(deliver_hook),
        patience_s=patience,
        state_directory=state_dir if service is None else service.home,
        format=format_,
        is_verbose=verbose,
        rules=_rules(label or (), name or (), max_changes, max_age, is_forced=force),
        beside=None if beside is None else beside_process(beside),
        ends_service=service is not None,
        stops=stop,
        tell=tell,
        contact=contact,
        releases=tuple(release or ()),
        ends_release=undo,
    )
    run_request(request, context)
    if service is not None:
        service.forget()


def _rules(
    labels: Sequence[str],
    names: Sequence[str],
    max_changes: int | None,
    max_age_s: float | None,
    *,
    is_forced: bool,
) -> Rules:
    """Return what the options say may be changed. Raises `ConfigError` for a wrong expression."""
    from dltools.apply.refusals import Rules
    from dltools.probe.progress.pattern import compiled

    patterns = [compiled(one, "--name") for one in names]
    return Rules(tuple(labels), patterns, max_changes, max_age_s, is_forced=is_forced)


app = options.app(apply)


def main() -> None:
    """Run dl-apply."""
    run(app)


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
        Exit.CONFIG: "A setting is wrong, such as a DOCKER_HOST that is no address; or the unit is "
        "not one of --install-service.",
        Exit.TERMINATED: "Ended by SIGTERM or SIGHUP.",
    }
)

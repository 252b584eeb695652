"""What dl-apply is asked for: options that contradict each other are refused."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from dltools.apply.refusals import Rules
from dltools.cli.apply.context import Request, Task, choose_task, hook_command
from dltools.cli.formats import RecordFormat
from dltools.cli.options import Engines


def request(**changes: Any) -> Request:
    given: dict[str, Any] = {
        "task": Task.APPLY, "engines": Engines(), "input": "-", "is_dry_run": False,
        "is_offline": False, "restores": False, "hold_s": None, "lease_s": None,
        "patience_s": 60.0, "state_directory": None, "format": RecordFormat.AUTO,
        "is_verbose": False,
        "deliver_directory": None, "deliver_hook": (),
        "rules": Rules(), "beside": None,
    }  # fmt: skip
    return Request(**given | changes)


def test_the_task_is_chosen_by_options() -> None:
    assert choose_task(is_undo=False, is_status=False) is Task.APPLY
    assert choose_task(is_undo=True, is_status=False) is Task.UNDO
    assert choose_task(is_undo=False, is_status=True) is Task.SHOW_STATUS
    assert choose_task(is_undo=True, is_status=False, is_release=True) is Task.RELEASE
    with pytest.raises(
        typer.BadParameter, match="only one of --undo, --restore, --status, --history and --release"
    ):
        choose_task(is_undo=True, is_status=True)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"is_offline": True}, "--offline needs --dry-run"),
        ({"deliver_hook": ("cp",)}, "--deliver-hook needs --deliver-dir"),
        (
            {"is_offline": True, "is_dry_run": True, "engines": Engines(["tcp://h:1"])},
            "--offline asks no engine",
        ),
        ({"task": Task.UNDO, "input": "plan.jsonl"}, "plan.jsonl: --undo takes no plan"),
        (
            {"task": Task.UNDO, "restores": True},
            "only one of --undo, --restore, --status, --history and --release",
        ),
        ({"task": Task.SHOW_STATUS, "restores": True}, "only one of"),
        ({"stops": True}, "--stop needs --undo"),
        ({"releases": ("job",), "is_dry_run": True}, "--release takes no plan"),
        ({"task": Task.UNDO, "stops": True, "is_dry_run": True}, "--stop ends a run"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(
    changes: dict[str, Any], fault: str
) -> None:
    with pytest.raises(typer.BadParameter, match=fault):
        request(**changes)


def test_a_dry_run_may_be_offline() -> None:
    assert request(is_dry_run=True, is_offline=True).is_offline


def test_a_hook_is_split_into_words_as_a_shell_would() -> None:
    assert hook_command("scp -r 'my host:/models dir'") == ("scp", "-r", "my host:/models dir")
    assert hook_command(None) == ()


@pytest.mark.parametrize("text", ["", " ", "a 'b"])
def test_a_hook_that_names_no_command_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"^--deliver-hook "):
        hook_command(text)

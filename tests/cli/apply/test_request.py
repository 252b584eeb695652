"""What dl-apply is asked for: options that contradict each other are refused."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from dltools.cli.apply.request import Request, Task, choose_task
from dltools.cli.formats import RecordFormat


def request(**changes: Any) -> Request:
    given: dict[str, Any] = {
        "task": Task.APPLY, "input": "-", "is_dry_run": False, "is_offline": False,
        "restores": False, "hold_s": None, "patience_s": 60.0, "state_directory": None,
        "format": RecordFormat.AUTO, "is_verbose": False,
    }  # fmt: skip
    return Request(**given | changes)


def test_the_task_is_chosen_by_options() -> None:
    assert choose_task(is_undo=False, is_status=False) is Task.APPLY
    assert choose_task(is_undo=True, is_status=False) is Task.UNDO
    assert choose_task(is_undo=False, is_status=True) is Task.SHOW_STATUS
    with pytest.raises(typer.BadParameter, match="only one of --undo, --restore and --status"):
        choose_task(is_undo=True, is_status=True)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"is_offline": True}, "--offline needs --dry-run"),
        ({"task": Task.UNDO, "input": "plan.jsonl"}, "plan.jsonl: --undo takes no plan"),
        ({"task": Task.UNDO, "restores": True}, "only one of --undo, --restore and --status"),
        ({"task": Task.SHOW_STATUS, "restores": True}, "only one of"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(
    changes: dict[str, Any], fault: str
) -> None:
    with pytest.raises(typer.BadParameter, match=fault):
        request(**changes)


def test_a_dry_run_may_be_offline() -> None:
    assert request(is_dry_run=True, is_offline=True).is_offline

"""What dl-apply is asked for: options that contradict each other are refused."""

from pathlib import Path

import pytest
import typer

from dltools.cli.apply.request import Operation, Request


def test_the_task_is_chosen_by_options() -> None:
    assert Request().operation is Operation.APPLY
    assert Request(undoes=True).operation is Operation.UNDO
    assert Request(shows_status=True).operation is Operation.SHOW_STATUS
    assert Request(undoes=True, releases=["job"]).operation is Operation.RELEASE
    with pytest.raises(
        typer.BadParameter, match="only one of --undo, --restore, --status, --history and --release"
    ):
        Request(undoes=True, shows_status=True)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"is_offline": True}, "--offline needs --dry-run"),
        (
            {"is_offline": True, "is_dry_run": True, "hosts": ["tcp://h:1"]},
            "--offline asks no engine",
        ),
        ({"undoes": True, "input": "plan.jsonl"}, "plan.jsonl: --undo takes no plan"),
        (
            {"undoes": True, "restores": True},
            "only one of --undo, --restore, --status, --history and --release",
        ),
        ({"stops": True}, "--stop needs --undo"),
        ({"releases": ("job",), "is_dry_run": True}, "--release takes no plan"),
        ({"undoes": True, "stops": True, "is_dry_run": True}, "--stop ends a run"),
        ({"undoes": True, "names": ["job"]}, "--name and --tell are for a run that applies plans"),
        ({"undoes": True, "labels": ["a=b"]}, "--label, --max-changes"),
        ({"shows_status": True, "names": ["job"]}, "--label, --max-changes"),
        ({"undoes": True, "max_changes": 0}, "--max-changes"),
        ({"shows_history": True, "tell": Path("x")}, "--tell"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(changes, fault) -> None:
    with pytest.raises(typer.BadParameter, match=fault):
        Request(**changes)

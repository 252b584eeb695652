"""What is said where the journal is empty."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dltools.cli.apply import printing
from dltools.cli.apply.printing import nothing_to_undo
from dltools.engine import state_folder


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what is said to a user of a machine on which nothing is known."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(state_folder, "SYSTEM", tmp_path)
    for name in ("paused_elsewhere", "journal_entries"):
        monkeypatch.setattr(printing, name, lambda *_: [])

    def ask(user: int) -> str:
        monkeypatch.setattr("os.geteuid", lambda: user)
        return nothing_to_undo(cast(Any, SimpleNamespace(host="vm")), [Path("/home/ada/state")])

    return ask


def test_a_user_other_than_root_learns_how_to_see_what_root_has_changed(said) -> None:
    line = "nothing to undo on vm: no entry in /home/ada/state/journal"
    more = "; for what root has changed, as by the service: sudo dl-apply --status"
    assert (said(0), said(1000)) == (line, line + more)


def test_a_paused_container_is_named(said, monkeypatch) -> None:
    monkeypatch.setattr(printing, "paused_elsewhere", lambda *_: ["job"])
    assert said(0).endswith("; job: paused, not by dl-apply of this state directory")

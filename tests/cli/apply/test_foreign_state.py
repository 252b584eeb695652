"""dl-apply with the state of another user: refused in one line, and nothing is changed."""

import json
import os
from pathlib import Path

import pytest
from helpers.fake_engine import ID, NAME, FakeEngine, plan
from helpers.other_users import STRANGER, needs_root
from helpers.tools import Tools, complaint

from dltools.cli.exits import Exit

PLAN = plan({"cpus": 0.5})


def give_away(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER)


def move_behind_a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.fixture
def home(tool: Tools, fake_engine: FakeEngine, tmp_path: Path) -> Path:
    del fake_engine
    made = tmp_path / "own"
    done = tool("dl-apply", "--state-dir", made, input=PLAN)
    assert (done.returncode, done.stderr) == (0, b"")
    return made


@needs_root
@pytest.mark.parametrize("arguments", [("--undo",), ()], ids=["undo", "apply"])
@pytest.mark.parametrize(
    ("where", "spoil", "said"),
    [
        ("", lambda path: path.chmod(0o1777), "other users can write to it"),
        ("journal", move_behind_a_link, "a link, which is not followed"),
        (f"journal/{ID}.json", give_away, f"belongs to another user ({STRANGER})"),
    ],
)
def test_state_of_others_is_refused(tool, fake_engine, home, arguments, where, spoil, said) -> None:
    spoil(home / where)
    if not where:
        done = tool("dl-apply", "--state-dir", home, "--status")
        assert done.returncode == Exit.PERMISSION
    before = list(fake_engine.updates)
    given = b"" if arguments else PLAN.replace(b"0.5", b"0.7")
    done = tool("dl-apply", "--state-dir", home, *arguments, input=given)
    assert done.returncode == Exit.PERMISSION, done.stderr
    assert said in complaint(done.stderr)
    assert fake_engine.updates == before


@needs_root
def test_turns_that_another_user_has_noted_are_not_believed(tool, fake_engine, home) -> None:
    fake_engine.state = "paused"
    note = home / "rotation" / "x.json"
    note.parent.mkdir(exist_ok=True)
    note.write_text(json.dumps([fake_engine.host, ID, NAME]))
    give_away(note)
    done = tool("dl-apply", "--state-dir", home, "--undo")
    assert done.returncode == Exit.PERMISSION
    assert fake_engine.state == "paused"
    done = tool("dl-probe", "--state-dir", home)
    assert b"paused" not in done.stderr

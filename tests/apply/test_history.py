"""What was changed, when, by which run and why, and how it ended: a bounded log."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_engine import HOST, action, plan_of

from dltools.actions.plans import Op, Result, Status
from dltools.actions.settings import as_found
from dltools.apply import history
from dltools.apply.history import Change, History, read_history
from dltools.apply.refusals import FOREIGN
from dltools.engine.runs import ApplyRun

ENDED = ApplyRun(1 << 22, 1, "dl-apply --restore", "")
HERE = ApplyRun.of_this_process("dl-apply")


def result(id_: str, status: Status = Status.APPLIED, **after: Any) -> Result:
    before = as_found({"weight": 1024.0} if "weight" in after else {})
    return Result(1, status, id_, f"name-{id_}", before, as_found(after))


def changed(log: History, id_: str, reason: str = "why", **after: Any) -> None:
    """Note that a plan has changed a container."""
    op = Op.ROTATE if "turn_s" in after else Op.UPDATE
    plan = plan_of(action({}, op=op, container_id=id_, reason=reason))
    log.of_plan(plan, lambda on_result: on_result(result(id_, **after)))(lambda _: None)


def undone(log: History, id_: str, how: str, status: Status = Status.APPLIED) -> None:
    log.of_undo(lambda tell: tell(result(id_, status)), how)(lambda _: None)


def ends(home: Path) -> list[tuple[str, str]]:
    return [(one.container_id, one.how) for one in read_history(home)]


def test_a_change_says_what_when_why_and_by_which_run(tmp_path) -> None:
    changed(History(tmp_path, ENDED), "a", "2 of 3 in the queue", weight=10.0)
    (one,) = read_history(tmp_path)
    assert (one.container_id, one.container_name, one.host) == ("a", "name-a", HOST)
    assert (one.before, one.after) == ({"weight": 1024.0}, {"weight": 10.0})
    assert one.reason == "2 of 3 in the queue"
    assert (one.run.pid, one.run.command, one.run.policy) == (ENDED.pid, ENDED.command, "test")
    assert one.at.endswith("Z")
    assert (one.ended, one.how) == ("", "")


def test_how_changes_end(tmp_path) -> None:
    log = History(tmp_path, ENDED)
    for id_ in "abcdef":
        changed(log, id_, weight=10.0)
    changed(log, "a", weight=20.0)
    undone(log, "b", history.BY_RESTORE)
    log.note_undone([result("c", Status.UNCHANGED)], history.BY_LEASE)
    undone(log, "d", history.BY_UNDO, Status.FAILED)
    log.note_running("elsewhere", set())
    log.note_running(HOST, {"a", "d", "f"})
    skipped = Result(1, Status.SKIPPED, "f", "name-f", error=FOREIGN)
    for _ in range(5):  # each plan finds it so
        log.of_plan(plan_of(), lambda tell: tell(skipped))(lambda _: None)
    text = (tmp_path / "history" / history.NEWER).read_text()
    assert text.count(history.BY_OTHERS) == 1
    assert ends(tmp_path) == [
        ("a", ""),
        ("f", history.BY_OTHERS),
        ("e", history.BY_EXIT),
        ("d", ""),
        ("c", history.BY_LEASE),
        ("b", history.BY_RESTORE),
        ("a", history.BY_PLAN),
    ]
    assert all(bool(one.ended) == bool(one.how) for one in read_history(tmp_path))


def test_turns_are_one_change_however_often_plans_give_them(tmp_path) -> None:
    log = History(tmp_path, HERE)
    for turn_s in (2.0, 3.0, 4.0):
        changed(log, "a", group=0, turn_s=turn_s)
    changed(log, "b", weight=10.0)
    assert ends(tmp_path) == [("b", ""), ("a", history.BY_TURN)]


def test_turns_end_with_a_run_that_was_killed(tmp_path) -> None:
    changed(History(tmp_path, ENDED), "a", group=0, turn_s=2.0)
    assert ends(tmp_path) == [("a", history.BY_RESTORE)]


def test_turns_that_end_leave_a_weight_as_it_is(tmp_path) -> None:
    log = History(tmp_path, HERE)
    changed(log, "a", weight=10.0)
    changed(log, "a", group=0, turn_s=2.0)
    log.end_turns()
    assert ends(tmp_path) == [("a", history.BY_TURN), ("a", "")]


def test_a_dry_run_leaves_nothing(tmp_path) -> None:
    changed(History(None, HERE), "a", weight=10.0)
    assert list(tmp_path.iterdir()) == []
    assert list(read_history(tmp_path)) == []


def test_only_its_owner_can_read_it(tmp_path) -> None:
    changed(History(tmp_path, HERE), "a", weight=10.0)
    (file,) = (tmp_path / "history").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_its_size_is_bounded_and_the_newest_is_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(history, "LARGEST", 20_000)
    log = History(tmp_path, ENDED)
    for number in range(2000):
        changed(log, f"{number:064x}", os.urandom(20).hex(), weight=float(number))
    sizes = [one.stat().st_size for one in (tmp_path / "history").iterdir()]
    assert sum(sizes) < 41_000
    found = list(read_history(tmp_path))
    weights = [one.after["weight"] for one in found]
    assert weights == [float(number) for number in range(1999, 1999 - len(found), -1)]
    assert len(found) > 40
    assert {one.run.command for one in found} == {ENDED.command}


@pytest.mark.parametrize(
    "junk", [b'{"at":', b"\xff\x00\n", b"[]\n", b'"at"\n', b'{"at":1}\n', b"{" * 99999]
)
def test_what_is_damaged_is_passed_over(tmp_path, junk) -> None:
    changed(History(tmp_path, ENDED), "a", weight=10.0)
    with (tmp_path / "history" / history.NEWER).open("ab") as file:
        file.write(junk)
    changed(History(tmp_path, ENDED), "b", weight=10.0)
    assert [one.container_id for one in read_history(tmp_path)] == ["b", "a"]


def test_a_full_disk_ends_nothing(tmp_path, monkeypatch) -> None:
    def no_space(*_: object) -> int:
        raise OSError(28, "No space left on device")

    log = History(tmp_path, ENDED)
    with monkeypatch.context() as patched:
        patched.setattr(history.StateFolder, "append", no_space)
        changed(log, "a", weight=10.0)
    changed(log, "b", weight=10.0)
    assert [one.container_id for one in read_history(tmp_path)] == ["b"]


WRITES = """
import sys
from pathlib import Path
from apply.test_history import changed
from dltools.apply import history
from dltools.engine.runs import ApplyRun
history.LARGEST = 3000
log = history.History(Path(sys.argv[1]), ApplyRun(7, 1, "dl-apply"))
number = 0
while True:
    number += 1
    changed(log, f"{number:064x}", weight=float(number))
    print(number, flush=True)
"""


def test_kill_at_any_time_loses_one_line_at_most(tmp_path) -> None:
    tests = Path(__file__).parents[1]
    for lines in (1, 7, 40, 123):
        words = [sys.executable, "-c", WRITES, str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": f"{tests.parent}:{tests}"}
        with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None
            for _ in range(lines):
                written = process.stdout.readline()
            os.kill(process.pid, signal.SIGKILL)
            written = process.stdout.read().splitlines()[-1:] or [written]
        newest: Change = next(read_history(tmp_path))
        assert int(newest.after["weight"]) - int(written[0]) in (0, 1)

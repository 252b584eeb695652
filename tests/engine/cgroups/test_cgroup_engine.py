"""Cgroups as containers, on machines of version 1 and 2 that are made of files."""

import errno
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
from helpers.made_cgroups import V1, Machine, located

from dltools.apply.refusals import Rules
from dltools.engine import freezer, looked_events
from dltools.engine.cgroups.cgroup_engine import CgroupEngine
from dltools.engine.interface import Container, GoneError, RefusedError
from dltools.engine.limits import limit_writing
from dltools.engine.limits.cpu_limits import settings_in_force
from dltools.engine.limits.limit_writing import are_original
from dltools.engine.registry import host_address, open_engine
from dltools.errors import ConfigError
from dltools.notation.limits import Limits

VERSIONS = (V1, ())


@pytest.fixture(params=VERSIONS, ids=("v1", "v2"))
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    made = Machine(tmp_path, request.param)
    made.add("/jobs/a", 11)
    made.add("/jobs/b", 12)
    made.add("/jobs/empty")
    return made


def engine_of(machine: Machine, *patterns: str) -> CgroupEngine:
    return CgroupEngine(patterns or ("/jobs/*",), machine.root)


def names(engine: CgroupEngine) -> list[str]:
    return [one.name for one in engine.containers()]


def test_each_cgroup_with_processes_is_a_container(machine) -> None:
    engine = engine_of(machine)
    found = engine.containers()
    assert [(one.name, one.state) for one in found] == [(f"jobs/{n}", "running") for n in "ab"]
    assert len(engine.ids()) == 3
    container = engine.inspect(found[0].id)
    assert container == engine.inspect("jobs/a")
    assert (container.pid, container.cgroup_path) == (11, "/jobs/a")
    assert container.started == datetime.fromtimestamp(1700000000 + 0.11, UTC)
    assert container.program.command == ["python3", "train.py"]
    assert engine.inspect("jobs/empty").state == "exited"


def test_names_select(machine) -> None:
    assert [one.name for one in engine_of(machine).containers(names=["b$"])] == ["jobs/b"]
    assert engine_of(machine).containers(labels=["x"]) == []


def test_processes_below_count(machine) -> None:
    machine.add("/jobs/deep/task_0", 13)
    assert "jobs/deep" in names(engine_of(machine))


def test_several_patterns_are_one_list(machine) -> None:
    machine.add("/other/c", 13)
    found = names(engine_of(machine, "/other/c", "/jobs/a*", "/jobs/?"))
    assert found == ["jobs/a", "jobs/b", "other/c"]


def test_a_cgroup_made_again_is_another_container(machine) -> None:
    engine = engine_of(machine)
    before = engine.inspect("jobs/a").id
    for one in machine.hierarchies:
        folder = machine.folder(one, "/jobs/a")
        folder.rename(folder.with_name("old"))
    machine.add("/jobs/a", 11)
    assert engine.inspect("jobs/a").id != before
    assert engine.inspect(before).cgroup_path == "/jobs/old"


def test_what_was_changed_under_another_pattern_is_found(machine) -> None:
    id_ = engine_of(machine).inspect("jobs/a").id
    other = engine_of(machine, "/other/*")
    assert other.id == engine_of(machine).id
    assert other.inspect(id_).name == "jobs/a"


def test_what_is_gone_is_gone(machine) -> None:
    engine = engine_of(machine)
    id_ = engine.inspect("jobs/a").id
    for one in machine.hierarchies:
        shutil.rmtree(machine.folder(one, "/jobs/a"))
    for name in (id_, "jobs/a", "0" * 64):
        with pytest.raises(GoneError):
            engine.inspect(name)


WANTED: tuple[Limits, ...] = (
    {"cpus": 0.5},
    {"weight": 256.0},
    {"cpuset": "0"},
    {"cpus": 1.5, "weight": 2.0, "cpuset": "1"},
)


@pytest.mark.parametrize("wanted", WANTED)
def test_limits_are_set_and_restored_to_the_letter(machine, wanted) -> None:
    engine = engine_of(machine)
    before, texts = located(engine, "/jobs/a"), machine.texts("/jobs/a")
    limit_writing.write_settings(before, wanted)
    changed = settings_in_force(located(engine, "/jobs/a"))
    if "cpus" in wanted:
        assert changed["cpus"] == wanted["cpus"]
    assert machine.texts("/jobs/a") != texts
    assert machine.texts("/jobs/b") == texts
    limit_writing.write_files(before, before.container.limit_fields)
    assert machine.texts("/jobs/a") == texts


def test_where_the_kernel_takes_no_empty_cpu_list_it_is_all_cpus(tmp_path, monkeypatch) -> None:
    """Version 2, Linux 6.1: a cgroup with processes keeps a list that it once had."""
    machine = Machine(tmp_path, ())
    machine.add("/jobs/a", 11)
    (machine.folder("v2", "/jobs") / "cpuset.cpus.effective").write_text("0-1\n")
    engine = engine_of(machine)
    before = located(engine, "/jobs/a")
    original = before.container.limit_fields
    limit_writing.write_settings(before, {"cpuset": "0"})
    assert not are_original(before, original)
    write = Path.write_text

    def refuse_empty(path: Path, text: str) -> int:
        if path.name == "cpuset.cpus" and not text.strip():
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", refuse_empty)
    limit_writing.write_files(before, original)
    assert machine.texts("/jobs/a")["cpuset.cpus"] == "0-1"
    assert are_original(before, original)


def test_limits_are_gone_with_a_controller_that_is_taken_away(tmp_path) -> None:
    machine = Machine(tmp_path, ())
    machine.add("/jobs/a", 11)
    engine = engine_of(machine)
    before = located(engine, "/jobs/a")
    original = before.container.limit_fields
    limit_writing.write_settings(before, {"cpus": 0.5, "weight": 256.0})
    assert not are_original(before, original)
    for file in machine.folder("v2", "/jobs/a").glob("cpu.*"):
        file.unlink()
    after = located(engine, "/jobs/a")
    assert are_original(after, original)
    assert after.container.refuses.limits.keys() >= {"cpus", "weight"}
    assert not settings_in_force(after).keys() & {"cpus", "weight"}


def test_a_burst_is_lowered_and_restored(machine) -> None:
    burst = {"v2": ("v2", "cpu.max.burst")}.get(machine.hierarchies[0], ("cpu", "cpu.cfs_burst_us"))
    file = machine.folder(burst[0], "/jobs/a") / burst[1]
    file.write_text("70000\n")
    engine = engine_of(machine)
    before, texts = located(engine, "/jobs/a"), machine.texts("/jobs/a")
    limit_writing.write_settings(before, {"cpus": 0.5})
    assert file.read_text() == "50000"
    limit_writing.write_files(before, before.container.limit_fields)
    assert machine.texts("/jobs/a") == texts


def test_a_frozen_cgroup_is_paused(machine, monkeypatch) -> None:
    monkeypatch.setattr(freezer, "_stands", lambda _: True)
    engine, texts = engine_of(machine), machine.texts("/jobs/a")
    with pytest.raises(RefusedError, match="not frozen"):
        engine.unpause("jobs/a")
    engine.pause("jobs/a")
    states = {one.name: one.state for one in engine.containers()}
    assert states == {"jobs/a": "paused", "jobs/b": "running"}
    engine.unpause("jobs/a")
    assert engine.inspect("jobs/a").state == "running"
    assert machine.texts("/jobs/a") == texts


def test_a_frozen_cgroup_without_processes_is_still_to_be_thawed(machine, monkeypatch) -> None:
    monkeypatch.setattr(freezer, "_stands", lambda _: True)
    engine = engine_of(machine)
    engine.pause("jobs/empty")
    assert "jobs/empty" in names(engine)
    engine.unpause("jobs/empty")
    assert "jobs/empty" not in names(engine)


@pytest.mark.parametrize(
    ("controllers", "limits", "pauses", "why"),
    [
        (V1, {"cpus", "weight", "cpuset"}, True, ""),
        (("cpu", "freezer"), {"cpus", "weight"}, True, "cgroups here have no controller cpuset"),
        (("cpuset",), {"cpuset"}, False, "cgroups here have no controller cpu and freezer"),
        ((), {"cpus", "weight", "cpuset"}, True, ""),
    ],
)
def test_capabilities_are_those_of_controllers(tmp_path, controllers, limits, pauses, why) -> None:
    machine = Machine(tmp_path, controllers)
    machine.add("/jobs/a", 11)
    found = engine_of(machine).capabilities
    assert (found.limits, found.pauses, found.creates, found.why) == (limits, pauses, False, why)


def test_a_cgroup_without_a_controller_that_others_have_is_refused(tmp_path) -> None:
    machine = Machine(tmp_path)
    machine.add("/jobs/a", 11)
    machine.add("/jobs/b", 12, only=("freezer", "cpuset"))
    engine = engine_of(machine)
    unsettable = engine.inspect("jobs/b").refuses.limits["cpus"]
    assert unsettable == "the cgroup /jobs/b cannot hold cpus: it has no controller cpu"
    can = engine.capabilities
    assert can.missing(engine.inspect("jobs/a")) == ["move"]
    assert can.missing(engine.inspect("jobs/b")) == ["cpus", "cpu_weight", "move"]


def test_a_cgroup_without_a_freezer_says_so(tmp_path) -> None:
    machine = Machine(tmp_path)
    machine.add("/jobs/a", 11)
    machine.add("/jobs/b", 12, only=("cpu", "cpuset"))
    engine = engine_of(machine)
    found = engine.inspect("jobs/b")
    assert found.refuses.pause == "its cgroup has no freezer"
    assert engine.capabilities.missing(found) == ["pause", "move"]


def test_processes_outside_the_freezer_are_not_paused(tmp_path) -> None:
    machine = Machine(tmp_path)
    machine.add("/jobs/a", 11)
    (machine.folder("freezer", "/jobs/a") / "cgroup.procs").write_text("")
    with pytest.raises(RefusedError, match="not in its freezer"):
        engine_of(machine).pause("jobs/a")
    assert machine.texts("/jobs/a")["freezer.state"] == "THAWED"


@pytest.mark.parametrize(
    "path",
    [
        "/docker/*",
        "/slurm_vm/uid_0/*",
        "/system.slice/slurmstepd.scope/job_*",
        "/kubepods.slice/*",
        f"/system.slice/docker-{'0' * 64}.scope",
    ],
)
def test_cgroups_of_other_engines_are_refused(machine, path) -> None:
    with pytest.raises(ConfigError, match="these are"):
        engine_of(machine, path)


def test_cgroups_of_other_engines_are_left_out(machine) -> None:
    machine.add(f"/jobs/{'0' * 64}", 13)
    machine.add("/docker/x", 14)
    assert names(engine_of(machine, "/*/*")) == ["jobs/a", "jobs/b"]


def test_events_tell_what_changes(machine, monkeypatch, replace_sleep) -> None:
    steps: list[Callable[[], object]] = [
        lambda: machine.add("/jobs/c", 13),
        lambda: engine.pause("jobs/c"),
        lambda: engine.unpause("jobs/c"),
        lambda: [
            (machine.folder(one, "/jobs/c") / "cgroup.procs").write_text("")
            for one in machine.hierarchies
        ],
        lambda: machine.add("/jobs/c", 14),
        lambda: [shutil.rmtree(machine.folder(one, "/jobs/c")) for one in machine.hierarchies],
    ]
    monkeypatch.setattr(freezer, "_stands", lambda _: True)
    replace_sleep(looked_events, lambda _: steps.pop(0)())
    engine = engine_of(machine)
    found = list(islice(engine.events(2e9), 7))
    expected = ["start", "pause", "unpause", "exit", "start", "exit", "remove"]
    assert [one.action for one in found] == expected
    assert {one.name for one in found} == {"jobs/c"}


def test_a_start_before_the_watch_is_told_once(machine) -> None:
    found = list(islice(engine_of(machine).events(1700000000.1), 2))
    assert [(one.action, one.name) for one in found] == [("start", "jobs/a"), ("start", "jobs/b")]


@pytest.mark.parametrize(
    "url", ["cgroup:", "cgroup:jobs/*", "cgroup:/", "cgroup:/a/../b", "slurm:x"]
)
def test_an_address_that_is_none_says_what_to_write(url) -> None:
    with pytest.raises(
        ConfigError, match=r"--host .* no pattern of cgroups|nothing follows slurm:"
    ):
        host_address(url)


def test_addresses_open_their_kind() -> None:
    for url, kind in (("cgroup:/none/*,/such", "cgroup"), ("slurm:", "slurm")):
        assert open_engine(host_address(url)).id.startswith(f"{kind}-")


def test_files_that_are_named_are_the_log(machine, tmp_path) -> None:
    (tmp_path / "a.log").write_text("loss: 1\n")
    engine = CgroupEngine(["/jobs/*"], machine.root, {"jobs/a": [str(tmp_path / "a.log")]})
    entries = [one for some in engine.logs(engine.inspect("jobs/a"), 0.0) for one in some]
    assert [one.partition(b" ")[2] for one in entries] == [b"loss: 1\n"]


def test_its_own_cgroup_is_left_alone() -> None:
    path = Path("/proc/self/cgroup").read_text().splitlines()[0].split(":", 2)[2]
    assert Rules().refusal(Container("x", "own", cgroup_path=path)) == "dl-apply itself runs in it"
    assert Rules().refusal(Container("x", "other", cgroup_path="/none/such")) is None

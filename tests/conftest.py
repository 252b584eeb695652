"""Fixtures for all tests: the real engine, containers on it, and the tools as subprocesses."""

import gc
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
from helpers.containers import IMAGE, Containers, Gate, ImageError, build_image
from helpers.examples import HYPOTHESIS_EXAMPLES, QUICK, few_of_each
from helpers.fake_engine import FakeEngine
from helpers.sharing import in_order, turn
from helpers.tools import Tools

from dltools.engine.docker.engine import DockerEngine
from dltools.errors import DltoolsError
from dltools.observations.formats.base import Format

ReplaceSleep = Callable[[ModuleType, Callable[[float], object]], None]

ENGINE_TESTS = Path(__file__).parent / "real_engine"

# No test may fail by the speed of the machine, nor by the luck of making examples. Examples
# stay random; a failure prints the line that repeats it.
hypothesis.settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=HYPOTHESIS_EXAMPLES,
    print_blob=True,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.data_too_large,
        hypothesis.HealthCheck.filter_too_much,
    ],
)
hypothesis.settings.load_profile("any machine")


# A suite in the background, or under nohup, ignores these, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def runs_in_parallel(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def needs_engine(item: pytest.Item) -> bool:
    """Tell whether a test uses the fixture `engine` of this file, and not one of its folder's."""
    info = getattr(item, "_fixtureinfo", None)
    found = info.name2fixturedefs.get("engine") if info else None
    return bool(found) and found[-1].func.__module__ == __name__


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect thousands of tests, which all stay, without looking for garbage among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if needs_engine(item) or item.path.is_relative_to(ENGINE_TESTS):
            item.add_marker(pytest.mark.engine)
    if QUICK:
        few = few_of_each(items)
        config.hook.pytest_deselected(items=[*set(items).difference(few)])
        items[:] = few
    if runs_in_parallel(config):
        items[:] = in_order(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if not runs_in_parallel(item.config):
        return (yield)
    with turn(item):
        return (yield)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes `-n auto` starts: more than there are CPUs, since some tests wait,
    and those on an engine mostly do."""
    spare = 1 if "not engine" in config.option.markexpr else 3
    return len(os.sched_getaffinity(0)) + spare


def pytest_make_parametrize_id(val: object) -> str | None:
    """Call formats of observations by their names."""
    return val.name if isinstance(val, Format) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once, and not once a test, why tests were skipped."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} tests skipped: {reason}")


def missing(reason: str) -> None:
    """Skip, or fail where a real engine is required."""
    if os.environ.get("DLTOOLS_ENGINE") == "require":
        pytest.fail(f"DLTOOLS_ENGINE=require, but {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def engine() -> DockerEngine:
    """The Docker engine; tests that need one are skipped where none answers."""
    try:
        return DockerEngine()
    except DltoolsError as error:
        missing(str(error))
        raise


@pytest.fixture(scope="session")
def image(engine: DockerEngine) -> str:  # noqa: ARG001
    """An image of busybox alone, made from the host's own static one."""
    try:
        build_image()
    except ImageError as error:
        missing(str(error))
    return IMAGE


@pytest.fixture
def run(engine: DockerEngine, image: str) -> Iterator[Containers]:
    """Start containers: `run("echo loss: 1; sleep 9", nano_cpus=...)`; all are removed after."""
    containers = Containers(engine, image)
    try:
        yield containers
    finally:
        containers.remove()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Lets jobs go on when the test says so: `run(gate.passed(), **gate.limits)`."""
    directory = tmp_path / "gate"
    directory.mkdir()
    return Gate(directory)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home / "dltools"


@pytest.fixture
def tool(state: Path) -> Iterator[Tools]:  # noqa: ARG001
    """Run a tool: `tool("dl-apply", "--undo", input=b"...")`; what still runs is killed after."""
    tools = Tools()
    try:
        yield tools
    finally:
        tools.kill()


@pytest.fixture
def replace_sleep(monkeypatch: pytest.MonkeyPatch) -> ReplaceSleep:
    """Call something else where one module calls time.sleep: `replace_sleep(module, look)`. Threads
    that other tests have left behind sleep on."""

    def replace(module: ModuleType, sleep: Callable[[float], object]) -> None:
        class Replaced:
            def __getattr__(self, name: str) -> object:
                return sleep if name == "sleep" else getattr(time, name)

        monkeypatch.setattr(module, "time", Replaced())

    return replace


@pytest.fixture
def fake_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    """A Docker engine that is not there: one container, and faults on demand. Tools find it."""
    with FakeEngine(tmp_path / "docker.sock") as fake:
        monkeypatch.setenv("DOCKER_HOST", fake.url)
        yield fake

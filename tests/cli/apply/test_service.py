"""The service of --install-service: its unit, and what is said and left behind."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from helpers.tools import complaint

from dltools.cli.apply import service as module
from dltools.cli.apply.request import Request
from dltools.cli.apply.service import PipeService, service_asked
from dltools.errors import ConfigError, DltoolsError, UnavailableError

USAGE, CONFIG = 2, 78
SAMPLE = Path(__file__).parents[3] / "samples/systemd/dltools-stream.service"

SYSTEMCTL = """#!/bin/sh
echo "$@" >>{log}
case "$*" in
*ActiveState*) echo {state} ;;
*NRestarts*) echo 0 ;;
*reset-failed*) echo not loaded >&2; exit 1 ;;
esac
"""


class Machine:
    """A machine with a systemd that does nothing and notes what it is asked."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._place = place
        self.bin = place / "bin"
        self.bin.mkdir()
        for tool in ("dl-probe", "dl-plan", "dl-apply"):
            (self.bin / tool).write_text("#!/bin/sh\n")
            (self.bin / tool).chmod(0o755)
        (place / "running").mkdir()
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        monkeypatch.setattr(sys, "argv", [str(self.bin / "dl-apply")])
        monkeypatch.setattr(module, "_STARTS_S", 0.6)
        monkeypatch.setattr("os.geteuid", lambda: 0)
        self.answers("active")

    def answers(self, state: str) -> None:
        script = self.bin / "systemctl"
        script.write_text(SYSTEMCTL.format(log=self._place / "log", state=state))
        script.chmod(0o755)

    def service(self, *labels: str, policy: str = "flowcon") -> PipeService:
        file = self._place / "dltools-stream.service"
        return PipeService(policy, labels, file, self._place / "running", self._place / "home")

    @property
    def asked(self) -> list[str]:
        log = self._place / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if not line.startswith("show")]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_unit_is_the_sample() -> None:
    sample = SAMPLE.read_text().splitlines()[1:]
    assert PipeService().text().splitlines() == sample


@pytest.mark.slow
def test_it_is_written_enabled_and_started(machine, capsys) -> None:
    service = machine.service("team=a", policy="srtf")
    service.install()
    assert machine.asked == ["daemon-reload", "enable dltools-stream", "restart dltools-stream"]
    text = service.file.read_text()
    assert text.startswith("# Written by dl-apply --install-service;")
    assert f"PATH={machine.bin}:" in text
    pipe = (
        "dl-probe -i 10s --label team=a | dl-plan --policy srtf | "
        "dl-apply --label team=a --tell /run/dltools/waiting"
    )
    assert f"ExecStart=/bin/sh -c '{pipe}'" in text
    assert service.file.stat().st_mode & 0o777 == 0o644
    said = capsys.readouterr().out
    assert "dl-apply --remove-service" in said and pipe in said


@pytest.mark.slow
def test_what_is_said_can_be_typed_where_sudo_finds_no_tools(machine, monkeypatch, capsys) -> None:
    apart = machine.bin.parent / "apart"
    apart.mkdir()
    shutil.copy(machine.bin / "systemctl", apart)
    monkeypatch.setenv("PATH", f"{apart}:/usr/bin:/bin")
    machine.service().install()
    said = capsys.readouterr().out
    assert f"sudo {machine.bin}/dl-apply --status " in said
    assert f"sudo {machine.bin}/dl-apply --remove-service " in said


def test_it_tells_whom_to_ask() -> None:
    assert PipeService(contact="lab@example.org").pipe.endswith("--contact lab@example.org")
    with pytest.raises(ConfigError, match="cannot be in a unit"):
        PipeService(contact="a'; rm -rf /").text()


def test_one_that_does_not_stay_up_is_an_error(machine) -> None:
    machine.answers("failed")
    with pytest.raises(UnavailableError, match="journalctl -u dltools-stream"):
        machine.service().install()


def test_removal_leaves_nothing(machine, capsys) -> None:
    service = machine.service()
    service.install()
    (service.home / "journal").mkdir(parents=True)
    for name in ("apply.lock", "leases-49a90a2e.lock"):
        (service.home / name).touch()
    assert service.stop()
    assert machine.asked[-1] == "disable --now dltools-stream"
    service.forget()
    assert not service.file.exists()
    assert not service.home.exists()
    assert capsys.readouterr().err == ""
    assert not service.stop()
    assert "no service to remove" in capsys.readouterr().err


@pytest.mark.slow
def test_a_state_that_others_need_is_kept(machine, capsys) -> None:
    service = machine.service()
    service.install()
    service.home.mkdir()
    (service.home / "flowcon.state").touch()
    service.forget()
    assert (service.home / "flowcon.state").exists()
    assert "is kept: flowcon.state is there" in capsys.readouterr().err


def test_the_unit_of_somebody_else_is_left_alone(machine) -> None:
    shutil.copy(SAMPLE, machine.service().file)
    for act in (machine.service().install, machine.service().stop):
        with pytest.raises(ConfigError, match="was not written by --install-service"):
            act()
    assert machine.asked == []


def test_without_root_or_systemd_it_says_what_to_do(machine, monkeypatch) -> None:
    (machine.service().running).rmdir()
    with pytest.raises(UnavailableError, match="cron can run the tools"):
        machine.service().install()
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    # By its path, as sudo does not look where pipx has put it.
    typed = re.escape(f"a service needs root: type sudo {machine.bin}/dl-apply for dl-apply")
    with pytest.raises(DltoolsError, match=f"^{typed}$"):
        machine.service().install()


@pytest.mark.parametrize("label", ["a b", "a'b", "a%n", "$x", "a;b", ""])
def test_what_a_unit_cannot_hold(label) -> None:
    with pytest.raises(ConfigError):
        PipeService(labels=(label,)).text()


def test_options_that_contradict_each_other(tool) -> None:
    for options in (
        ["--install-service", "--remove-service"],
        ["--install-service", "--undo"],
        ["--remove-service", "--label", "a"],
        ["--install-service", "--max-changes", "5"],
        ["--install-service", "--max-age", "1m"],
        ["--install-service", "--force"],
        ["--install-service", "--lease", "0s"],
        ["--install-service", "--hold", "5s"],
        ["--install-service", "plan.jsonl"],
        ["--policy", "srtf"],
    ):
        assert tool("dl-apply", *options, "--dry-run").returncode == USAGE
    done = tool("dl-apply", "--install-service", "--policy", "nonsense")
    assert done.returncode == CONFIG
    assert "unknown policy 'nonsense'" in complaint(done.stderr)
    assert service_asked(Request(undoes=True)) is None


def test_a_dry_run_prints_the_unit(tool) -> None:
    done = tool("dl-apply", "--install-service", "--dry-run")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == PipeService().text()

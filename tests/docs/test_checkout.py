"""A checkout that has moved, or was never set up, says so; samples find what is installed."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("dl-probe", "dl-plan", "dl-apply", "dl-sim", "dl-report")
PLACES = ("/root/.local/bin", "/usr/local/bin", "/opt/dltools/bin")
"""Where pipx and uv, pipx --global, and a venv as README makes it put the tools."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "bin", folder / "bin")
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "dltools").symlink_to(ROOT / "dltools")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    return folder


def run(launcher: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([launcher, "--version"], capture_output=True, text=True)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_launcher_runs_its_tool_or_says_what_to_do_without_the_packages(tool, checkout) -> None:
    done = run(checkout / "bin" / tool)
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr == (
        f"{tool}: {checkout}/.venv/bin/python has no module typer: "
        "set the checkout up with `make clean demo`, or install dltools\n"
    )
    (place,) = (checkout / ".venv").glob("lib/python*/site-packages")
    packages = place / "packages.pth"
    packages.write_text(str(Path(pytest.__file__).parents[1]))
    done = run(checkout / "bin" / tool)
    packages.unlink()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{tool} (dltools) ")


@pytest.mark.parametrize("moved", [True, False])
def test_make_sets_a_venv_of_another_place_up_anew(checkout, moved) -> None:
    place = "/another/place" if moved else str(checkout)
    (checkout / ".venv/bin/dl-plan").write_text(f"#!{place}/.venv/bin/python\n")
    for stamp in (".run", ".plots", ".test"):
        (checkout / ".venv" / stamp).touch()
    done = subprocess.run(
        ["make", "-n", ".venv/.test"], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert ("made in another place" in done.stdout) == moved
    assert ("-m venv --clear .venv" in done.stdout) == moved
    assert ("pip install" in done.stdout) == moved


UNITS = sorted(path.name for path in (ROOT / "samples/systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS)
def test_a_sample_unit_is_one_of_systemd_and_runs_a_pipe(unit) -> None:
    path = ROOT / "samples" / "systemd" / unit
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True
        )
        assert unit not in done.stdout + done.stderr, done.stderr
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.read_string(path.read_text().replace("\\\n", ""))
    command = shlex.split(parsed["Service"]["ExecStart"])
    assert command[:2] == ["/bin/sh", "-c"]
    assert subprocess.run(["/bin/sh", "-n", "-c", command[2]]).returncode == 0
    assert [stage.split()[0] for stage in command[2].split("|")] == [
        "dl-probe",
        "dl-plan",
        "dl-apply",
    ]


MOST_EXPOSED = 35
"""In tenths of what systemd calls the exposure of a unit: 96 without any bound."""


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is missing")
@pytest.mark.parametrize("unit", UNITS)
def test_a_sample_unit_is_confined(unit) -> None:
    path = ROOT / "samples" / "systemd" / unit
    words = ["systemd-analyze", "security", "--no-pager", "--offline=true"]
    done = subprocess.run(
        [*words, f"--threshold={MOST_EXPOSED}", path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout.splitlines()[-1:] + done.stderr.splitlines()


@pytest.mark.parametrize(
    ("sample", "home"), [("cron/dltools", ""), *((f"systemd/{unit}", "/root") for unit in UNITS)]
)
def test_samples_find_the_tools_wherever_they_are_installed(sample, home) -> None:
    text = (ROOT / "samples" / sample).read_text().replace("%h", home)
    (path,) = re.findall(r"^(?:Environment=)?PATH=(.*)$", text, re.M)
    assert set(PLACES) <= set(path.split(":"))
    assert all(place.startswith("/") for place in path.split(":"))

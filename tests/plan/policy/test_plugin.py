"""The example plug-in, installed as a package, is a policy like any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.encoding import encode
from helpers.observed_rows import container, node, point

from dltools.observations.formats.parquet import PARQUET
from dltools.observations.table import to_table

PLUGIN = Path(__file__).parents[3] / "samples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that the plug-in is installed into."""
    target = tmp_path_factory.mktemp("plugin")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--target", str(target), str(PLUGIN)],
        check=True,
    )  # fmt: skip
    return target


def plan(
    installed: Path, *arguments: str, input: bytes = b"", **env: str
) -> subprocess.CompletedProcess[bytes]:
    root = Path(__file__).parents[3]
    path = os.pathsep.join([str(installed), str(root)])
    return subprocess.run(
        [sys.executable, "-c", "from dltools.cli.plan import main; main()", *arguments],
        input=input,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": path} | env,
    )


def recording() -> bytes:
    rows = [
        node(0), container(0, "old", 1.0), point(0, "old", 1.0),
        node(2), container(2, "old", 2.0), container(2, "young", 1.0), point(2, "young", 1.0),
    ]  # fmt: skip
    return encode(PARQUET, to_table(rows))


def test_it_is_listed_with_its_parameters(installed: Path) -> None:
    text = plan(installed, "--policies").stdout.decode()
    assert "newest: the newest job first\n    floor=0.1, 0 to 1: least share" in text


def test_it_decides(installed: Path) -> None:
    done = plan(installed, "-p", "newest", "--realize", "quota", "--set", "floor=0.2",
                input=recording())  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    actions = [json.loads(line) for line in done.stdout.splitlines()][1:-1]
    assert {a["container"]["name"]: a["set"]["cpus"] for a in actions} == {"old": 0.2, "young": 1.8}


@pytest.mark.parametrize("names", ["", "another"])
def test_it_can_be_kept_out(installed: Path, names: str) -> None:
    done = plan(installed, "-p", "newest", input=recording(), DLTOOLS_PLUGINS=names)
    assert done.returncode == 78
    assert b"unknown policy 'newest'" in done.stderr


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A directory with two plug-ins that do not load: one fails, one is no policy."""
    (tmp_path / "failing.py").write_text("raise RuntimeError('no licence')\n")
    (tmp_path / "nothing.py").write_text("NOTHING = 1\n")
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[dltools.policies]\nfailing = failing:POLICY\nnothing = nothing:NOTHING\n"
    )
    return tmp_path


def test_one_that_does_not_load_is_named_and_disables_no_other(broken: Path) -> None:
    done = plan(broken, "-p", "fair", input=recording())
    assert done.returncode == 0
    failing, nothing = sorted(done.stderr.decode().splitlines())
    assert "plug-in failing (failing:POLICY) does not load: RuntimeError: no licence" in failing
    assert "plug-in nothing (nothing:NOTHING) does not load: TypeError: not a policy" in nothing
    listed = plan(broken, "--policies")
    assert listed.returncode == 0
    assert b"\nflowcon: " in listed.stdout


def test_one_that_does_not_load_is_an_error_where_it_is_asked_for(broken: Path) -> None:
    done = plan(broken, "-p", "failing", input=recording())
    assert done.returncode == 78
    (said,) = done.stderr.decode().splitlines()
    assert "plug-in failing (failing:POLICY) does not load: RuntimeError: no licence" in said
    assert plan(broken, "-p", "failing", input=recording(), DLTOOLS_PLUGINS="").returncode == 78


def test_one_that_does_not_load_can_be_kept_out(broken: Path) -> None:
    done = plan(broken, "-p", "fair", input=recording(), DLTOOLS_PLUGINS="")
    assert (done.returncode, done.stderr) == (0, b"")

"""The example plug-in, installed as a package, is a policy like any other."""

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from helpers.encoding import encode
from helpers.observed_rows import container, node, point
from helpers.tools import Tools

from dltools.observations.formats.parquet import FORMAT as PARQUET
from dltools.observations.table import to_table

PLUGIN = Path(__file__).parents[3] / "samples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that the plug-in is installed into, as pip does it."""
    target = tmp_path_factory.mktemp("plugin")
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    ((group, points),) = project["entry-points"].items()
    shutil.copy(PLUGIN / "newest.py", target)
    install(target, project["name"], group, points)
    return target


def install(target: Path, name: str, group: str, points: dict[str, str]) -> None:
    """Write what an installed package says of itself."""
    about = target / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{point} = {value}\n" for point, value in points.items()]
    (about / "entry_points.txt").write_text(f"[{group}]\n{''.join(lines)}")


def plan(
    installed: Path, *arguments: str, input: bytes = b"", **env: str
) -> subprocess.CompletedProcess[bytes]:
    path = os.pathsep.join([str(installed), str(Path(__file__).parents[3])])
    return Tools()("dl-plan", *arguments, input=input, env={"PYTHONPATH": path} | env)


def recording() -> bytes:
    rows = [
        node(0), container(0, "old", 1.0), point(0, "old", 1.0),
        node(2), container(2, "old", 2.0), container(2, "young", 1.0), point(2, "young", 1.0),
    ]  # fmt: skip
    return encode(PARQUET, to_table(rows))


def test_it_is_listed_with_its_parameters(installed) -> None:
    text = plan(installed, "--list-policies").stdout.decode()
    assert "newest: the newest job first\n    floor=0.1, 0 to 1: least share" in text


def test_it_decides(installed) -> None:
    done = plan(
        installed, "-p", "newest", "--realize", "quota", "--set", "floor=0.2", input=recording()
    )
    assert done.returncode == 0, done.stderr.decode()
    actions = [json.loads(line) for line in done.stdout.splitlines()][1:-1]
    assert {a["container"]["name"]: a["set"]["cpus"] for a in actions} == {"old": 0.2, "young": 1.8}


@pytest.mark.parametrize("names", ["", "another"])
def test_it_can_be_kept_out(installed, names) -> None:
    done = plan(installed, "-p", "newest", input=recording(), DLTOOLS_PLUGINS=names)
    assert done.returncode == 78
    assert b"unknown policy 'newest'" in done.stderr

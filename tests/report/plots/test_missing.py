"""The command that adds matplotlib fits how dltools was installed."""

from __future__ import annotations

from pathlib import Path

from dltools.report.plots.missing import command_to_add


def made_by(folder: Path, mark: str = "") -> Path:
    """An environment, with the file that its maker leaves in it."""
    folder.mkdir(parents=True)
    if mark:
        (folder / mark).touch()
    return folder


def test_pipx_injects(tmp_path: Path) -> None:
    prefix = made_by(tmp_path / "pipx/venvs/dltools", "pipx_metadata.json")
    assert command_to_add("matplotlib", prefix) == "pipx inject dltools matplotlib"


def test_uv_installs_into_its_environment(tmp_path: Path) -> None:
    prefix = made_by(tmp_path / "uv/tools/dltools", "uv-receipt.toml")
    assert command_to_add("matplotlib", prefix) == f"uv pip install --python {prefix} matplotlib"


def test_any_other_environment_has_its_own_pip(tmp_path: Path) -> None:
    prefix = made_by(tmp_path / "my venv")
    assert command_to_add("matplotlib", prefix).startswith(f"'{prefix}'/bin/python3 -m pip install")

"""Which member is behind an address: plug-ins beside dltools' own, and parts of members."""

from pathlib import Path

import pytest

from dltools.engine import registry
from dltools.engine.address import Address
from dltools.engine.interface import Engine, UnableError
from dltools.engine.parts import Pauses, needed
from dltools.errors import ConfigError

ENTRY_POINTS = """
[dltools.engines]
lab = lab_engine
labfailing = lab_missing
unix = lab_engine
"""

MODULE = """
from dltools.engine.interface import Engine

class Lab(Engine):
    host = "lab"

def check(address):
    pass

def open_engine(address, *_):
    return Lab()
"""


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab_engine.py").write_text(MODULE)
    info = tmp_path / "lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: lab\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("DLTOOLS_PLUGINS", raising=False)


def opened(url: str) -> Engine:
    return registry.open_engine(Address(url, "--host"))


def test_a_plug_in_answers_at_its_scheme() -> None:
    assert registry.host_address("lab:bench").scheme == "lab"
    assert opened("lab:bench").host == "lab"


@pytest.mark.parametrize("allowed", ["", "other"])
def test_one_that_is_not_allowed_is_no_member(allowed, monkeypatch) -> None:
    monkeypatch.setenv("DLTOOLS_PLUGINS", allowed)
    with pytest.raises(ConfigError, match="lab:bench"):
        registry.host_address("lab:bench")


def test_one_that_does_not_load_says_why() -> None:
    with pytest.raises(ConfigError, match="plug-in lab_missing does not load: ModuleNotFound"):
        opened("labfailing:x")


def test_the_toolkit_s_own_members_cannot_be_replaced(tmp_path) -> None:
    with pytest.raises(Exception, match="sock"):
        opened(f"unix://{tmp_path}/sock")


def test_a_part_that_a_member_has_not_is_refused_by_name() -> None:
    with pytest.raises(UnableError, match="the engine of host lab cannot pause containers"):
        needed(opened("lab:bench"), Pauses)

"""Policies by name: the toolkit's own, and plug-ins that load or do not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dltools.errors import ConfigError
from dltools.plan.policy import registry
from dltools.plan.policy.baselines import FAIR
from dltools.plan.policy.interface import Policy

OWN = ["dqoes", "fair", "flowcon", "las", "noop", "slaq", "specon", "srtf", "tradl"]

MODULE = """
from dltools.plan.policy.baselines import Fair

class Twin(Fair):
    name = "twin"

TWIN, FAIR, NOTHING = Twin(), Twin(), 1
"""

ENTRY_POINTS = """
[dltools.policies]
registry-twin = registry_plugin:TWIN
fair = registry_plugin:FAIR
registry-nothing = registry_plugin:NOTHING
registry-failing = registry_failing:POLICY
registry-exits = registry_exits:POLICY

[another.group]
registry-stranger = registry_plugin:TWIN
"""


@pytest.fixture(scope="module", autouse=True)
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Plug-ins on the path: good ones and bad ones."""
    folder: Path = tmp_path_factory.mktemp("plugins")
    about = folder / "registry_plugins-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: registry-plugins\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "registry_plugin.py").write_text(MODULE)
    (folder / "registry_failing.py").write_text("raise RuntimeError('no licence')\n")
    (folder / "registry_exits.py").write_text("raise SystemExit(3)\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield


def test_the_toolkit_s_own_policies_are_known_by_their_names() -> None:
    found = registry.policies([])
    assert sorted(found) == OWN
    for name, policy in found.items():
        assert isinstance(policy, Policy)
        assert policy.name == name
        assert policy.help
        policy.requirements(policy.parameters())
    assert registry.get("fair", []) is FAIR


def test_an_unknown_policy_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(ConfigError) as refused:
        registry.get("fiar", [])
    assert str(refused.value) == f"unknown policy 'fiar'; known: {', '.join(OWN)}"


def test_a_plug_in_that_is_named_is_a_policy_like_any_other() -> None:
    found = registry.policies(["registry-twin"])
    assert sorted(found) == sorted([*OWN, "registry-twin"])
    assert registry.get("registry-twin", ["registry-twin"]) is found["registry-twin"]
    assert registry.faults(["registry-twin"]) == {}


@pytest.mark.parametrize(
    "names",
    [[], ["another"], ["registry-stranger"], ["fair"]],
    ids=["none is named", "another is named", "one of another group", "one named as ours"],
)
def test_what_is_no_plug_in_that_was_named_adds_and_replaces_no_policy(names) -> None:
    found = registry.policies(names)
    assert (sorted(found), registry.faults(names)) == (OWN, {})
    assert found["fair"] is FAIR


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("registry-nothing", "(registry_plugin:NOTHING) does not load: TypeError: not a policy"),
        ("registry-failing", "(registry_failing:POLICY) does not load: RuntimeError: no licence"),
        ("registry-exits", "(registry_exits:POLICY) does not load: SystemExit: 3"),
    ],
)
def test_a_plug_in_that_does_not_load_is_left_out_and_its_fault_is_named(name, fault) -> None:
    both = [name, "registry-twin"]
    assert sorted(registry.policies(both)) == sorted([*OWN, "registry-twin"])
    assert registry.faults(both) == {name: f"plug-in {name} {fault}"}
    with pytest.raises(ConfigError) as refused:
        registry.get(name, both)
    assert str(refused.value) == f"plug-in {name} {fault}"

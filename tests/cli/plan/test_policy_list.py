"""The list of policies."""

from __future__ import annotations

import pytest

from dltools.cli.plan.policy_list import print_policies


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("DLTOOLS_PLUGINS", "")
    print_policies()
    return capsys.readouterr().out.splitlines()


def test_policies_are_listed_by_name(lines: list[str]) -> None:
    names = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    assert {"flowcon", "noop", "tradl"} <= set(names)
    *policies, last = names
    assert policies == sorted(policies)
    assert last == "every policy"


@pytest.mark.parametrize(
    "begin",
    [
        "    alpha=0.03, 0 to 1: ",
        "    backoff=true, true or false: ",
        '    gain="direct", direct or fixed or adaptive: ',
        "    max_slowdown=2.0, 1 to 100: ",
        "    class NL, growing: ",
        "    class Q1 to Q20, queue 1 to queue 20: ",
    ],
)
def test_parameters_and_classes_stand_below_their_policy(lines: list[str], begin: str) -> None:
    assert any(line.startswith(begin) for line in lines)

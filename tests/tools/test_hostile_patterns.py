"""Expressions that hold a backtracking engine for ever, or match nothing: no tool waits."""

import time

import pytest

LONGEST_S = 20
"""On a machine that does other things; each takes a fraction of a second."""

CATASTROPHIC = r"(?P<loss>(a+)+)$"
EMPTY = (r"(?P<loss>)", r"(?P<loss>a*)", r"(?P<loss>(?:a*)*)", r"(?P<loss>x*)", r"(?P<loss>^|$|\b)")


@pytest.mark.parametrize("pattern", [CATASTROPHIC, *EMPTY, "a{1000}{1000}"])
def test_a_label_s_pattern_holds_nobody_up(tool, fake_engine, pattern) -> None:
    fake_engine.labels = {"dltools.pattern": pattern}
    fake_engine.log = (b"2026-01-01T00:00:00.000000000Z " + b"a" * 16_000 + b"!\n") * 20
    begun = time.monotonic()
    done = tool("dl-probe", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begun < LONGEST_S


@pytest.mark.usefixtures("fake_engine")
@pytest.mark.parametrize("pattern", [CATASTROPHIC.replace("?P<loss>", ""), "^", "x*", "(a*)*$"])
def test_dl_probe_picks_containers_by_any_name(tool, pattern) -> None:
    begun = time.monotonic()
    done = tool("dl-probe", "--name", pattern)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begun < LONGEST_S

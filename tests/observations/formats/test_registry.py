"""The registry of formats."""

from __future__ import annotations

from dltools.observations.formats.registry import NAMES, formats, get_format


def test_formats_have_the_names_that_the_registry_gives_them() -> None:
    assert tuple(formats()) == NAMES
    assert [format_.name for format_ in formats().values()] == list(NAMES)
    assert get_format("prom").title == "Prometheus text"


def test_no_two_formats_have_a_suffix_in_common() -> None:
    suffixes = [suffix for format_ in formats().values() for suffix in format_.suffixes]
    assert len(set(suffixes)) == len(suffixes)

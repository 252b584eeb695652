"""Each family of log formats: excerpts in its own words, and the points that stand in them.

Every excerpt is read by `Automatic`, as a container's log is, so that a line which another family
claims shows here. A new one is a pair of files in `excerpts/`.
"""

import re
from importlib import import_module

import pytest
from helpers.excerpts import FOLDER, excerpts, read, shown
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.metric_names import normal_name
from dltools.probe.progress import FAMILIES, Family, Point
from dltools.probe.progress.named import BAR

EXCERPTS = excerpts()

by_name = pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda excerpt: excerpt.name)


@by_name
def test_the_points_of_a_log_are_found(excerpt) -> None:
    assert list(map(shown, read(excerpt.log))) == excerpt.points
    assert len(excerpt.families - {"named"}) <= 1


def test_each_log_has_its_points_beside_it() -> None:
    assert {file.stem for file in FOLDER.glob("*.points")} == {one.name for one in EXCERPTS}


@by_name
def test_pieces_of_any_size_give_the_same(excerpt) -> None:
    whole = repr(read(excerpt.log))
    assert [piece for piece in (1, 7, 100) if repr(read(excerpt.log, piece)) != whole] == []


@by_name
def test_time_elapsed_never_goes_back(excerpt) -> None:
    spans = [p.elapsed_s for p in read(excerpt.log) if p.elapsed_s is not None]
    assert spans == sorted(spans)


def test_every_family_has_an_excerpt() -> None:
    assert set().union(*(one.families for one in EXCERPTS)) == {*FAMILIES, "named", BAR}


@pytest.mark.parametrize(
    "line",
    [
        "Downloading: 100%|##########| 440M/440M [00:10<00:00, 41.0MB/s]",
        "loss scale: 65536",
        "| WARNING: overflow detected, setting loss scale to: 64.0",
        "saving checkpoint to /models/loss_0.53.pt",
        "/x/epoch=0-val_loss=0.33.ckpt",
        "Epoch 3: 100%|##########| 938/938 [00:05<00:00, 160.27it/s]",
        '10.0.0.1 - - [21/Nov/2026:01:30:37 +0000] "GET /metrics HTTP/1.1" 200 512',
        '  File "/x/train.py", line 12, in loss',
        "1875/1875 - 3s - 2ms/step",
        "  BATCH 0/2: Post-processing finished in 0.3253s.",
        "findfont: Matching sans\\-serif to DejaVu Sans ('/x.ttf') with score of 0.05",
    ],
)
def test_what_is_no_progress_gives_none(line) -> None:
    assert read(line.encode() + b"\n") == []


@pytest.mark.parametrize(
    "line", ["[inference-7] finished in 0.35s", "POST /v1/generate took 0.35 s"]
)
def test_a_program_that_says_what_took_it_has_a_response_time(line) -> None:
    (point,) = read(line.encode() + b"\n")
    assert (point.metric, point.value) == ("latency_seconds", 0.35)


def is_sound(point: Point) -> bool:
    """Tell whether a row of observations can hold the point."""
    return (
        point.metric == normal_name(point.metric) != ""
        and isinstance(point.value, float)
        and (point.step is None or -(2**63) <= point.step < 2**63)
        and (point.epoch is None or isinstance(point.epoch, float))
        and (point.elapsed_s is None or point.elapsed_s >= 0)
        and point.source in {*FAMILIES, "named", BAR}
    )


@given(
    st.lists(st.sampled_from([line for e in EXCERPTS for line in e.text.split("\n")]), max_size=30),
    st.data(),
)
def test_no_mixture_of_formats_makes_it_fail(lines, data) -> None:
    mangled = [
        line[: data.draw(st.integers(0, len(line)))] if data.draw(st.booleans()) else line
        for line in lines
    ]
    assert all(map(is_sound, read("\n".join(mangled).encode())))


@given(st.lists(st.text() | st.from_regex(r"[a-zA-Z_]{1,9} ?[:=] ?-?\d{1,30}(\.\d+)?(e\d{1,4})?")))
def test_no_text_makes_it_fail(lines) -> None:
    assert all(map(is_sound, read("\n".join(lines).encode(errors="surrogatepass"))))


@pytest.mark.parametrize("digits", [19, 20, 400, 5000])
def test_numbers_of_any_length_are_borne(digits) -> None:
    for excerpt in EXCERPTS:
        long = re.sub(r"\b\d+\b", "9" * digits, excerpt.text)
        assert all(map(is_sound, read(long.encode())))


def test_a_log_may_change_its_format() -> None:
    first = [f'{{"step": {n}, "loss": 0.5}}\n' for n in range(50)]
    second = [f"{n}/2000 [=====>....] - {n}s - loss: 4.5\n" for n in range(2000)]
    sources = [point.source for point in read("".join(first + second).encode())]
    assert (sources.count("jsonlines"), sources.count(BAR)) == (50, 2000)


@by_name
def test_a_family_needs_only_what_its_lines_have(excerpt) -> None:
    """What a family reads when asked for every line, it reads when asked for those it needs."""
    for name in FAMILIES:
        all_lines, some_lines = _family(name), _family(name)
        for line in excerpt.text.replace("\r", "\n").splitlines():
            lower = re.sub(r"\d+", "0", line).lower()
            expected = all_lines.points(line)
            is_asked = some_lines.may_read(lower)
            assert repr(some_lines.points(line) if is_asked else []) == repr(expected)


def _family(name: str) -> Family:
    made: Family = import_module(f"dltools.probe.progress.families.{name}").Log()
    return made

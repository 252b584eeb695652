"""Progress by a user's regular expression."""

import math

import pytest

from dltools.errors import ConfigError
from dltools.probe.progress import Pattern, PointReader


@pytest.mark.parametrize(
    ("expression", "line", "expected"),
    [
        (r"(?P<loss>[\d.]+)", "0.5", [("loss", 0.5, None, None)]),
        (r"L=(?P<loss>\S+)", "L=0.5 L=0.4", [("loss", 0.5, None, None), ("loss", 0.4, None, None)]),
        (
            r"(?P<step>\d+)/\d+ L (?P<loss>\S+) A (?P<accuracy>\S+)",
            "40/500 L 0.5 A 0.9",
            [("loss", 0.5, 40, None), ("accuracy", 0.9, 40, None)],
        ),
        (r"e(?P<epoch>\S+) (?P<loss>\S+)", "e1.5 0.5", [("loss", 0.5, None, 1.5)]),
        (
            r"(?P<metric>\w+)=(?P<value>\S+)",
            "wer=0.1 cer=0.05",
            [("wer", 0.1, None, None), ("cer", 0.05, None, None)],
        ),
        (r"(?P<loss>\S+)", "1,234.5", [("loss", 1234.5, None, None)]),
        (r"(?P<loss>\S+)", "1e-3", [("loss", 0.001, None, None)]),
        (r"(?P<loss>\S+)", "inf", [("loss", math.inf, None, None)]),
        (r"<(?P<loss>[^>]*)>", "< 0.5 >", [("loss", 0.5, None, None)]),
        (r"<(?P<loss>[^>]*)>", "<low> <> <0.5>", [("loss", 0.5, None, None)]),
        (r"(?P<loss>\d+)(?: s(?P<step>\S+))?", "5", [("loss", 5.0, None, None)]),
        (r"(?P<loss>\d+) s(?P<step>\S+)", "5 sten", [("loss", 5.0, None, None)]),
        (r"(?P<loss>\d+) s(?P<step>\S+)", "5 snan", [("loss", 5.0, None, None)]),
        (r"(?P<loss>\d+) s(?P<step>\S+)", "5 sinf", [("loss", 5.0, None, None)]),
        (r"(?P<loss>\d+) s(?P<step>\S+)", "5 s1e300", [("loss", 5.0, None, None)]),
        (r"(?P<loss>a)?(?P<accuracy>\d)?", "7", [("accuracy", 7.0, None, None)]),
        (r"(?P<metric>\w*)=(?P<value>\d+)", "=5", []),
        (r"(?P<loss>\d+)", "none", []),
        (r"(?P<loss>\d*)", "", []),
        (r"^(?P<loss>\d)", "12", [("loss", 1.0, None, None)]),
        (r"\b(?P<loss>\d)", "12 3", [("loss", 1.0, None, None), ("loss", 3.0, None, None)]),
        (r"(?P<loss>\d)\B", "12 3", [("loss", 1.0, None, None)]),
        (r"(?P<loss>\d?)$", "12", [("loss", 2.0, None, None)]),
        (r"(a|(b))[(\]](?P<loss>\d)\Q)(\E", "b(5)(", [("loss", 5.0, None, None)]),
        (r"(?i)(?P<loss>[[:digit:](]+)E", "5e", [("loss", 5.0, None, None)]),
    ],
)
def test_a_pattern_finds_what_its_groups_name(expression, line, expected) -> None:
    found = Pattern(expression).points(line)
    assert [(p.metric, p.value, p.step, p.epoch) for p in found] == expected
    assert all(point.source == "pattern" for point in found)


@pytest.mark.parametrize(
    "expression",
    ["(", "(?P<loss>", "[", "*", "(?P<a b>x)", "(?P<loss>a)(?P<loss>b)", r"(?P<loss>\1)(?(9)a)",
     "(?P<loss>[z-a])", "\\", r"(?P<loss>\N{nothing})", "(?P<loss>a)\udcff",
     "a)(?:(?P<loss>b)", r"(?P<loss>a)\Qb", "(?P<dltools_rest>a)"],
)  # fmt: skip
def test_a_pattern_that_does_not_compile_is_refused(expression) -> None:
    with pytest.raises(ConfigError) as refused:
        Pattern(expression)
    assert str(refused.value).startswith(f"pattern {expression!r}: ")


REFUSED = {
    # What takes more than linear time.
    "not supported: write the context plainly": [
        r"(?<!\w)loss (?P<loss>\d+)", r"(?<=loss )(?P<loss>\d+)", r"(?P<a>\d)(?P=a)",
        r"(?>x)(?P<loss>\d)", r"(?P<loss>\d++)",
    ],
    "has no named group such as": [
        "", r"loss (\d+)", r"(?P<step>\d+)", r"(?P<epoch>\d+)", r"(?P<value>\d+)",
        r"(?P<step>\d+) (?P<value>\d+)",
    ],
    # What the compiler chokes on: repetitions, of repetitions too, 6000 characters, groups.
    "^pattern '": [
        "(?P<loss>a{9999})", "(?P<loss>((a{99}){9}){9})", "(?P<loss>a)" + "b?" * 3000,
        "(" * 5000 + "(?P<loss>a)" + ")" * 5000,
    ],
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_a_pattern_is_refused_with_a_way_out(message) -> None:
    for expression in REFUSED[message]:
        with pytest.raises(ConfigError, match=message):
            Pattern(expression)


HOSTILE = [
    (r"(?P<loss>(a+)+)$", "a" * 16_383 + "!"),
    (r"(?P<loss>a)|(?P<accuracy>a.*y)", "a" * 16_384),
    (r"(?P<loss>.*?.*?.*?.*?.*?.*?=)", "a" * 16_384),
    (r"(?P<loss>(?:.?){400}y|a)", "ab" * 8_192),
    (r"(?P<loss>(?:a|b)*a(?:a|b){300}y|a)", "abbabaab" * 2_048),
]


@pytest.mark.parametrize(("expression", "line"), HOSTILE)
def test_no_pattern_takes_longer_than_a_line_is_long(expression, line) -> None:
    """With a backtracking engine these take from minutes to for ever."""
    assert Pattern(expression).points(line) == []


@pytest.mark.parametrize("group", ["", "a*", "(?:a*)*", "x*", r"^|$|\b"])
def test_what_may_match_nothing_gives_no_point(group) -> None:
    assert Pattern(f"(?P<loss>{group})").points("a" * 16_000 + "!") == []


def test_lines_that_come_together_give_the_same_points() -> None:
    lines = [f"{step} of 9: {step / 4} {'x ' * (step % 7)}{step}\n" for step in range(3_000)]
    one, all_at_once = (PointReader(Pattern(r"(?P<step>\d+) of.* (?P<loss>\S+)")) for _ in range(2))
    log = "".join(lines).encode()
    all_at_once.expect(log)
    found = all_at_once.feed(log)
    assert len(found) == len(lines)
    assert found == [point for line in lines for point in one.feed(line.encode())]


def test_of_a_line_with_endless_matches_the_first_count() -> None:
    assert len(Pattern(r"(?P<loss>\d)").points("1" * 2_048)) == 100

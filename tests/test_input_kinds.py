"""How an input begins tells what it holds."""

import pytest

from dltools.input_kinds import Content, content_of, refusal


@pytest.mark.parametrize(
    ("data", "content"),
    [
        (b"", Content.UNKNOWN),
        (b"PAR1\x00\xff", Content.PARQUET),
        (b"\xff\xff\xff\xff\x00\x10", Content.ARROW),
        (b"time,host,kind\n", Content.OBSERVATIONS),
        (b'{"time":"2026-01-31T12:00:00Z","kind":"node"}\n', Content.OBSERVATIONS),
        (b"{damaged", Content.UNKNOWN),
        (b"[1, 2]", Content.UNKNOWN),
        (b'{"kind":"plan","v":1}\n{"kind":"end"}', Content.PLANS),
        (b'{"kind":"result"}\n', Content.RESULTS),
        (b'\n  {"policy":"noop","name":"a"}', Content.JOBS),
        (b'{"run":"x","name":"a"}', Content.JOBS),
        (b'{"policy":"noop","makespan":3}', Content.SUMMARY),
        (b"policy,seed,name,arrival\n", Content.JOBS),
        (b"\xef\xbb\xbfrun,seed,name,arrival\n", Content.JOBS),
        (b"policy,makespan\n", Content.SUMMARY),
        (b"{" * 100_000, Content.UNKNOWN),
    ],
)
def test_the_content_is_told(data, content) -> None:
    assert content_of(data) is content


def test_what_is_in_the_wrong_place_is_named_with_the_right_one() -> None:
    assert refusal(b"PAR1", "put dl-plan between") == "this is Parquet: put dl-plan between"
    assert refusal(b'{"kind":"plan"}').startswith("this is a plan: give it to dl-apply")
    assert refusal(b"policy,m") == "this is a table of runs: give it to dl-report"


def test_what_is_wanted_or_unknown_is_not_refused() -> None:
    assert refusal(b"PAR1") == refusal(b"time,host") == refusal(b"loss: 1") == ""

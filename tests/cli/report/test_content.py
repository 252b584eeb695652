"""The first line of an input tells what it holds."""

from __future__ import annotations

import pytest

from dltools.cli.report.content import Content, content_of


@pytest.mark.parametrize(
    ("data", "content"),
    [
        (b"", Content.OBSERVATIONS),
        (b"PAR1\x00\xff", Content.OBSERVATIONS),
        (b"time,host,kind\n", Content.OBSERVATIONS),
        (b'{"time":"2026-01-31T12:00:00Z","kind":"node"}\n', Content.OBSERVATIONS),
        (b"{damaged", Content.OBSERVATIONS),
        (b"[1, 2]", Content.OBSERVATIONS),
        (b'{"kind":"plan","v":1}\n{"kind":"end"}', Content.PLANS),
        (b'{"kind":"result"}\n', Content.RESULTS),
        (b'\n  {"policy":"noop","name":"a"}', Content.JOBS),
        (b'{"run":"x","name":"a"}', Content.JOBS),
        (b'{"policy":"noop","makespan":3}', Content.SUMMARY),
        (b"policy,seed,name,arrival\n", Content.JOBS),
        (b"\xef\xbb\xbfrun,seed,name,arrival\n", Content.JOBS),
        (b"policy,makespan\n", Content.SUMMARY),
        (b"{" * 100_000, Content.OBSERVATIONS),
    ],
)
def test_the_content_is_told(data: bytes, content: Content) -> None:
    assert content_of(data) is content

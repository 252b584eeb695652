"""Text that logs may hold, for tests of what reads them."""

from hypothesis import strategies as st

from dltools.probe.progress.lines import LogLines

_WORDS = st.sampled_from(
    ["loss", "Loss", "val", "acc", "train", "step", "epoch", "tensor(", ":", "=", " ", "'", '"',
     "1", "0.5", ",", ".", "e", "E5", "-", "+", "nan", "inf", "/", "[", "]", "#", "\r", "\x1b[",
     "m", "٣", "²", "ſ"]
)  # fmt: skip
line_text = st.text(max_size=60) | st.lists(_WORDS, max_size=25).map("".join)


def lines_of(raw: bytes) -> list[str]:
    lines = LogLines()
    return [line.text for line in lines.feed(raw) + lines.end()]

"""Text that logs may hold, for tests of what reads them."""

from dltools.probe.progress.clean_lines import LogLines


def lines_of(raw: bytes) -> list[str]:
    lines = LogLines()
    return [line.text for line in lines.feed(raw) + lines.end()]

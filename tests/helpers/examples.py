"""How many random examples a property is tried on."""

from __future__ import annotations

import hypothesis
from helpers.tools import QUICK


def examples(count: int) -> hypothesis.settings:
    """Try a property on so many examples, on a tenth in `make check`."""
    return hypothesis.settings(max_examples=max(3, count // 10) if QUICK else count)

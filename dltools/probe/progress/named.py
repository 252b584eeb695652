"""Name and value pairs: `Loss: 0.52 Time: 12.1`, `val_acc=0.9`, `step 400: train loss 3.32`.

The jobs of FlowCon's authors print the first of these lines. This extractor is the last resort, for
logs of no known family: only well-known names count.
"""

from __future__ import annotations

import re

from dltools.probe.progress.base import NUMBER, Point, Regex, report, whole

_PAIR = Regex(
    r"(?<![\w./-])"
    r"(?:(?P<prefix>train|training|val|valid|validation|eval|evaluation|test|total|avg|average|mean)"
    r"[ _./-]?)?"
    r"(?P<name>loss|accuracy|acc|perplexity|ppl|error|mse|mae|rmse|f1|auc|bleu|reward|iou|map|wer)"
    r"['\"]?(?:\s*[:=]\s*|\s+)['\"]?(?:tensor\()?"
    rf"(?P<value>{NUMBER})(?![\w:/]|[.,]\w|%\|)",
    re.IGNORECASE,
)
_COUNT = r"['\"]?[ \t]{0,4}[:=#\[]?[ \t]{0,4}['\"]?"
_STEP = Regex(
    rf"(?<![\w-])(?:global[ _])?(?:step|iter|iteration)s?{_COUNT}"
    r"(\d{1,3}(?:,\d{3})+|\d+)(?![\d.,]*\d)",
    re.IGNORECASE,
)
_EPOCH = Regex(rf"(?<![\w-])epoch{_COUNT}(\d+(?:\.\d+)?)", re.IGNORECASE)


_HINTS = ("loss", "acc", "err", "ppl", "perp", "rew", "map", "mse", "mae", "f1", "auc", "bleu",
          "iou", "wer")  # fmt: skip
"""A line without any of these has no such name; to look for them takes a tenth of the time."""

_PLAIN = {"average": "", "avg": "", "mean": ""}


class Named:
    """Finds well-known metric names followed by a number."""

    name = "named"
    partial = False

    def points(self, line: str) -> list[Point]:
        """Return one point for each name; if a name comes twice, the first one."""
        lower = line.lower()
        for hint in _HINTS:
            if hint in lower:
                break
        else:
            return []
        pairs = []
        for match in _PAIR.finditer(line):
            prefix = match["prefix"] or ""
            prefix = _PLAIN.get(prefix.lower(), prefix)
            pairs.append((f"{prefix}_{match['name']}" if prefix else match["name"], match["value"]))
        if not pairs:
            return []
        step = _STEP.search(line) if "step" in lower or "iter" in lower else None
        epoch = _EPOCH.search(line) if "epoch" in lower else None
        return report(
            self.name,
            pairs,
            step=whole(step[1]) if step else None,
            epoch=float(epoch[1]) if epoch else None,
        )

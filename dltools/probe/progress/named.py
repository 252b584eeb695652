"""Name and value pairs: `Loss: 0.52 Time: 12.1`, `val_acc=0.9`, `step 400: train loss 3.32`.

The first is the line that FlowCon's authors have their jobs print. Names are normalised:
lower case, `val_` for valid and validation, `train_` for training, `accuracy` for acc.
"""

from __future__ import annotations

import re

from dltools.probe.progress.base import NUMBER, Point, number

_PREFIX = {"training": "train", "valid": "val", "validation": "val", "evaluation": "eval",
           "average": "", "avg": "", "mean": ""}  # fmt: skip
_NAME = {"acc": "accuracy", "ppl": "perplexity"}

_PAIR = re.compile(
    r"(?<![\w./-])"
    r"(?:(?P<prefix>train|training|val|valid|validation|eval|evaluation|test|total|avg|average|mean)"
    r"[ _./-]?)?"
    r"(?P<name>loss|accuracy|acc|perplexity|ppl|error|mse|mae|rmse|f1|auc|bleu|reward|iou|map|wer)"
    r"['\"]?(?:\s*[:=]\s*|\s+)['\"]?(?:tensor\()?"
    rf"(?P<value>{NUMBER})(?![\w:/]|[.,]\w)",
    re.IGNORECASE,
)
_COUNT = r"['\"]?[ \t]{0,4}[:=#\[]?[ \t]{0,4}['\"]?"
_STEP = re.compile(
    rf"(?<![\w-])(?:global[ _])?(?:step|iter|iteration)s?{_COUNT}"
    r"(\d{1,3}(?:,\d{3})+|\d+)(?![\d.,]*\d)",
    re.IGNORECASE,
)
_EPOCH = re.compile(rf"(?<![\w-])epoch{_COUNT}(\d+(?:\.\d+)?)", re.IGNORECASE)


class Named:
    """Finds well-known metric names followed by a number."""

    source = "named"

    def points(self, line: str) -> list[Point]:
        """Return one point a name; of a name that comes twice, the first."""
        found: dict[str, float] = {}
        for match in _PAIR.finditer(line):
            found.setdefault(_normal(match["prefix"], match["name"]), number(match["value"]))
        if not found:
            return []
        found_step, epoch = _STEP.search(line), _EPOCH.search(line)
        step = int(found_step[1].replace(",", "")[:20]) if found_step else None
        return [
            Point(
                name,
                value,
                step if step is not None and step < 2**63 else None,
                float(epoch[1]) if epoch else None,
                self.source,
            )
            for name, value in found.items()
        ]


NAMED = Named()


def _normal(prefix: str | None, name: str) -> str:
    lower = (prefix or "").lower()
    word = _PREFIX.get(lower, lower)
    tail = _NAME.get(name.lower(), name.lower())
    return f"{word}_{tail}" if word else tail

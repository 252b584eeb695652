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
    rf"(?P<value>{NUMBER})(?![\w.:/])",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"(?<![\w-])(?:global[ _]step|step|iter|iteration)s?['\"]?\s*[:=#\[]*\s*(\d+)(?![\d.]*\d)", re.I
)
_EPOCH = re.compile(r"(?<![\w-])epoch['\"]?\s*[:=#\[]*\s*(\d+(?:\.\d+)?)", re.I)


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
        step, epoch = _STEP.search(line), _EPOCH.search(line)
        return [
            Point(
                name,
                value,
                int(step[1]) if step and len(step[1]) < 19 else None,
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

"""The note of a compaction: which new file takes the place of which old ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Merge:
    """What a compaction does in one folder: the `new` file gets the rows of the `old` ones."""

    new: Path
    old: tuple[Path, ...]

    def to_note(self, root: Path) -> str:
        """Return a note of it, with paths relative to the recording's directory."""
        names = [str(file.relative_to(root)) for file in (self.new, *self.old)]
        return json.dumps({"new": names[0], "old": names[1:]})

    @classmethod
    def of_note(cls, note: Path, root: Path) -> Merge | None:
        """Return what a note says; None where it is gone, or torn: then nothing had been done."""
        try:
            said = json.loads(note.read_text())
            return cls(root / said["new"], tuple(root / old for old in said["old"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

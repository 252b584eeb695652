"""Where an engine is. Which engine is there, `engine/registry.py` knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine is."""

    url: str
    """Such as unix:///PATH."""

    said_by: str
    """The option or variable that says so, for messages."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """What its member needs beside the URL, such as the certificates of a context of docker; {}:
    those of the environment."""

    name: str = ""
    """What to call the host until its engine says, "" where nothing is known."""

    @property
    def scheme(self) -> str:
        """What stands before the first colon, such as unix; "" where there is none."""
        return self.url.partition(":")[0] if ":" in self.url else ""

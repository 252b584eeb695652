"""Where an engine is. Which member of the interface is there, `engine/registry.py` knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine is: a URL, and the option or variable that says so.

    `settings` are what its member needs beside the URL, such as the certificates of a context of
    docker; {}: those of the environment. `name` is what to call the host until its engine says.
    """

    url: str
    said_by: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    @property
    def scheme(self) -> str:
        """What stands before the first colon, such as unix; "" where there is none."""
        return self.url.partition(":")[0] if ":" in self.url else ""

"""Progress points in what a job prints: one file a family of formats."""

from __future__ import annotations

from dltools.probe.progress.base import Extractor, Point
from dltools.probe.progress.named import NAMED
from dltools.probe.progress.pattern import Pattern

__all__ = ["NAMED", "Extractor", "Pattern", "Point"]

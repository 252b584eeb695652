"""Progress points in what a job prints: one file a family of formats."""

from __future__ import annotations

from dltools.probe.progress.base import Extractor, Family, Point
from dltools.probe.progress.detect import FAMILIES, Automatic
from dltools.probe.progress.pattern import Pattern
from dltools.probe.progress.point_reader import PointReader

__all__ = ["FAMILIES", "Automatic", "Extractor", "Family", "Pattern", "Point", "PointReader"]

"""tests/bench/structure.py as a module, and what it measures in this checkout."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]


@cache
def structure() -> ModuleType:
    """The module that `make structure` runs."""
    spec = importlib.util.spec_from_file_location("structure", ROOT / "tests/bench/structure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["structure"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@cache
def this_package() -> Any:
    """The structure of this checkout's package."""
    return structure().measure(ROOT)

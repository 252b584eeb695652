"""The public API of plug-ins: what its description names is there, and the example uses no more."""

import ast
import importlib
import re
from pathlib import Path

from dltools.plan.policy import interface
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.job import Job
from dltools.plan.signals.metric_series import Series

ROOT = Path(__file__).parents[3]
TEXT = interface.__doc__ or ""
FUNCTIONS = set(re.findall(r"`(dltools(?:\.\w+)+)`", TEXT))


def public() -> set[str]:
    return FUNCTIONS | {f"{interface.__name__}.{name}" for name in interface.__all__}


def test_all_that_is_public_is_there() -> None:
    assert len(FUNCTIONS) == 5
    for name in public():
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_what_is_public_of_a_job_is_there() -> None:
    history = ContainerHistory("c", "c", 0)
    fields = {name: one for name, one in vars(Job).items() if isinstance(one, property)}
    assert {"id", "use", "progress"} <= fields.keys()
    for name, field in fields.items():
        part = getattr(history, name)
        words = re.findall(r"`([a-z_]+)`", (field.__doc__ or "").partition("`metrics` has")[0])
        assert [word for word in words if not hasattr(part, word)] == []
    columns = re.findall(r"`([a-z_]+)`", (Job.progress.__doc__ or "").partition("`metrics` has")[2])
    assert columns
    assert [name for name in columns if not hasattr(Series(), name)] == []


def test_the_man_page_names_the_functions() -> None:
    page = (ROOT / "man" / "dltools-policies.7").read_text().partition(".Sh PLUG-INS")[2]
    assert [name for name in FUNCTIONS if name not in page] == []


def test_the_example_imports_nothing_else() -> None:
    tree = ast.parse((ROOT / "samples" / "plugin" / "newest.py").read_text())
    imported = {
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dltools")
        for name in node.names
    }
    assert imported <= public()

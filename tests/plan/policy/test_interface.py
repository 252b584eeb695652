"""The public API of plug-ins: what its description names is there, and the example uses no more."""

import ast
import importlib
import re
from pathlib import Path

from dltools.plan.policy import interface
from dltools.plan.signals import job
from dltools.plan.signals.container_history import ContainerHistory
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
    described = (job.__doc__ or "").split("\n- ")[1:]
    names = {name for one in described for name in re.findall("`([a-z_]+)`", one.partition(":")[0])}
    assert {"id", "use", "progress"} <= names
    assert [name for name in names if not hasattr(history, name)] == []
    for one in described:
        part, *words = re.findall("`([a-z_]+)`", one.partition("`metrics` has")[0])
        of_part = [word for word in words if word not in names]
        assert [word for word in of_part if not hasattr(getattr(history, part), word)] == []
    columns = re.findall("`([a-z_]+)`", (job.__doc__ or "").partition("`metrics` has")[2])
    assert {"times", "values", "steps"} <= set(columns)
    assert all(hasattr(Series(), name) for name in ("times", "values", "steps"))


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

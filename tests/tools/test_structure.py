"""The package's files and functions are as short as CONTRIBUTING.md asks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dltools"
FILE_LINES, FUNCTION_LINES = 500, 60


def too_long(path: Path) -> Iterator[str]:
    """Yield a file and its functions that are too long; an option of a tool is no line of one."""
    text = path.read_text()
    if len(text.splitlines()) > FILE_LINES:
        yield str(path)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            declares_options = "Annotated" in ast.unparse(node.args)
            begin = node.body[0].lineno if declares_options else node.lineno
            if (node.end_lineno or begin) - begin >= FUNCTION_LINES:
                yield f"{path}: {node.name}"


@pytest.mark.slow
def test_no_file_and_no_function_is_too_long() -> None:
    assert [one for path in sorted(PACKAGE.rglob("*.py")) for one in too_long(path)] == []

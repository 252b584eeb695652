"""The recipes of CONTRIBUTING.md, followed in a copy of the package, give what they show."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from helpers.tools import environment, write_scripts

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.S | re.M)
_SHOWN = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.M)


@dataclass(frozen=True)
class Block:
    """A fenced block: its kind (python, diff, console), its text, the file named before it."""

    kind: str
    text: str
    file: str


def recipes() -> dict[str, str]:
    parts = re.split(r"^### (.*)\n", TEXT.partition("## Recipes")[2], flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(recipe: str) -> Iterator[Block]:
    end = 0
    file = ""
    for match in _BLOCK.finditer(recipe):
        named = re.findall(r"`((?:dltools|man)/[\w/-]+\.\w+)`", recipe[end : match.start()])
        file, end = named[-1] if named else file, match.end()
        yield Block(match[2], textwrap.dedent(match[3]), file)


def patched(text: str, diff: str) -> str:
    """Make a change: the lines that stay or go must be in the text, once."""
    lines = diff.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
    new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
    assert text.count(f"\n{old}") == 1, f"not there, or more than once:\n{old}"
    return text.replace(f"\n{old}", f"\n{new}")


@dataclass(frozen=True)
class Copy:
    """A copy of the package, and the tools that run from it."""

    root: Path

    def follow(self, recipe: str) -> None:
        for block in blocks(recipe):
            file = self.root / block.file
            if block.kind == "python":
                assert not file.exists(), block.file
                file.write_text(block.text)
            elif block.kind == "diff":
                file.write_text(patched(file.read_text(), block.text))

    def run(self, line: str) -> str:
        """Run a line of the shell; return what it prints."""
        path = f"{self.root / 'bin'}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.root,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment(PATH=path, DLTOOLS_PLUGINS="") | {"PYTHONPATH": str(self.root)},
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


Following = Callable[[str], Copy]


@pytest.fixture(scope="module")
def following(tmp_path_factory: pytest.TempPathFactory) -> Following:
    """Give the copy in which a recipe has been followed, the same for each test."""
    return cache(lambda title: followed(title, tmp_path_factory.mktemp("followed")))


def followed(title: str, folder: Path) -> Copy:
    made = copied(folder)
    for name in ("docs", "helpers"):
        shutil.copytree(ROOT / "tests" / name, folder / "tests" / name)
    shutil.copy(ROOT / "README.md", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    made.follow(recipes()[title])
    made.run(f"PYTHONPATH=tests:. {shlex.quote(sys.executable)} -m docs.generate")
    return made


def copied(tmp_path: Path) -> Copy:
    ignored = shutil.ignore_patterns("*.pyc.*")  # what another process is just writing
    shutil.copytree(ROOT / "dltools", tmp_path / "dltools", ignore=ignored)
    shutil.copytree(ROOT / "man", tmp_path / "man")
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    write_scripts(tmp_path / "bin")
    return Copy(tmp_path)


def test_there_is_a_recipe_for_each_thing_that_is_added_often() -> None:
    assert list(recipes()) == [
        "Add a policy",
        "Add a family of logs",
        "Add a column",
        "Add an output format",
        "Add an engine",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("title", recipes())
def test_a_recipe_followed_gives_what_it_shows(title, following) -> None:
    recipe, copy = recipes()[title], following(title)
    shown = [
        pair
        for block in blocks(recipe)
        if block.kind == "console"
        for pair in _SHOWN.findall(block.text)
    ]
    assert shown
    for line, output in shown:
        assert copy.run(line) == output, line


@pytest.mark.slow
def test_a_new_column_is_in_parquet_and_in_prometheus(following) -> None:
    copy = following("Add a column")
    line = "step:276/6200 train_loss:4.5687 train_time:1500ms"
    copy.run(f"echo '{line}' | dl-probe - -o log.parquet")
    column = pq.read_table(copy.root / "log.parquet").column("elapsed_seconds")
    assert set(column.to_pylist()) == {1.5}
    text = copy.run(f"echo '{line}' | dl-probe - --format prom")
    assert "# TYPE dltools_progress_elapsed_seconds gauge\n" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "document", "said"),
    [
        ("Add a policy", "man/dl-plan.1", ".It Cm oldest"),
        ("Add a policy", "dltools/completions/dl-plan.fish", "oldest"),
        (
            "Add a policy",
            "man/dltools-policies.7",
            "oldest\n.Bl -tag -width mmmmm -compact\n.It Va floor No = 0.1\n",
        ),
        ("Add a family of logs", "man/dl-probe.1", ".It acme\nAcme"),
        ("Add a column", "man/dltools-observations.5", ".It Va elapsed_seconds"),
        ("Add an output format", "man/dl-probe.1", "ltsv"),
        ("Add an output format", "dltools/completions/dl-probe.bash", "ltsv"),
    ],
)
def test_make_docs_tells_of_it(title, document, said, following) -> None:
    assert said not in (ROOT / document).read_text()
    assert said in (following(title).root / document).read_text()

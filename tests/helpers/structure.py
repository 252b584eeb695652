"""The package's sizes and imports, and what breaks a bound: PYTHONPATH=tests python -m
helpers.structure. Every `import` counts, inside functions and for type checkers too."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "dltools"
FILE_LINES, FUNCTION_LINES = 500, 60
SMALL = 60
"""Lines below which a module that one other imports must say why it stands alone."""
STANDS_ALONE = "stands alone because"
"""Words by which a docstring says so: "It stands alone because it is started as a process."."""
DUPLICATED = 6
"""Lines in a row that make a duplicate where they stand twice."""

Graph = Mapping[str, set[str]]


@dataclass(frozen=True)
class Module:
    """A module: its dotted name, its file in the checkout, its text and tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def tells_why_alone(self) -> bool:
        """Whether its docstring says why it stands alone."""
        return STANDS_ALONE in " ".join((ast.get_docstring(self.tree) or "").split())

    @property
    def code(self) -> list[str]:
        left_out: set[int] = set()
        for node in ast.walk(self.tree):
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if is_text or isinstance(node, ast.Import | ast.ImportFrom):
                left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        lines = enumerate(map(str.strip, self.text.splitlines()), 1)
        return [line for at, line in lines if at not in left_out and line and line[0] != "#"]

    def imported(self, known: Iterable[str]) -> set[str]:
        names = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    names.add(whole if whole in known else node.module)
        return names & set(known) - {self.name}

    def long_functions(self) -> Iterator[str]:
        """Yield the functions that are too long; an option of a tool is no line of a function."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                begin = (
                    node.body[0].lineno if "Annotated" in ast.unparse(node.args) else node.lineno
                )
                if (node.end_lineno or begin) - begin >= FUNCTION_LINES:
                    yield f"{self.name}.{node.name}"


@dataclass(frozen=True)
class Structure:
    """What is told of a package: its modules by name."""

    modules: dict[str, Module]

    @property
    def module_graph(self) -> dict[str, set[str]]:
        return {name: module.imported(self.modules) for name, module in self.modules.items()}

    @property
    def folder_graph(self) -> dict[str, set[str]]:
        """The folders at every depth, the root among them, each with those that it imports."""
        folders = {name: str(module.path.parent) for name, module in self.modules.items()}
        return merged(self.module_graph, folders)

    @property
    def with_one_importer(self) -> dict[str, str]:
        """The modules that one other imports, with that one. Folders do not count."""
        importers: dict[str, list[str]] = {name: [] for name in self.modules}
        for name, others in self.module_graph.items():
            for other in others:
                importers[other].append(name)
        return {
            name: found[0]
            for name, found in importers.items()
            if len(found) == 1 and self.modules[name].path.name != "__init__.py"
        }

    @property
    def closets(self) -> list[str]:
        """The small modules that one other imports, and that do not say why they stand alone."""
        return [
            name
            for name in self.with_one_importer
            if self.modules[name].lines < SMALL
            and not self._is_member(name)
            and not self.modules[name].tells_why_alone
        ]

    def _is_member(self, name: str) -> bool:
        """Tell whether a module is a member of a family: it has what the registry looks for."""
        folder, _, stem = name.rpartition(".")
        names = {word for node in self.modules[name].tree.body for word in defined(node)}
        has_registry = f"{folder}.registry" in self.modules
        return "Log" in names or (has_registry and bool(names & {"FORMAT", stem.upper()}))

    @property
    def duplicated_lines(self) -> int:
        """How many lines of code stand in a run of `DUPLICATED` that stands elsewhere too."""
        runs: dict[tuple[str, ...], list[tuple[str, int]]] = {}
        for name, module in self.modules.items():
            lines = module.code
            for at in range(len(lines) - DUPLICATED + 1):
                runs.setdefault(tuple(lines[at : at + DUPLICATED]), []).append((name, at))
        places = [place for found in runs.values() if len(found) > 1 for place in found]
        return len({(name, at + more) for name, at in places for more in range(DUPLICATED)})

    @property
    def breaches(self) -> list[str]:
        """What breaks a bound, each as a word and the place."""
        every = self.modules.values()
        return sorted(
            [
                *(f"long file: {module.name}" for module in every if module.lines > FILE_LINES),
                *(f"long function: {one}" for module in every for one in module.long_functions()),
                *(f"closet: {name}" for name in self.closets),
            ]
        )


def defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a module defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def merged(arrows: Graph, into: Mapping[str, str]) -> dict[str, set[str]]:
    """Return a graph of what nodes belong to; arrows inside of one are none."""
    found: dict[str, set[str]] = {whole: set() for whole in into.values()}
    for node, others in arrows.items():
        found[into[node]] |= {into[other] for other in others} - {into[node]}
    return found


def reachable(start: str, arrows: Graph) -> set[str]:
    found: set[str] = set()
    waiting = list(arrows[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(arrows[node])
    return found


def circles(arrows: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one node, sorted."""
    reach = {node: reachable(node, arrows) for node in arrows}
    found = {
        tuple(sorted(other for other in reached if node in reach[other]))
        for node, reached in reach.items()
        if node in reached
    }
    return sorted(list(circle) for circle in found if len(circle) > 1)


def measure(directory: Path) -> Structure:
    """Read a package of a directory."""
    modules = {}
    for file in sorted((directory / PACKAGE).rglob("*.py")):
        path = file.relative_to(directory)
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = file.read_text()
        modules[name] = Module(name, path, text, ast.parse(text))
    return Structure(modules)


@cache
def this_package() -> Structure:
    """The structure of this checkout's package."""
    return measure(ROOT)


def main() -> None:
    found = this_package()
    in_circles = [*circles(found.module_graph), *circles(found.folder_graph)]
    print(f"{len(found.modules)} modules, {sum(m.lines for m in found.modules.values())} lines")
    print(f"{sum(map(len, found.module_graph.values()))} imports between modules")
    print(f"{found.duplicated_lines} lines in duplicates of {DUPLICATED}")
    print(f"circles of imports: {in_circles or 'none'}")
    for name, importer in sorted(found.with_one_importer.items()):
        print(f"one importer: {name} ({found.modules[name].lines} lines), by {importer}")
    print("\n".join(found.breaches) or "no bound is broken")


if __name__ == "__main__":
    main()

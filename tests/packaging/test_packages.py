"""The wheel and the sdist of `make package`: what they hold, and what an installed wheel leaves."""

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest
from helpers.tools import TOOLS

import dltools

ROOT = Path(__file__).parents[2]
PACKAGES = os.environ.get("DLTOOLS_PACKAGES")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PACKAGES, reason="make package builds and tries the packages"),
]

LARGEST_FILE, LARGEST_WHEEL, LARGEST_SDIST = 512 << 10, 2 << 20, 4 << 20
"""Bytes. A recording that is larger does not belong into the repository."""

STEM = f"dltools_cli-{dltools.__version__}"
"""`dltools` on the public index is another package."""

UNIT = "dltools/cli/apply/dltools-stream.service"
"""The unit of samples/systemd that --install-service writes."""

SHARED = {
    "man": "share/man",
    "bash": "share/bash-completion/completions",
    "fish": "share/fish/vendor_completions.d",
    "zsh": "share/zsh/site-functions",
}


def package(pattern: str) -> Path:
    """The one file of dist/ of this name."""
    (found,) = (ROOT / str(PACKAGES)).glob(pattern)
    return found


@pytest.fixture(scope="module")
def wheel() -> Path:
    return package(f"{STEM}-py3-none-any.whl")


@pytest.fixture(scope="module")
def sdist() -> Path:
    return package(f"{STEM}.tar.gz")


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def run(*words: object, **changes: str) -> str:
    """Run a program far from the checkout, without its modules; return what it prints."""
    own = ("DLTOOLS_", "PYTHON")
    env = {key: value for key, value in os.environ.items() if not key.startswith(own)} | changes
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd="/", env=env)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def tracked() -> set[str]:
    return set(run("git", "-C", ROOT, "ls-files").splitlines())


def shared() -> set[str]:
    """Where the man pages and completions of the repository go, below the prefix."""
    pages = {f"{SHARED['man']}/man{path.suffix[1:]}/{path.name}" for path in ROOT.glob("man/*.?")}
    completions = ROOT / "dltools" / "completions"
    bash = {f"{SHARED['bash']}/{path.stem}" for path in completions.glob("*.bash")}
    fish = {f"{SHARED['fish']}/{path.name}" for path in completions.glob("*.fish")}
    return pages | bash | fish | {f"{SHARED['zsh']}/_dltools"}


def test_the_sdist_holds_what_git_holds(sdist) -> None:
    with tarfile.open(sdist) as archive:
        files = [member for member in archive.getmembers() if member.isfile() or member.issym()]
    inside = {member.name.partition("/")[2]: member.size for member in files}
    assert inside.keys() - {"PKG-INFO"} == tracked()
    assert {name: size for name, size in inside.items() if size > LARGEST_FILE} == {}
    assert sdist.stat().st_size < LARGEST_SDIST


def test_the_wheel_holds_the_package_its_pages_and_its_completions(wheel) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = {name for name in names if name.startswith(f"{STEM}.dist-info/")}
    data = {f"{STEM}.data/data/{name}" for name in shared()} | {UNIT}
    assert names - about == {name for name in tracked() if name.startswith("dltools/")} | data
    assert wheel.stat().st_size < LARGEST_WHEEL


def test_the_sdist_and_the_repository_make_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    # `python -m build` makes the wheel of dist/ from the sdist.
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_a_plain_install_needs_neither_pictures_nor_clusters(metadata) -> None:
    wanted = metadata.get_all("Requires-Dist") or []
    plain = {re.split(r"[^\w-]", one)[0] for one in wanted if "extra ==" not in one}
    assert plain == {"typer", "rich", "docker", "nvidia-ml-py", "prometheus-client", "pyarrow"}
    extras = set(metadata.get_all("Provides-Extra") or [])
    assert {"plots", "interop", "test", "lint", "release"} <= extras


def test_a_tagged_commit_has_the_version_of_its_tag(metadata) -> None:
    tags = run("git", "-C", ROOT, "tag", "--points-at", "HEAD").split()
    versions = [tag[1:] for tag in tags if re.fullmatch(r"v\d[\w.]*", tag)]
    assert metadata["Version"] == dltools.__version__
    assert versions in ([], [dltools.__version__])
    if versions:
        assert f"## [{dltools.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.fixture(scope="module")
def empty(metadata: Message, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with what the tools need, and without them."""
    home = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", home)
    wanted = metadata.get_all("Requires-Dist") or []
    plain = [one for one in wanted if "extra ==" not in one]
    run(home / "bin/python", "-m", "pip", "install", "-q", *plain)
    return home


def files(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*")}


@pytest.fixture(scope="module")
def installed(empty: Path, wheel: Path) -> Iterator[Path]:
    """The environment with the wheel, which came from no index. Afterwards, nothing is left."""
    before = files(empty)
    pip = (empty / "bin/python", "-m", "pip")
    run(*pip, "install", "-q", "--no-index", "--no-deps", wheel)
    yield empty
    run(*pip, "uninstall", "-q", "-y", "dltools-cli")
    left = files(empty) - before
    folders = {name for name in left if (empty / name).is_dir()}
    assert (
        left
        == folders
        <= {"share", *(str(above) for name in shared() for above in Path(name).parents)}
    )


def test_an_installed_wheel_has_the_tools_the_pages_and_the_completions(installed) -> None:
    for name in TOOLS:
        assert run(installed / "bin" / name, "--version") == (
            f"{name} (dltools) {dltools.__version__}\n"
        )
    assert {name for name in shared() if not (installed / name).is_file()} == set()
    for name in TOOLS:
        assert (installed / SHARED["man"] / "man1" / f"{name}.1").is_file()
        assert (installed / SHARED["bash"] / name).is_file()
        assert (installed / SHARED["fish"] / f"{name}.fish").is_file()
    assert run(installed / "bin/python", "-m", "pip", "check").startswith("No broken")
    unit = run(installed / "bin/dl-apply", "--install-service", "--dry-run")
    assert unit == (ROOT / "samples/systemd" / Path(UNIT).name).read_text().partition("\n")[2]


def test_an_installed_wheel_plans(installed, tmp_path) -> None:
    recording = ROOT / "samples" / "digits" / "recording.parquet"
    words = ("--realize", "quota", recording)
    plan = run(installed / "bin/dl-plan", *words, XDG_STATE_HOME=str(tmp_path))
    assert '"op":"update"' in plan
    assert '"kind":"end"' in plan
    dry = subprocess.run(
        [installed / "bin/dl-apply", "--dry-run", "--offline"],
        input=plan,
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert (dry.returncode, dry.stderr) == (0, "")


def test_an_installed_wheel_writes_readme_s_page(installed, tmp_path) -> None:
    recording, page = ROOT / "samples" / "digits" / "recording.parquet", tmp_path / "night.html"
    run(installed / "bin/dl-report", recording, "-o", page)
    assert "matplotlib" in page.read_text()

"""Completions offer what there is, in real shells: parameters of the chosen policy above all."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dltools.plan.policy import registry
from dltools.plan.policy.parameters import describe
from dltools.plan.realisation.options import QueueParameters

ROOT = Path(__file__).parents[2]
COMPLETIONS = ROOT / "dltools" / "completions"
ZSH = Path(__file__).parent / "complete.zsh"

FISH = 'set -p fish_complete_path "$argv[1]"; complete -C "$argv[2]"'
BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
"_${1/-/_}"; printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(line: str) -> list[str]:
    """What bash offers; it splits words at = as well."""
    split = [word for part in line.split(" ") for word in re.split("(=)", part) if word or not part]
    file = COMPLETIONS / f"{split[0]}.bash"
    return _output("bash", "-c", BASH, "bash", str(file), *split)


def zsh(line: str) -> list[str]:
    shown = "".join(_output("zsh", "-f", str(ZSH), str(COMPLETIONS), line))
    return re.findall("<(.*?)>", shown)


def fish(line: str) -> list[str]:
    found = _output("fish", "--no-config", "-c", FISH, str(COMPLETIONS), line)
    return [offer.partition("\t")[0] for offer in found]


def _output(shell: str, *arguments: str) -> list[str]:
    if shutil.which(shell) is None:
        if os.environ.get("DLTOOLS_DOCS") == "require":
            pytest.fail(f"DLTOOLS_DOCS=require, but {shell} is not installed")
        pytest.skip(f"{shell} is not installed")
    env = {**os.environ, "PATH": f"{ROOT}/bin:{os.environ['PATH']}", "TERM": "xterm"}
    env.pop("DLTOOLS_POLICY", None)
    done = subprocess.run(
        [shell, *arguments], capture_output=True, text=True, check=True, env=env, timeout=120
    )
    return done.stdout.splitlines()


SHELLS = pytest.mark.parametrize(
    "shell", [bash, *(pytest.param(shell, marks=pytest.mark.slow) for shell in (zsh, fish))]
)


def parameters(*policies: str) -> dict[str, list[str]]:
    """The parameters of policies and those of every policy, and what each may be; nothing where it
    is a number."""
    found = {}
    for declared in (*(registry.get(name, []).parameters for name in policies), QueueParameters):
        for p in describe(declared):
            found[p["name"]] = (
                ["true", "false"] if p["type"] == "bool" else list(p["choices"] or ())
            )
    return found


def offered(*policies: str) -> set[str]:
    """How the parameters of policies are written: NAME= or NAME=VALUE."""
    return {
        f"{name}={value}"
        for name, values in parameters(*policies).items()
        for value in values or [""]
    }


def names(found: list[str]) -> set[str]:
    return {offer.partition("=")[0] for offer in found}


@SHELLS
@pytest.mark.parametrize("policy", registry.policies([]))
def test_the_parameters_of_the_chosen_policy_are_offered(shell, policy) -> None:
    found = shell(f"dl-plan -p {policy} --set ")
    if shell is zsh:  # name first, then value
        assert names(found) == set(parameters(policy))
    else:
        assert set(found) == offered(policy)


@SHELLS
def test_a_choice_is_offered(shell) -> None:
    found = shell("dl-plan -p dqoes --set gain=")
    assert {offer.rpartition("=")[2] for offer in found} == {"direct", "fixed"}


@SHELLS
@pytest.mark.parametrize(
    ("line", "policies"),
    [
        ("dl-plan --set ", ["flowcon"]),
        ("dl-plan --policy srtf --set ", ["srtf"]),
        ("dl-plan --policy=srtf --set ", ["srtf"]),
        ("dl-plan -psrtf --set itval=9 --set ", ["srtf"]),
        ("dl-sim -p las -p srtf --set ", ["las", "srtf"]),
        ("dl-sim --set ", ["noop", "flowcon", "tradl", "slaq", "las", "srtf"]),
    ],
)
def test_policies_are_found_however_they_are_named(shell, line, policies) -> None:
    assert names(shell(line)) == set(parameters(*policies))


@SHELLS
@pytest.mark.parametrize("tool", ["dl-plan", "dl-sim"])
def test_policies_are_offered(shell, tool) -> None:
    assert set(shell(f"{tool} --policy ")) == set(registry.policies([]))


@SHELLS
@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("dl-probe --format ", {"auto", "table", "parquet", "arrow", "jsonl", "csv", "prom"}),
        ("dl-apply --format ", {"auto", "table", "jsonl"}),
        ("dl-report --plot r", {"responses"}),
        ("dl-sim --best m", {"makespan", "mean_completion"}),
        ("dl-sim --generate b", {"burst:"}),
    ],
)
def test_choices_are_offered(shell, line, offers) -> None:
    assert set(shell(line)) == offers


@SHELLS
def test_a_choice_is_offered_after_an_equals_sign(shell) -> None:
    assert {offer.rpartition("=")[2] for offer in shell("dl-report --format=h")} == {"html"}


@SHELLS
@pytest.mark.parametrize("option", ["--state-dir ", ""])
def test_directories_and_files_are_offered(shell, option, tmp_path) -> None:
    (tmp_path / "recordings").mkdir()
    (tmp_path / "job.log").touch()
    found = {Path(offer).name for offer in shell(f"dl-probe {option}{tmp_path}/")}
    assert "recordings" in found
    assert ("job.log" in found) == (not option)


def test_bash_finds_the_shared_part_under_the_installed_names(tmp_path) -> None:
    for file in COMPLETIONS.glob("*.bash"):
        shutil.copy(file, tmp_path / file.stem)
    found = _output(
        "bash", "-c", BASH, "bash", str(tmp_path / "dl-apply"), "dl-apply", "--format", "t"
    )
    assert found == ["table"]

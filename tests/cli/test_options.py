"""How the values of common options are read, and how the help shows options."""

import importlib

import pytest
import typer
from helpers.tools import Tools

from dltools.cli import options
from dltools.cli.options import duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("1.5s", 1.5), (" 10m ", 600), ("2 h", 7200), ("1d", 86400)]
)
def test_durations_have_units(text, seconds) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "1w", "1m30", "nan"])
def test_what_is_no_duration_is_refused_with_an_example(text) -> None:
    with pytest.raises(typer.BadParameter, match=r"is not a duration such as 1.5s, 10m or 2h"):
        duration(text)


def test_a_duration_has_an_end() -> None:
    with pytest.raises(typer.BadParameter, match="longer than thirty years"):
        duration("20000d")


def test_a_command_is_a_path_or_words_and_no_shell() -> None:
    assert options.command("/bin/echo 'a b' $HOME;c") == ["/bin/echo", "a b", "$HOME;c"]


def test_the_path_of_a_command_may_have_blanks(tmp_path) -> None:
    (tmp_path / "tell me").touch(0o755)
    path = str(tmp_path / "tell me")
    assert options.command(path) == [path]


@pytest.mark.parametrize("text", ["", " ", "a 'b", "no-such-program-at-all x"])
def test_what_is_no_command_is_wrong_usage(text) -> None:
    with pytest.raises(typer.BadParameter, match=r"no such program|No closing quotation"):
        options.command(text)


def test_the_options_that_few_need_are_a_group_of_their_own() -> None:
    shown = Tools()("dl-apply", "--help").stdout.decode()
    usual, _, expert = shown.partition("\nExpert options:\n")
    assert "\nOptions:\n" in usual
    assert "  -n, --dry-run " in usual
    assert "  -h, --help " in usual
    assert "  --lease TIME " in expert


@pytest.mark.parametrize("tool", ["probe", "plan", "apply", "sim", "report"])
def test_no_option_takes_two_values(tool) -> None:
    """As one would whose value is read as a tuple."""
    command = typer.main.get_command(importlib.import_module(f"dltools.cli.{tool}").app)
    taken = {one.opts[0]: one.nargs for one in command.params if one.opts[0].startswith("-")}
    assert set(taken.values()) == {1}, taken

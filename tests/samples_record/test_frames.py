"""The recording of a terminal: what stands on the screen in the end, and how it is drawn."""

import re
from xml.etree import ElementTree

from recorder.frames import ROWS, Frame, svg
from recorder.session import typed


def test_the_screen_shows_what_was_printed_last() -> None:
    shown = "\x1b[1mone\x1b[0m\r\nworking\rdone\r\n\x1b[?25hlast  \r\n\r\n"
    assert Frame("", "look", shown).lines(90) == ["$ look", "one", "doneing", "last"]


def test_a_long_line_goes_on_in_the_next_row() -> None:
    assert Frame("", "look", "abcdefg\n").lines(3) == ["$ look", "abc", "def", "g"]


def test_ctrl_c_has_a_row_of_its_own() -> None:
    assert Frame("", "act", "^CCONTAINER\r\n").lines(9) == ["$ act", "^C", "CONTAINER"]


def test_a_long_answer_shows_its_end() -> None:
    lines = Frame("", "look", "".join(f"{number}\n" for number in range(100))).lines(90)
    assert (len(lines), lines[1], lines[-1]) == (ROWS - 1, "...", "99")


def test_each_command_has_its_time_and_no_text_is_small() -> None:
    frames = [Frame("a <note>", "dl-probe | dl-plan", "x\n"), Frame("b", "dl-apply --undo", "")]
    picture = svg(frames, 90)
    root = ElementTree.fromstring(picture)
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["# 1 of 2: a <note>", "$ dl-probe | dl-plan", "x",
                     "# 2 of 2: b", "$ dl-apply --undo"]  # fmt: skip
    assert re.findall(r"animation-delay: (\d+)s", picture) == ["0", "7"]
    assert "50.00%" in picture
    assert int(re.findall(r"font: (\d+)px", picture)[0]) >= 12


def test_a_line_runs_at_a_terminal() -> None:
    assert typed("two() { echo 2; }", "two; test -t 1 && stty size") == "2\r\n60 90\r\n"


def test_a_line_without_end_gets_ctrl_c_after_what_happens_meanwhile() -> None:
    seen: list[str] = []
    line = "trap 'echo stopped; exit' INT; echo begun; while :; do sleep 0.1; done"
    shown = typed("", line, seconds=0.5, meanwhile=lambda: seen.append("looked"))
    assert seen == ["looked"]
    assert shown.startswith("begun") and shown.endswith("stopped\r\n")

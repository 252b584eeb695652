"""The generated parts of documents: what is filled, what stays, how text becomes mdoc."""

import pytest
from docs.generate.marked import filled

PAGE = """.Sh OPTIONS
.\\" generated: options
old
.\\" end
By hand.
"""


def test_only_what_stands_between_the_markers_is_written() -> None:
    made = filled("page", PAGE, {"options": "new\nlines"})
    assert made == PAGE.replace("old", "new\nlines")
    assert filled("page", made, {"options": "new\nlines"}) == made


@pytest.mark.parametrize(
    ("start", "end"), [("# generated: x", "# end"), ("<!-- generated: x -->", "<!-- end -->")]
)
def test_a_part_is_indented_as_its_marker(start, end) -> None:
    text = f"if\n    {start}\n    {end}\nfi\n"
    assert filled("file", text, {"x": "one\n    two"}) == (
        f"if\n    {start}\n    one\n        two\n    {end}\nfi\n"
    )


def test_a_marker_that_is_missing_or_unknown_is_named() -> None:
    with pytest.raises(ValueError, match="page: no line says `generated: exits`"):
        filled("page", PAGE, {"options": "", "exits": ""})
    with pytest.raises(ValueError, match="page: nothing fills `generated: options`"):
        filled("page", PAGE, {})

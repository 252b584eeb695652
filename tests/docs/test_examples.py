"""The jq programs of the documentation print something, whatever settings a plan makes."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.encoding import decode, encode

from dltools.observations.formats.jsonl import FORMAT as JSONL
from dltools.plan.realisation.options import Mode

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "samples" / "digits" / "recording.parquet"


def programs(page: str) -> list[str]:
    text = (ROOT / page).read_text().replace("\\e", "\\").replace("\\-", "-")
    return re.findall(r"\bjq -r\s+'(.*?)'", text, re.S)


def printed(program: str, records: bytes) -> list[list[str]]:
    """What a program prints of records: cells of lines."""
    if shutil.which("jq") is None:
        if os.environ.get("DLTOOLS_DOCS") == "require":
            pytest.fail("DLTOOLS_DOCS=require, but jq is not installed")
        pytest.skip("jq is not installed")
    done = subprocess.run(
        ["jq", "-r", program], input=records, capture_output=True, check=True, timeout=120
    )
    return [line.split("\t") for line in done.stdout.decode().splitlines()]


def observations() -> bytes:
    return encode(JSONL, decode(RECORDING.read_bytes()))


def _of_two_threads(folder: Path) -> Path:
    """The recording as of jobs of two threads each: jobs of one thread are left as they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = decode(RECORDING.read_bytes())
    at = table.schema.get_field_index("thread_count")
    doubled = [count and 2 * count for count in table["thread_count"].to_pylist()]
    column = pa.array(doubled, table.schema.field(at).type)
    found = folder / "two.parquet"
    pq.write_table(table.set_column(at, table.schema.field(at), column), found)
    return found


def check(page: str, records: bytes) -> None:
    found = programs(page)
    assert found
    for program in found:
        lines = printed(program, records)
        assert lines, program
        assert all(cell.strip() not in ("", "null") for line in lines for cell in line), program


@pytest.mark.parametrize("mode", ["auto", "quota", "weight", "priority", "rotate"])
def test_what_is_printed_of_plans_and_results(tool, mode, tmp_path) -> None:
    assert mode in ("auto", *Mode)
    recording = _of_two_threads(tmp_path) if mode == "auto" else RECORDING
    plan = tool("dl-plan", "--every", "--realize", mode, recording).stdout
    results = tool("dl-apply", "--dry-run", "--offline", input=plan).stdout
    check("man/dl-plan.1", plan)
    check("docs/twenty-people.md", plan)
    check("man/dl-apply.1", results.replace(b'"planned"', b'"applied"'))


def test_what_is_printed_of_observations() -> None:
    check("man/dl-probe.1", observations())

"""Tables of jobs as runs."""

import pytest

from dltools.cli.report.loading import read_job_table
from dltools.cli.report.tables import rows_by_job
from dltools.errors import DataError

CSV = b"policy,seed,name,arrival,finish\nnoop,0,a,0,10\nnoop,1,a,0,12\nsrtf,0,a,0,9\n"


def test_policies_are_runs_and_seeds_are_repeats() -> None:
    noop, srtf = read_job_table(CSV, "f", "")
    assert (noop.label, srtf.label) == ("noop", "srtf")
    assert [[job.finish for job in repeat] for repeat in noop.repeats] == [[10.0], [12.0]]
    assert len(srtf.repeats) == 1


def test_a_name_stands_before_the_policies_or_for_a_single_one() -> None:
    assert [run.label for run in read_job_table(CSV, "f", "mine")] == ["mine/noop", "mine/srtf"]
    (single,) = read_job_table(b'{"run":"noop","name":"a","arrival":0}\n', "f", "mine")
    assert single.label == "mine"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"policy,name,arrival\n", "f: the table has no jobs"),
        (b"policy,name,arrival\nnoop,a,soon\n", "f: row 1: arrival: "),
        (b"policy,name,arrival\nnoop,a,1e300\n", "f: row 1: arrival is not a number of seconds"),
        (b"policy,name,arrival\nnoop,,1\n", "f: row 1: no name"),
        (b'{"policy":"noop","name":"a"}', "f: row 1: no arrival"),
        (b'{"policy":"noop","name":"a","arrival":0}\n{x', "f: line 2: "),
        (b'{"policy":"noop","name":"a","arrival":0}\n[]', "f: line 2: not an object"),
        (b"{\xff", "f: 'utf-8' codec"),
    ],
)
def test_what_is_malformed_is_named(data, fault) -> None:
    with pytest.raises(DataError, match="^" + fault):
        read_job_table(data, "f", "")


def test_jobs_are_listed_with_the_seeds_of_their_table() -> None:
    lines = [f"noop,{seed},a,0" for seed in (7, 8)] + ["srtf,8,a,0", "fair,x,a,0", "fair,y,a,0"]
    lines += [f"las,{'9' * 5000},a,0"]
    runs = read_job_table("\n".join(["policy,seed,name,arrival", *lines]).encode(), "f", "")
    found = [(row["run"], row["seed"]) for row in rows_by_job(runs)]
    assert found == [("noop", 7), ("noop", 8), ("srtf", 8), ("fair", 0), ("fair", 1), ("las", 0)]

"""What the journal says that owners asked for."""

from pathlib import Path
from typing import Any

import pytest
from helpers.journal_entries import journal_entry

from dltools.engine import state_records
from dltools.engine.journal import Entry, Journal, OwnersJournals
from dltools.engine.limits.limit_updates import recorded_limits
from dltools.notation.limits import Limits

ID, OTHER = "a" * 64, "b" * 64


def add(directory: Path, id_: str = ID, **changes: Any) -> Entry:
    """Journal a container as dl-apply does."""
    values: dict[str, Any] = {
        "fields": {"NanoCpus": 500_000_000, "CpuShares": 2048, "CpusetCpus": "0"},
        "settings": {"cpus": 0.5, "weight": 2048.0, "cpuset": "0"},
        "kernel": {"cpu.shares": "2048"},
    }
    entry = journal_entry(id_, **values | changes)
    Journal(directory / "journal").add(entry)
    return entry


def test_an_entry_tells_what_the_owner_asked_for(tmp_path) -> None:
    add(tmp_path)
    found = OwnersJournals([tmp_path], recorded_limits).read([ID, OTHER])
    assert found == {ID: Limits(cpus=0.5, weight=2048.0, cpuset="0")}
    assert OwnersJournals([tmp_path], recorded_limits).read([OTHER]) == {}
    assert OwnersJournals([tmp_path / "nowhere"], recorded_limits).read([ID]) == {}


def test_of_version_2_the_engine_s_record_tells_the_weight(tmp_path) -> None:
    settings = {"cpus": None, "weight": 808.96, "cpuset": None}
    add(tmp_path, settings=settings, kernel={"cpu.max": "max 100000", "cpu.weight": "79"})
    found = OwnersJournals([tmp_path], recorded_limits).read([ID])
    assert found == {ID: Limits(cpus=None, weight=2048.0, cpuset=None)}


def test_the_first_of_several_entries_counts(tmp_path) -> None:
    add(tmp_path / "late", since="2026-01-31T12:00:01Z", settings={"cpus": 0.1})
    add(tmp_path / "early", since="2026-01-31T12:00:00Z", settings={"cpus": 0.5})
    directories = [tmp_path / "late", tmp_path / "early"]
    for order in (directories, directories[::-1]):
        found = OwnersJournals(order, recorded_limits).read([ID])
        assert found == {ID: Limits(cpus=0.5, weight=1024.0)}


def test_an_entry_is_read_once(tmp_path, monkeypatch) -> None:
    read: list[bytes] = []
    parse = state_records.parse_record
    monkeypatch.setattr(state_records, "parse_record", lambda one: read.append(one) or parse(one))
    journal, limits = Journal(tmp_path / "journal"), OwnersJournals([tmp_path], recorded_limits)
    entry = add(tmp_path)
    for _ in range(3):
        assert limits.read([ID])[ID] == Limits(cpus=0.5, weight=2048.0, cpuset="0")
    assert len(read) == 1
    journal.remove(entry)
    assert limits.read([ID]) == {}
    add(tmp_path, settings={"cpus": 0.25})
    assert limits.read([ID])[ID] == Limits(cpus=0.25, weight=1024.0)
    assert len(read) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"v": 1, "fields": [], "settings": {}, "kernel": {}}',
        '{"v": 1, "fields": {}, "settings": {"cpus": "1"}, "kernel": {}}',
        '{"v": 1, "fields": {}, "settings": {"cpus": -1}, "kernel": {}}',
        '{"v": 1, "fields": {}, "settings": {"cpus": true}, "kernel": {}}',
        '{"v": 1, "fields": {}, "settings": {"cpu_weight": 1e300}, "kernel": {}}',
        '{"v": 1, "fields": {"CpuShares": []}, "settings": {}, "kernel": {}}',
        '{"v": 1, "fields": {}, "settings": {"cpuset": 3}, "kernel": {}}',
    ],
)
def test_a_damaged_entry_is_a_reason_of_its_container_alone(tmp_path, text) -> None:
    add(tmp_path, OTHER)
    (tmp_path / "journal" / f"{ID}.json").write_text(text)
    found = OwnersJournals([tmp_path], recorded_limits).read([ID, OTHER])
    assert f"{ID}.json: damaged journal entry" in str(found[ID])
    assert found[OTHER] == Limits(cpus=0.5, weight=2048.0, cpuset="0")


def test_a_journal_that_cannot_be_trusted_hides_the_owners_of_all(tmp_path) -> None:
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    add(own, OTHER)
    theirs.mkdir()
    (theirs / "journal").symlink_to(own / "journal")
    found = OwnersJournals([theirs, own], recorded_limits).read([ID, OTHER])
    assert "a link, which is not followed" in str(found[ID])
    assert found[OTHER] == Limits(cpus=0.5, weight=2048.0, cpuset="0")
    assert OwnersJournals([theirs], recorded_limits).read([]) == {}


def test_what_is_about_to_be_set_is_ours_where_there_is_an_entry(tmp_path) -> None:
    add(tmp_path, ours=({"weight": 2048.0}, {"weight": 2.0}))
    journal = Journal(tmp_path / "journal")
    assert journal.add_ours(ID, Limits(weight=4096.0))
    entry = journal.find(ID)
    assert entry is not None and [one["weight"] for one in entry.ours] == [2048.0, 2.0, 4096.0]
    assert not journal.add_ours(OTHER, Limits(weight=4096.0))
    assert journal.find(OTHER) is None


def test_a_lease_keeps_what_was_set_since_its_entry_was_read(tmp_path) -> None:
    add(tmp_path, ours=({"weight": 2048.0}, {"weight": 2.0}))
    journal = Journal(tmp_path / "journal")
    (entry,) = journal.all()
    journal.add_ours(ID, Limits(weight=4096.0))
    journal.lease([entry], until="2026-01-01T00:00:00Z")
    newest = journal.find(ID)
    assert newest is not None
    assert (newest.until, newest.ours[-1]) == ("2026-01-01T00:00:00Z", {"weight": 4096.0})

"""Plans for jobs of the test cluster, and dl-apply killed while it moves them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from helpers.cluster_nodes import Node
from helpers.containers import eventually

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Action, Op, Plan
from dltools.notation.times import format_time

KILLED = """
import os, signal, sys
from dltools.apply.migrate.migration import MigrationFiles, Step
write = MigrationFiles.write
def killed(self, migration):
    if migration.step is Step({step!r}) and {before}:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, migration)
    if migration.step is Step({step!r}):
        os.kill(os.getpid(), signal.SIGKILL)
MigrationFiles.write = killed
sys.argv = ["dl-apply", *sys.argv[1:]]
from dltools.cli.apply import main
main()
"""
"""dl-apply, which is killed just before or after it notes that it begins a step."""


def order(node: Node, to: Node, name: str = "job", **changes: Any) -> bytes:
    id_ = node.get(name, "{{.Id}}")
    return _plan(node, id_, name, op=Op.MIGRATE, to=to.name, **changes)


def limit(node: Node, id_: str, cpus: float) -> bytes:
    return _plan(node, id_, "job", op=Op.UPDATE, set={"cpus": cpus})


def _plan(node: Node, id_: str, name: str, **changes: Any) -> bytes:
    values = {
        "id": 1,
        "host": node.name,
        "container_name": name,
        "container_id": id_,
        "set": {},
        "expect": {},
        "reason": "test",
    }
    at = format_time(datetime.now(UTC))
    return dump_plan(Plan("test", at, {}, {}, None, (Action(**(values | changes)),))).encode()


def goes_on(trace: Callable[[], list[int]]) -> None:
    """The job trains, and no epoch was ever trained by two."""
    seen = len(trace())
    eventually(trace, lambda found: len(found) > seen + 2)
    found = trace()
    assert found == sorted(set(found)), found

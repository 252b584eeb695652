"""Work done as another user, in a process of its own: root can become anybody."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

import pytest
from helpers.forks import become, import_all, leave
from helpers.tools import environment

T = TypeVar("T")

STRANGER = 54_321
"""A user who has nothing here."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def as_user(uid: int, work: Callable[[], T]) -> T:
    """Do the work as a user, and return what it returns. An error is raised here again."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        try:
            outcome: tuple[T | None, Exception | None] = (work(), None)
        except Exception as error:
            outcome = (None, type(error)(*error.args))
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(outcome, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    value, error = pickle.loads(said)
    if error is not None:
        raise error
    return value


def tool_as(
    uid: int, name: str, *arguments: object, env: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    """Run a tool as a user who has no group, no capability, and no home."""
    code = f"from helpers.other_users import become_tool; become_tool({uid}, {name!r})"
    path = os.pathsep.join(filter(None, sys.path))
    home = {"HOME": "/nonexistent", "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment(**home, **env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )


def become_tool(uid: int, name: str) -> NoReturn:
    """Import as root what the user may not read, become the user, and then the tool."""
    import_all()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    asked = {"name": name, "arguments": sys.argv[1:], "env": dict(os.environ), "cwd": "/"}
    leave(become(asked, []))

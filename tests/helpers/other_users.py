"""Work done as another user, in a process of its own: root can become anybody."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

import pytest

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

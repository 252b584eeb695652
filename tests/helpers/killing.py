"""Processes that are killed just before or just after one of their system calls.

Counted are the calls that change something: files, names, locks, processes, and requests to the
engine that are not GET. The kernel kills the process at the very call, so that any state which a
crash can leave behind can be made.
"""

import ctypes
import os
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_X86_64 = {
    "write": 1, "pwrite64": 18, "sendto": 44, "sendmsg": 46, "clone": 56, "fork": 57, "vfork": 58,
    "kill": 62, "fsync": 74, "ftruncate": 77, "rename": 82, "mkdir": 83, "unlink": 87, "chmod": 90,
    "fchmod": 91, "exit_group": 231, "openat": 257, "mkdirat": 258, "unlinkat": 263,
    "renameat": 264, "renameat2": 316, "clone3": 435, "flock": 73,
}  # fmt: skip
_AARCH64 = {
    "write": 64, "pwrite64": 68, "sendto": 206, "sendmsg": 211, "clone": 220, "kill": 129,
    "fsync": 82, "ftruncate": 46, "mkdirat": 34, "unlinkat": 35, "fchmod": 52, "exit_group": 94,
    "openat": 56, "renameat": 38, "renameat2": 276, "clone3": 435, "flock": 32,
}  # fmt: skip
_CALLS = {
    number: name
    for name, number in {"x86_64": _X86_64, "aarch64": _AARCH64}.get(os.uname().machine, {}).items()
}

_TRACEME, _CONT, _SYSCALL, _SETOPTIONS, _SYSCALL_INFO = 0, 7, 24, 0x4200, 0x420E
_MARK_CALLS, _KILL_WITH_TRACER = 1, 1 << 20
_ENTRY, _EXIT = 1, 2
_CREATES = os.O_CREAT | os.O_TRUNC
_libc = ctypes.CDLL(None, use_errno=True)


class KillingError(Exception):
    """System calls cannot be traced here; the message says why."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: the changing calls that it began, in order, and its exit code, None
    where it was killed."""

    calls: tuple[str, ...]
    code: int | None


def run_until(work: Callable[[], int], number: int | None, *, after: bool = False) -> Ended:
    """Fork, do the work there, and kill the fork at its changing call of this number (from 0),
    before or after it is made. None, or a number beyond the last call, lets it end.

    Raises `KillingError`.
    """
    if not _CALLS:
        raise KillingError(f"no table of system calls for {os.uname().machine}")
    pid = os.fork()
    if pid == 0:
        _libc.ptrace(_TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(work())
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        raise KillingError("the kernel lets no process be traced here")
    _ptrace(_SETOPTIONS, pid, _MARK_CALLS | _KILL_WITH_TRACER)
    return _Tracee(pid).run(number, after=after)


class _Tracee:
    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._calls: list[str] = []

    def run(self, number: int | None, *, after: bool) -> Ended:
        forwarded = 0
        while True:
            _ptrace(_SYSCALL, self._pid, forwarded)
            forwarded = 0
            _, status = os.waitpid(self._pid, 0)
            if not os.WIFSTOPPED(status):
                return Ended(
                    tuple(self._calls),
                    None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status),
                )
            if os.WSTOPSIG(status) != signal.SIGTRAP | 0x80:
                forwarded = os.WSTOPSIG(status)
                continue
            is_last = self._note() and len(self._calls) - 1 == number
            if is_last:
                if after and self._calls[-1] != "exit_group":
                    _ptrace(_SYSCALL, self._pid, 0)
                    os.waitpid(self._pid, 0)
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
                return Ended(tuple(self._calls), None)

    def _note(self) -> bool:
        """Note the call at which the process stands; tell whether it begins to change something."""
        buffer = ctypes.create_string_buffer(88)
        _ptrace(_SYSCALL_INFO, self._pid, ctypes.addressof(buffer), address=88)
        if buffer.raw[0] != _ENTRY:
            return False
        number, *arguments = struct.unpack_from("<7Q", buffer.raw, 24)
        name = _CALLS.get(number)
        if name is None or (name == "openat" and not arguments[2] & _CREATES):
            return False
        if name == "sendto":
            verb = self._text(arguments[1])
            if verb.startswith("GET"):
                return False
            name = f"sendto {verb.partition(' ')[0]}"
        self._calls.append(name)
        return True

    def _text(self, address: int) -> str:
        with Path(f"/proc/{self._pid}/mem").open("rb") as memory:
            memory.seek(address)
            return memory.read(8).decode("latin-1")


def _ptrace(request: int, pid: int, data: int, address: int = 0) -> None:
    result = _libc.ptrace(request, pid, ctypes.c_void_p(address), ctypes.c_void_p(data))
    if result < 0:
        number = ctypes.get_errno()
        raise KillingError(f"ptrace: {os.strerror(number)}")

"""How the classes of jobs look in a chart. The policies' tones decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dltools.plan.policy.interface import JobClass, Tone
from dltools.report.run import ClassChange


@dataclass(frozen=True, slots=True)
class Look:
    """A fill colour and a hatch, so that classes differ in grey too."""

    fill: str
    hatch: str = ""


NO_CLASS = Look("#d4d4d4")

# A job that is to go first is dark, one that makes room is light.
_BY_TONE = {
    Tone.GROWING: Look("#08519c"),
    Tone.WATCHED: Look("#6baed6", "///"),
    Tone.DONE: Look("#deebf7", "..."),
    Tone.MISSED: Look("#d6604d", "xxx"),
}
_OTHERS = (
    Look("#5ab4ac"),
    Look("#f4a582", "///"),
    Look("#d9f0d3", "\\\\\\"),
    Look("#762a83"),
    Look("#fee391", "xxx"),
    Look("#e0e0e0", "+++"),
)


class ClassLooks:
    """The looks of the classes in one chart, each class its own."""

    def __init__(self) -> None:
        self._looks: dict[JobClass, Look] = {}
        self._has_unclassed = False

    def __getitem__(self, job_class: JobClass | None) -> Look:
        """Return a class's look: that of its tone, or the next other where that is taken."""
        if job_class is None:
            self._has_unclassed = True
            return NO_CLASS
        if job_class not in self._looks:
            taken = set(self._looks.values())
            wanted = _BY_TONE.get(job_class.tone)
            free = [look for look in (wanted, *_OTHERS) if look is not None and look not in taken]
            self._looks[job_class] = free[0] if free else _OTHERS[len(taken) % len(_OTHERS)]
        return self._looks[job_class]

    def __iter__(self) -> Iterator[tuple[str, Look]]:
        """Yield the label and the look of each class in use."""
        for job_class, look in self._looks.items():
            name, word = job_class.name, job_class.word
            label = name if word == name else f"{name} {word}".strip()
            yield ("no class" if label == "-" else label), look
        if self._has_unclassed:
            yield ("no class yet" if self._looks else "running"), NO_CLASS


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time (s) in which a job is in one class, None before its first one is known."""

    begin: float
    end: float
    job_class: JobClass | None


def stretches(changes: Sequence[ClassChange], begin: float, end: float) -> list[Stretch]:
    """Return the stretches that fill a job's life."""
    found: list[Stretch] = []
    since, now = begin, None
    for time, job_class in changes:
        time = min(max(time, begin), end)
        if time > since:
            found.append(Stretch(since, time, now))
        since, now = time, job_class
    if end > since or not found:
        found.append(Stretch(since, end, now))
    return found

"""Progress from files inside containers: one file a format, read in place as they grow."""

from dltools.probe.files.source import FileSource

__all__ = ["FileSource"]

"""Copying a checkpoint out of a container, with a manifest: whole, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dltools.apply.deliver.archive import CopiedFile, digest, unpack
from dltools.apply.deliver.delivery import Delivery
from dltools.files import sync_folder
from dltools.notation.times import format_time

MANIFEST = "manifest.json"
CHECKPOINT = "checkpoint"


def copy_checkpoint(delivery: Delivery, chunks: Iterator[bytes], parent: Path) -> Path:
    """Write the checkpoint in an archive, and its manifest, into a new folder of `parent`, which
    appears when all of it is on disk; return the folder.

    A folder that an earlier run has completed is returned as it is, and what it has left half
    done is removed. Raises `DamagedError` or OSError.
    """
    folder = parent / delivery.folder_name
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.glob(f".{delivery.folder_name}.*"):
        shutil.rmtree(left)
    if is_delivered(delivery, folder):
        return folder
    staged = parent / f".{delivery.folder_name}.{uuid.uuid4().hex[:8]}"
    try:
        (staged / CHECKPOINT).mkdir(parents=True)
        files = unpack(chunks, staged / CHECKPOINT)
        with (staged / MANIFEST).open("xb") as file:
            file.write(json.dumps(_manifest(delivery, files), indent=2).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        for inner in [path for path in staged.rglob("*") if path.is_dir()]:
            sync_folder(inner)
        sync_folder(staged)
        staged.rename(folder)
        sync_folder(parent)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return folder


def is_delivered(delivery: Delivery, folder: Path) -> bool:
    """Tell whether a folder holds a delivery."""
    found = read_manifest(folder)
    return bool(found) and found.get("key") == delivery.key


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a delivered model, {} if there is none."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _manifest(delivery: Delivery, files: list[CopiedFile]) -> dict[str, Any]:
    met = delivery.met
    return {
        "container": {"id": delivery.container_id, "name": delivery.container_name},
        "host": delivery.host,
        "image": delivery.image,
        "metric": met and met.metric,
        "objective": met and met.objective,
        "target": met and met.target,
        "value": met and met.value,
        "time": met and met.time,
        "delivered": format_time(datetime.now(UTC)),
        "checkpoint": delivery.checkpoint,
        "size": sum(file.size for file in files),
        "sha256": digest(files),
        "files": [asdict(file) for file in files],
        "key": delivery.key,
    }

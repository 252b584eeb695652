"""Rows of recordings with several hosts and jobs, for reports."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from dltools.observations.table import Row, to_table

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def node(time: float, host: str = "h", cpus: float = 2.0) -> Row:
    return {"time": at(time), "host": host, "kind": "node", "cpu_count": cpus}


def container(time: float, name: str, cpu: float, host: str = "h", **more: object) -> Row:
    return {
        "time": at(time),
        "host": host,
        "kind": "container",
        "container_id": f"{name}-{host}",
        "container_name": name,
        "state": "running",
        "cpu_seconds": cpu,
        "cpu_limit_cores": 2.0,
        "cpu_weight": 1024.0,
        **more,
    }


def point(time: float, name: str, metric: str, value: float, host: str = "h") -> Row:
    return {
        "time": at(time),
        "host": host,
        "kind": "progress",
        "container_id": f"{name}-{host}",
        "container_name": name,
        "metric": metric,
        "value": value,
    }


def ended(time: float, name: str, code: int | None, host: str = "h", event: str = "exit") -> Row:
    return {
        "time": at(time),
        "host": host,
        "kind": "event",
        "container_id": f"{name}-{host}",
        "container_name": name,
        "event": event,
        "exit_code": code,
    }


def recording(rows: list[Row]) -> pa.Table:
    return to_table(sorted(rows, key=lambda row: row["time"]))

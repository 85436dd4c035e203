"""Spark's errors as ours: lost drivers and workers, full disks, missing rights."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # no annotations
from pyspark import SparkContext
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

from discreet.data.engines.faults import changed_table, connection_lost, disk_full, no_right
from discreet.data.room import is_full
from discreet.errors import EngineError

__all__ = ["FAULTS", "explained", "forget_dead_driver"]

#: What comes out of Spark: its own errors, those of the bridge to Java, and those of its sockets.
FAULTS = (PySparkException, Py4JError, OSError, EOFError)

# Words of Spark's own messages; no value of the data stands in what is matched.
_LOST_ROWS = re.compile(r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block rdd_\d+_\d+ not found")
_ENDED = re.compile(
    r"SparkContext was shut down|stopped SparkContext|SparkContext has been shutdown|"
    r"Master removed our application|SESSION_CLOSED|SESSION_NOT_FOUND|StatusCode.UNAVAILABLE|"
    r"failed to connect to all addresses"
)
_LOST_WORKER = re.compile(r"ExecutorLostFailure|FetchFailed|Executor heartbeat timed out")
_LARGE = re.compile(r"serialized results of \d+ tasks \(([\d.]+ \w+)\) is bigger than")
_RIGHT = re.compile(r"AccessControlException|Permission denied|INSUFFICIENT_PERMISSIONS")
_GONE = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_COLUMN", "PATH_NOT_FOUND", "COLUMN_NOT_FOUND")


def explained(error: Exception) -> EngineError:
    """Return an error of Spark as ours, without anything that could quote a row."""
    if isinstance(error, Py4JNetworkError | OSError | EOFError):
        if is_full(error):
            return _no_room()
        return connection_lost("Spark", "its driver has ended", kept=True)
    text = _text(error)
    if _ENDED.search(text):
        return connection_lost("Spark", "its driver has ended", kept=True)
    if _LOST_ROWS.search(text):
        return connection_lost("Spark", "a worker that kept rows is gone", kept=True)
    if _LOST_WORKER.search(text):
        return connection_lost("Spark", "workers were lost again and again")
    if _LARGE.search(text):
        return EngineError(
            "the rows are more than spark.driver.maxResultSize lets through",
            code="too-large-for-driver",
            hint="ask for fewer, or raise that setting, if this machine has the memory",
        )
    if is_full(OSError(text)):
        return _no_room()
    if _RIGHT.search(text):
        return no_right("Spark", "a table or file that it may not read or write")
    kind = type(error).__name__
    condition = (error.getCondition() if isinstance(error, PySparkException) else None) or kind
    # Names, types and syntax are the query's own; anything else may quote a value.
    speaks = isinstance(error, AnalysisException | ParseException)
    first = (str(error).splitlines() or [""])[0]
    if speaks and condition.startswith(_GONE):
        return changed_table("Spark", first)
    reason = first if speaks else f"{condition} in the data"
    return EngineError(
        f"Spark failed: {reason}", code="engine-failed", kind=kind, condition=condition
    )


def _text(error: Exception) -> str:
    """Return what an error says, to be searched and never shown."""
    try:
        return str(error)
    except (Py4JError, OSError):  # whose text is asked of a driver that has ended
        return "SparkContext was shut down"


def _no_room() -> EngineError:
    return disk_full(
        "on a disk of the Spark cluster", "free some of it, or give spark.local.dir more room"
    )


def forget_dead_driver() -> None:
    """Let this process begin another Spark where the driver of the first one has been killed."""
    context = SparkContext._active_spark_context
    if context is None or not _is_dead(context):
        return
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _is_dead(context: Any) -> bool:
    # Any: pyspark's context, of which the process is no public part.
    process = getattr(context._gateway, "proc", None)
    return process is not None and process.poll() is not None

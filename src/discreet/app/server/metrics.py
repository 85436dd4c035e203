"""Counts and times of what the server did, without values, users' texts or names of columns."""

from __future__ import annotations

import threading
from collections import Counter

__all__ = ["Metrics"]

_BOUNDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)


class Metrics:
    """Counters by protocol and outcome, and a histogram of seconds; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._seconds: Counter[float] = Counter()
        self._sum = 0.0

    def record(self, outcome: str, seconds: float) -> None:
        """Count one statement: "exact", "interval", "noisy", "session", "refused", "mistake", "failed"."""
        with self._lock:
            self._outcomes[outcome] += 1
            self._seconds[next((b for b in _BOUNDS if seconds <= b), float("inf"))] += 1
            self._sum += seconds

    def render(self) -> str:
        """Return all of it in Prometheus' text format."""
        with self._lock:
            lines = ["# TYPE discreet_statements_total counter"]
            lines += [
                f'discreet_statements_total{{outcome="{outcome}"}} {count}'
                for outcome, count in sorted(self._outcomes.items())
            ]
            lines.append("# TYPE discreet_statement_seconds histogram")
            total = 0
            for bound in (*_BOUNDS, float("inf")):
                total += self._seconds[bound]
                name = "+Inf" if bound == float("inf") else f"{bound:g}"
                lines.append(f'discreet_statement_seconds_bucket{{le="{name}"}} {total}')
            lines += [
                f"discreet_statement_seconds_sum {self._sum:.6f}",
                f"discreet_statement_seconds_count {total}",
            ]
        return "\n".join(lines) + "\n"

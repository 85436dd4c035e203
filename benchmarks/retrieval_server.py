"""A server as `discreet retrieve serve POLICY --server NAME`, which also reads its filter when it is told to.

So reading is measured where look-ups are answered: in the same process, of the same array, in a thread
that a message woke, while the other server does the same.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import numpy as np

from discreet.app.policy.access import permitted_policy
from discreet.protocols.retrieval.kernels.xor import total
from discreet.protocols.retrieval.serving import Serving
from discreet.protocols.services import retrieval_table
from discreet.protocols.transport import Message


class Measured(Serving):
    """Answers as always, and a message `read` with the CPU seconds of the process before and after."""

    #: Seconds by the clock spent on answers.
    wall = 0.0

    def answer(self, peer: str, message: Message) -> Message:
        """Answer one message."""
        if message.label == "read":
            return self._read()
        started = time.perf_counter()
        try:
            return super().answer(peer, message)
        finally:
            self.wall += time.perf_counter() - started

    def _read(self) -> Message:
        ((version,),) = (held.values() for held in self._versions.values())
        held = version._block(version.statement.part("main"), "filter", "xor").view(np.uint64)
        before = time.process_time()
        total(held.reshape(-1))
        fields = {"before": before, "after": time.process_time(), "wall": self.wall}
        return Message("read", fields)


def main() -> None:
    path, server = Path(sys.argv[1]), sys.argv[2]
    retrieval_table.Serving = Measured  # type: ignore[misc]  # what `serve_tables` makes
    policy, _ = permitted_policy(path)
    started, _ = retrieval_table.serve_tables(dict(policy.retrieval), server, path.parent)
    with started:
        threading.Event().wait()


if __name__ == "__main__":
    main()

"""Reports the progress of a Tidegate task. Copy this file next to your code, or paste it in; it needs no package.

    from tidegate_progress import progress

    progress(counters={"rows": 1200}, gauges={"loss": 0.31}, message="epoch 3", done=3, total=10)

    latency_ms = Histogram(1, 5, 25)
    latency_ms.observe(3.7)
    progress(histograms={"latency_ms": latency_ms})

Outside of Tidegate it does nothing, and it never raises because of the pipe.
"""

import bisect
import json
import os


class Histogram:
    """Counts of values by bucket, since the task began. The bounds are the highest values of the buckets."""

    def __init__(self, *bounds):
        self.bounds = sorted({float(bound) for bound in bounds})
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value):
        """Counts a value."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1


def progress(counters=None, gauges=None, message=None, done=None, total=None, histograms=None):
    """Reports cumulative counters and histograms, newest gauges, a message, and how much of the work is done.

    All are optional.
    """
    descriptor = os.environ.get("TIDEGATE_PROGRESS_FD", "")
    if not descriptor.isdigit():
        return
    report = {
        "counters": counters and {name: int(value) for name, value in counters.items()},
        "gauges": gauges and {name: float(value) for name, value in gauges.items()},
        "histograms": histograms
        and {name: {"bounds": of.bounds, "counts": of.counts} for name, of in histograms.items()},
        "message": None if message is None else str(message),
        "done": None if done is None else int(done),
        "total": None if total is None else int(total),
    }
    given = {field: value for field, value in report.items() if value is not None}
    line = memoryview((json.dumps(given) + "\n").encode())
    try:
        while line:
            line = line[os.write(int(descriptor), line) :]
    except OSError:
        pass

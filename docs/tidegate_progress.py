"""Reports the progress of a Tidegate task. Copy this file next to your code, or paste it in; it needs no package.

    from tidegate_progress import progress

    progress(counters={"rows": 1200}, gauges={"loss": 0.31}, message="epoch 3", done=3, total=10)

Outside of Tidegate it does nothing, and it never raises because of the pipe.
"""

import json
import os


def progress(counters=None, gauges=None, message=None, done=None, total=None):
    """Reports cumulative counters, newest gauges, a message, and how much of the work is done. All are optional."""
    descriptor = os.environ.get("TIDEGATE_PROGRESS_FD", "")
    if not descriptor.isdigit():
        return
    report = {
        "counters": counters and {name: int(value) for name, value in counters.items()},
        "gauges": gauges and {name: float(value) for name, value in gauges.items()},
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

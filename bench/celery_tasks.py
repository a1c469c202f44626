"""No-op Celery task, used by the worker and the producers of bench/celery_peer.py.

`python celery_tasks.py COUNT` enqueues COUNT tasks.
"""

import os
import sys

from celery import Celery

PORT = os.environ["BENCH_REDIS_PORT"]
app = Celery("celery_tasks", broker=f"redis://127.0.0.1:{PORT}/0", backend=f"redis://127.0.0.1:{PORT}/1")
app.conf.task_acks_late = os.environ.get("BENCH_ACKS_LATE") == "1"


@app.task(name="noop")
def noop():
    return None


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        noop.delay()

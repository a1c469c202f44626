"""Celery with its own Redis: runs a number of no-op tasks until every result is stored."""

import contextlib
import socket
import subprocess
import time

from harness import REPOSITORY, BenchError, Process, free_ports, listens, wait_until

PYTHON = REPOSITORY / "target" / "bench-venv" / "bin" / "python"
BENCH = REPOSITORY / "bench"
PRODUCERS = 2
RESULTS_DB = 1


def celery_is_here():
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", "import celery, redis"], capture_output=True).returncode == 0


def celery_version():
    say = "import celery, redis; print(f'{celery.__version__}, redis-py {redis.__version__}')"
    return subprocess.run([PYTHON, "-c", say], capture_output=True, text=True).stdout.strip()


def run_celery(directory, tasks, slots, durable=False):
    """Returns tasks per second from the first enqueued task to the last result. With `durable`, Redis syncs every write and a
    task is acknowledged after its end, as in Tidegate; otherwise both use their defaults."""
    directory.mkdir(exist_ok=True)
    (port,) = free_ports(1)
    env = {"BENCH_REDIS_PORT": str(port), "BENCH_ACKS_LATE": str(int(durable)), "PYTHONPATH": str(BENCH)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Process(redis_argv(directory, port, durable), directory / "redis.log"))
        wait_until(lambda: listens(port), redis, "the start of Redis")
        argv = [PYTHON, "-m", "celery", "-A", "celery_tasks", "--workdir", directory, "worker", "--pool", "prefork"]
        argv += ["--concurrency", slots, "--loglevel", "WARNING"]
        worker = stack.enter_context(Process(argv, directory / "celery.log", env=env))
        # One task through the whole path: the worker and its children are up.
        produce(stack, directory, env, 1)
        wait_until(lambda: stored(port) >= 1, worker, "the first result", timeout_s=60)
        start = time.monotonic()
        for _ in range(PRODUCERS):
            produce(stack, directory, env, tasks // PRODUCERS)
        expected = 1 + tasks // PRODUCERS * PRODUCERS
        # The clock starts with the first result, so that the start of the producers does not count.
        first = None
        while (now := stored(port)) < expected:
            worker.check_alive()
            if now > 1 and first is None:
                first = (time.monotonic(), now)
            if time.monotonic() - start > 300:
                raise BenchError(f"Celery has stored {now} of {expected} results after 300 s")
            time.sleep(0.005)
        since, before = first or (start, 1)
        return (expected - before) / (time.monotonic() - since)


def redis_argv(directory, port, durable):
    lasting = ("--appendonly", "yes", "--appendfsync", "always") if durable else ("--appendonly", "no")
    return ["redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", directory, "--save", "", *lasting]


def produce(stack, directory, env, tasks):
    log = directory / f"producer-{time.monotonic_ns()}.log"
    return stack.enter_context(Process([PYTHON, BENCH / "celery_tasks.py", tasks], log, env=env))


def stored(port):
    """Returns the number of results in Redis, which has no other keys."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as redis:
        redis.sendall(f"SELECT {RESULTS_DB}\r\nDBSIZE\r\n".encode())
        answer = b""
        while answer.count(b"\r\n") < 2:
            if not (more := redis.recv(256)):
                raise BenchError("Redis has closed the connection")
            answer += more
    return int(answer.split(b"\r\n")[1].removeprefix(b":"))

"""Nodes of the task benchmark: `tidegate up` with its own store, and `tidegate worker`, on loopback."""

import contextlib
import http.client
import json
import re
import shutil
import time

from harness import BenchError, Process, free_ports, wait_until

OPEN = ("queued", "provisioning", "running")
SAMPLE = re.compile(r"^(\w+)(?:\{.*\})? (\S+)$", re.MULTILINE)


class Server:
    """HTTP server process on `port`, with a folder that is deleted when it ends."""

    def __init__(self, directory):
        self.directory = directory
        self.process = None
        self.connection = None
        directory.mkdir()

    def __enter__(self):
        self.start()
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.process = Process(self.command(), self.directory.with_suffix(".log"))

    def wait(self):
        wait_until(self.is_ready, self.process, f"the start of {self.directory.name}", timeout_s=60)

    def stop(self):
        self.process.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def is_ready(self):
        with contextlib.suppress(BenchError):
            return self.get("/health/ready")[0] == 200
        return False

    def get(self, path):
        """Returns status and body, over a persistent connection."""
        for connection in (self.connection, None):
            self.connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                self.connection.request("GET", path)
                answer = self.connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.connection.close()
                self.connection, failed = None, error
        raise BenchError(f"{self.directory.name} did not answer {path}: {failed}")

    def json(self, path):
        status, body = self.get(path)
        if status != 200:
            raise BenchError(f"{self.directory.name} answered {path} with {status}: {body[:200]!r}")
        return json.loads(body)

    def series(self):
        """Returns every series of /metrics, summed over its labels."""
        sums = {}
        for name, value in SAMPLE.findall(self.get("/metrics")[1].decode()):
            sums[name] = sums.get(name, 0.0) + float(value)
        return sums


class Worker(Server):
    """Executor whose tasks only sleep."""

    def __init__(self, directory, binary, task_ms, slots=1, port=None):
        super().__init__(directory)
        self.binary, self.task_ms, self.slots = binary, task_ms, slots
        self.port = port or free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"

    def command(self):
        return [
            *(self.binary, "worker", "--executor", "mock", "--mock-ms", self.task_ms, "--log-level", "warn"),
            *("--max-concurrent", self.slots, "--listen", f"127.0.0.1:{self.port}"),
        ]


class Manager(Server):
    """`tidegate up` with an initially empty store on a disk; clients submit to `client_port`."""

    def __init__(self, directory, binary, executor_urls=(), slots=0, settings=()):
        super().__init__(directory)
        self.binary, self.executor_urls, self.slots, self.settings = binary, executor_urls, slots, settings
        self.client_port, self.port = free_ports(2)

    def command(self):
        settings = ["tasks.executor=mock", "tasks.mock_ms=0", "tasks.tasks_max=5000000", "tasks.memory_mib=4096"]
        argv = [self.binary, "up", "--ingest", "false", "--log-level", "warn", "--task-slots", self.slots]
        argv += ["--listen", f"127.0.0.1:{self.client_port}", "--admin-listen", f"127.0.0.1:{self.port}"]
        argv += ["--state-folder", self.directory, "--task-store", self.directory / "tasks"]
        for url in self.executor_urls:
            argv += ["--executor-url", url]
        for setting in [*settings, *self.settings]:
            argv += ["--set", setting]
        return argv

    def is_ready(self):
        return super().is_ready() and self.slots_up() >= self.slots

    def slots_up(self):
        return sum(each["max_concurrent"] for each in self.json("/v1/executors")["executors"] if each["up"])

    def counts(self):
        """Returns the number of stored tasks by status."""
        return self.json("/v1/executors")["tasks"]

    def ended(self):
        return int(self.series().get("tidegate_manager_ended_total", 0))

    def wait_for_end(self, timeout_s):
        """Waits until no task is queued or running; returns the counts."""
        deadline = time.monotonic() + timeout_s
        while any((counts := self.counts())[status] for status in OPEN):
            self.process.check_alive()
            if time.monotonic() > deadline:
                raise BenchError(f"after {timeout_s} s there are still tasks that are not over: {counts}")
            time.sleep(0.05)
        return counts

    def tasks(self):
        """Returns all tasks, newest first."""
        path = "/v1/tasks?limit=500"
        while path:
            page = self.json(path)
            yield from page["tasks"]
            path = f"/v1/tasks?limit=500&after={page['next']}" if page.get("next") else None


@contextlib.contextmanager
def started_workers(directory, binary, count, task_ms):
    """Starts worker processes of one slot each, all at once, and stops all at once."""
    with contextlib.ExitStack() as stack:
        # All ports at once: drawn one by one, two workers of thirty get the same one now and then.
        ports = enumerate(free_ports(count))
        workers = [Worker(directory / f"worker-{n}", binary, task_ms, port=port) for n, port in ports]
        for worker in workers:
            worker.start()
            stack.callback(worker.stop)
        for worker in workers:
            worker.wait()
        try:
            yield workers
        finally:
            for worker in workers:
                worker.process.child.terminate()


@contextlib.contextmanager
def fleet(directory, binary, count, task_ms, urls_of=None):
    """Starts workers and a manager that uses them over HTTP; `urls_of` returns other URLs for them, for example of relays."""
    with started_workers(directory, binary, count, task_ms) as workers:
        urls = [worker.url for worker in workers] if urls_of is None else urls_of(workers)
        with Manager(directory / "manager", binary, urls) as manager:
            wait_until(lambda: manager.slots_up() == count, manager.process, "that all workers are known")
            yield manager, workers

"""Dispatch loop of the original design document: each dispatcher blocks on its task, tries all executors in random order, and
sleeps when all are full. Measures its waits with the same executors and arrivals as Tidegate's."""

import http.client
import json
import queue
import random
import threading
import time
from dataclasses import dataclass, field

ATTEMPTS_MAX = 100
DELAY_S_MAX = 60


@dataclass
class SeedRun:
    """Result of a run; waits in ms, of accepted tasks."""

    arrived: int = 0
    waits_ms: list = field(default_factory=list)
    sent: int = 0
    refused: int = 0

    @property
    def goodput(self):
        return len(self.waits_ms) / max(self.arrived, 1)

    @property
    def p99_ms(self):
        return sorted(self.waits_ms)[int(len(self.waits_ms) * 0.99)]

    @property
    def messages(self):
        """Requests and replies. The loop never asks how a task ended."""
        return 2 * self.sent / max(len(self.waits_ms), 1)


class SeedLoop:
    """Dispatchers in threads, each with one task at a time and a connection to every executor."""

    def __init__(self, ports, workers, seed):
        self.ports = ports
        self.line = queue.Queue()
        self.run = SeedRun()
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        randoms = [random.Random(f"{seed}/{n}") for n in range(workers)]
        self.threads = [threading.Thread(target=self.work, args=[each], daemon=True) for each in randoms]

    def run_arrivals(self, due_s):
        """Runs tasks that arrive at these times from now, until the last arrival; tasks that wait then count as too late."""
        for thread in self.threads:
            thread.start()
        start = time.monotonic()
        for number, due in enumerate(due_s):
            time.sleep(max(0, start + due - time.monotonic()))
            self.line.put((f"seed-{number}", start + due))
            self.run.arrived += 1
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        return self.run

    def work(self, chance):
        connections = {port: http.client.HTTPConnection("127.0.0.1", port, timeout=10) for port in self.ports}
        while not self.stopping.is_set():
            try:
                task, due = self.line.get(timeout=0.1)
            except queue.Empty:
                continue
            self.execute_evaluation(connections, chance, task, due)

    def execute_evaluation(self, connections, chance, task, due):
        for attempt in range(ATTEMPTS_MAX):
            executors = list(connections.values())
            chance.shuffle(executors)
            for executor in executors:
                try:
                    status = self.submit_to_executor(executor, task)
                except (OSError, http.client.HTTPException):
                    executor.close()
                    continue
                if status == 200:
                    with self.lock:
                        self.run.waits_ms.append((time.monotonic() - due) * 1e3)
                    return
            delay = min(2**attempt + chance.uniform(0, 1), DELAY_S_MAX)
            if self.stopping.wait(delay):
                return

    def submit_to_executor(self, executor, task):
        body = json.dumps({"eval_id": task, "code": task})
        executor.request("POST", "/execute", body, {"content-type": "application/json"})
        answer = executor.getresponse()
        answer.read()
        with self.lock:
            self.run.sent += 1
            self.run.refused += answer.status == 503
        return answer.status

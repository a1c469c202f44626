"""Senders of usage records: lines pushed into a socket, and `tidegate send`, which waits for acks."""

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from harness import BenchError
from usage_lines import write_lines

PUSH_BYTES = 64 * 1024
# Write interval of a paced pusher: short enough for a steady rate, long enough not to wake for each line.
BURSTS_A_SECOND = 100


@dataclass(frozen=True)
class Workload:
    """File of lines, one record each."""

    path: Path
    lines: int
    bytes: int

    @classmethod
    def write(cls, path, lines, seed):
        with open(path, "wb") as out:
            write_lines(out, lines, seed)
        return cls(path, lines, path.stat().st_size)

    def head(self, lines):
        """Returns the first lines as a separate workload."""
        path = self.path.with_name(f"{self.path.stem}-{lines}{self.path.suffix}")
        with open(self.path, "rb") as source, open(path, "wb") as out:
            out.writelines(line for _, line in zip(range(lines), source))
        return Workload(path, lines, path.stat().st_size)

    def lines_in(self, count):
        """Returns the number of lines that end within the first `count` bytes."""
        found = 0
        with open(self.path, "rb") as source:
            while count > 0 and (piece := source.read(min(count, 1 << 20))):
                found += piece.count(b"\n")
                count -= len(piece)
        return found


# === lines ===


class Pusher:
    """Writes a file to a port at maximum rate in its own thread. The receiver sends nothing back."""

    def __init__(self, port, workload, endless=False):
        self.workload, self.endless = workload, endless
        self.sent = 0
        self.cpu_seconds = 0.0
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.settimeout(None)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        # A killed receiver ends the connection; `sent` has the lines accepted until then.
        with contextlib.suppress(OSError), open(self.workload.path, "rb") as source:
            while self.push(source) and self.endless:
                pass
            self.socket.shutdown(socket.SHUT_WR)
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        self.cpu_seconds = usage.ru_utime + usage.ru_stime

    def push(self, source):
        offset, size = 0, self.workload.bytes
        while offset < size:
            count = os.sendfile(self.socket.fileno(), source.fileno(), offset, min(PUSH_BYTES, size - offset))
            offset += count
            self.sent += count
        return True

    def wait(self):
        self.thread.join()
        self.socket.close()

    def stop(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.wait()


class PacedPusher(Pusher):
    """Writes lines at a fixed rate. `due` returns how many lines were due at a time."""

    def __init__(self, port, workload, rate):
        self.rate = rate
        self.due = []
        super().__init__(port, workload)

    def push(self, source):
        burst, start, lines = max(self.rate // BURSTS_A_SECOND, 1), time.monotonic(), 0
        while piece := [line for _, line in zip(range(burst), source)]:
            due = start + lines / self.rate
            time.sleep(max(0, due - time.monotonic()))
            self.socket.sendall(b"".join(piece))
            lines += len(piece)
            self.due.append((due, lines))
        return True


# === frames ===


class Sender:
    """`tidegate send` of a file, with its summary of acks and their latency."""

    def __init__(self, binary, address, workload, *flags):
        argv = [binary, "send", workload.path, "--to", address, "--json", *flags]
        self.child = subprocess.Popen(
            [str(arg) for arg in argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def is_running(self):
        return self.child.poll() is None

    def summary(self, timeout_s):
        """Waits for the end and returns the summary, also of an interrupted sender."""
        try:
            out, err = self.child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.stop()
            raise BenchError(f"tidegate send did not end within {timeout_s} s") from None
        try:
            return json.loads(out)
        except ValueError:
            raise BenchError(f"tidegate send gave no summary, exit {self.child.returncode}:\n{err[-2000:]}") from None

    def complete_summary(self, timeout_s):
        told = self.summary(timeout_s)
        if self.child.returncode != 0 or not told["complete"]:
            raise BenchError(f"tidegate send did not get all stored: exit {self.child.returncode}, {told}")
        return told

    def interrupt(self):
        """Ends the sender without waiting for acks, by two signals."""
        for _ in range(2):
            with contextlib.suppress(ProcessLookupError):
                self.child.send_signal(signal.SIGINT)
            time.sleep(0.3)

    def stop(self):
        if self.is_running():
            self.child.kill()
            self.child.communicate()

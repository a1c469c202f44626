"""Shared parts of the benchmarks: processes on chosen cores, their CPU and memory, wrk, reports, noise of the machine."""

import contextlib
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LUA = REPOSITORY / "bench" / "wrk"
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")

# The proxy has its own core; upstream and load generator share the other.
PROXY_CORE = 0
LOAD_CORE = 1


class BenchError(Exception):
    """The run cannot produce a meaningful figure; the message states the reason and what to do."""


# === processes ===


class Process:
    """Child process in its own process group, so that stopping it also stops its own children and nothing else."""

    def __init__(self, argv, log_path, core=None, env=None):
        self.name = Path(argv[0]).name
        self.log_path = log_path
        with open(log_path, "wb") as log:
            self.child = subprocess.Popen(
                [str(arg) for arg in argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=pin_to(core),
                env={**os.environ, **env} if env else None,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self.child.pid

    def check_alive(self):
        if self.child.poll() is not None:
            tail = Path(self.log_path).read_text(errors="replace")[-2000:]
            raise BenchError(f"{self.name} exited with {self.child.returncode}:\n{tail}")

    def cpu_seconds(self):
        """Returns user and system time of the process and its descendants since their start."""
        self.check_alive()
        return sum(cpu_ticks(pid) for pid in process_tree(self.pid)) / TICKS_A_SECOND

    def rss_kib(self):
        return self.status_kib("VmRSS:")

    def rss_peak_kib(self):
        return self.status_kib("VmHWM:")

    def status_kib(self, key):
        self.check_alive()
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(key))

    def kill(self):
        """Kills the process immediately."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.child.wait()

    def stop(self):
        for sig, grace_s in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sig)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(grace_s)
                return


def pin_to(core):
    if core is None:
        return None
    return lambda: os.sched_setaffinity(0, {core})


def stat_fields(pid):
    """Returns the fields of /proc/PID/stat from the third on; the second, the name, may contain spaces and brackets."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_ticks(pid):
    try:
        fields = stat_fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[11]) + int(fields[12])


def process_tree(root):
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                parents[int(entry.name)] = int(stat_fields(entry.name)[1])
    tree = {root}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return tree


def exit_on_sigterm():
    """Makes SIGTERM unwind like an interrupt, so that no started process outlives the run."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


# === network ===


def free_ports(count):
    """Returns distinct free ports: all are bound before any is released."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]


def status_of(port, timeout_s=5):
    """Returns the status of one GET, or None without a response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until(condition, process, what, timeout_s=15):
    deadline = time.monotonic() + timeout_s
    while not condition():
        process.check_alive()
        if time.monotonic() > deadline:
            raise BenchError(f"{what} did not happen within {timeout_s} s")
        time.sleep(0.05)


# === load ===


def wrk_argv(port, script, seconds, connections, path="/", args=()):
    return [
        *("wrk", "--threads", "1", "--connections", connections, "--duration", f"{seconds}s"),
        *("--timeout", "10s", "--script", LUA / script, f"http://127.0.0.1:{port}{path}", "--", *args),
    ]


def wrk_result(output):
    for line in output.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    raise BenchError(f"wrk gave no result:\n{output}")


def run_wrk(port, script, seconds, connections=64, core=LOAD_CORE, path="/", args=()):
    argv = [str(arg) for arg in wrk_argv(port, script, seconds, connections, path, args)]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=seconds + 30, preexec_fn=pin_to(core)
    )
    return wrk_result(done.stdout + done.stderr)


# === reporting ===


def spread(values, digits):
    """Returns the median and the interquartile range."""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.{digits}f} ({low:.{digits}f} … {high:.{digits}f})"


def split_at_markers(path, markers):
    """Returns the text before and after the section; also called before the run, so that a missing section is found early."""
    begin, end = markers
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise BenchError(f"{path} needs the lines {begin} and {end} around the section to replace")
    return before + begin, end + after


def write_section(path, markers, text):
    before, after = split_at_markers(path, markers)
    path.write_text(f"{before}\n{text}\n{after}", encoding="utf-8")


# === the machine ===


@dataclass
class MachineTimes:
    """CPU ticks of all cores since boot, from /proc/stat."""

    total: int
    busy: int
    steal: int

    @classmethod
    def now(cls):
        with open("/proc/stat") as stat:
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
        busy = user + nice + system + irq + softirq
        return cls(total=busy + idle + iowait + steal, busy=busy, steal=steal)

    def since(self, start):
        return MachineTimes(self.total - start.total, self.busy - start.busy, self.steal - start.steal)

    @property
    def steal_percent(self):
        return 100 * self.steal / max(self.total, 1)

    def others_percent(self, own_cpu_seconds):
        """CPU share of processes that are not part of the benchmark."""
        own = own_cpu_seconds * TICKS_A_SECOND
        return 100 * max(self.busy - own, 0) / max(self.total, 1)


def machine_line():
    with open("/proc/cpuinfo") as cpuinfo:
        model = next(
            (line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name")), "unknown CPU"
        )
    kernel = os.uname()
    return f"{model}, {os.cpu_count()} cores, {kernel.sysname} {kernel.release} {kernel.machine}"


@contextlib.contextmanager
def alone(options):
    """Allows one benchmark at a time, because two would disturb each other; smoke forms measure nothing and may run together.
    Locks this file, so that no lock file remains."""
    with open(__file__) as lock:
        if options.smoke:
            yield
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchError("another benchmark is running: wait for it to end") from None
        yield


def require(*commands):
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        raise BenchError(f"not installed: {', '.join(missing)}. Run scripts/bench-deps, it says how.")


def version_of(argv, env=None):
    """Returns the version number from a program's version output."""
    env = {**os.environ, **env} if env else None
    done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, env=env)
    found = re.search(r"\d+\.\d+\.\d+\S*?(?=[/\s]|$)", done.stdout + done.stderr)
    return found.group() if found else "unknown version"


def tidegate_binary(profile="release"):
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return target / profile / "tidegate"


# === options ===


def parse(parser, **smoke):
    """Parses the options of a benchmark. With `--smoke` those of `smoke` replace what was given: seconds instead of minutes, the
    unoptimised binary and no peers, which shows that the script still works and nothing else. No figure of it is judged.
    """
    parser.add_argument("--smoke", action="store_true", help="a few seconds, to see that this script works")
    options = parser.parse_args()
    if options.smoke:
        vars(options).update({"report_only": True, "write": None, "tidegate": tidegate_binary("debug"), **smoke})
    return options

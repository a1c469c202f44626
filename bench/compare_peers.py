"""Gateways of `make compare`, each configured for overload as its documentation recommends."""

import json
import tomllib
from pathlib import Path

from harness import REPOSITORY, BenchError, Process, free_ports, listens, wait_until
from peers import ENVOY_TYPES, NGINX, Peers, envoy_address

# haproxy's priority classes by `tidegate-priority`: lower values are served first.
HAPROXY = """
global
  nbthread 1
  maxconn 8000
defaults
  mode http
  option http-keep-alive
  http-reuse always
  timeout connect 2s
  timeout client 30s
  timeout server 30s
  timeout queue {wait_ms}
frontend in
  bind 127.0.0.1:{port} backlog 4096
  http-request set-priority-class int(-100) if {{ req.hdr(tidegate-priority) high }}
  http-request set-priority-class int(100) if {{ req.hdr(tidegate-priority) low }}
  # maxqueue of a server only redirects requests: without this bound, any number waits until its timeout. Lower priorities
  # leave room in the queue; otherwise the flood would fill it.
  http-request deny deny_status 503 if {{ queue(out) ge {waiting} }}
  http-request deny deny_status 503 if !{{ req.hdr(tidegate-priority) high }} {{ queue(out) ge {waiting_normal} }}
  http-request deny deny_status 503 if {{ req.hdr(tidegate-priority) low }} {{ queue(out) ge {waiting_low} }}
  default_backend out
backend out
  balance leastconn
  retries 1
  option redispatch
{servers}
"""

NGINX_PROXY = """
  limit_conn_zone $server_name zone=all:1m;
  limit_conn_status 503;
  upstream backend {{
    least_conn;
{servers}
    keepalive 512; keepalive_requests 1000000000;
  }}
  server {{
    server_name all;
    listen 127.0.0.1:{port} backlog=4096;
    limit_conn all {limit};
    location / {{
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_connect_timeout 2s;
      proxy_next_upstream error timeout;
    }}
  }}
"""


class Setting:
    """Gateway settings of a scenario, in numbers that every gateway supports."""

    def __init__(self, scenario):
        path = Path(scenario) if scenario.endswith(".toml") else REPOSITORY / "scenarios" / f"{scenario}.toml"
        if not path.exists():
            raise BenchError(f"there is no scenario {scenario}: {path.parent.name}/ has them")
        self.text = path.read_text(encoding="utf-8")
        document = tomllib.loads(self.text)
        if "upstreams" not in document:
            raise BenchError(f"{scenario} has no [upstreams]: only scenarios of a gateway can be compared")
        self.upstreams = document["upstreams"]
        self.gateway = document.get("gateway", {})
        self.deadline_ms = min((one["deadline_ms"] for one in document["class"] if "deadline_ms" in one), default=5000)
        self.service_ms = max(one["service"]["ms"] for one in document["class"])

    @property
    def count(self):
        return self.upstreams["count"]

    @property
    def slots(self):
        return self.upstreams["slots"]

    @property
    def in_all(self):
        """Requests that the gateway may have in flight: running and queued."""
        held = self.upstreams.get("thrash_above", self.slots + self.upstreams["queue"])
        return self.count * self.gateway.get("active_requests", held)

    @property
    def waiting(self):
        """Requests that may queue in the gateway: by the scenario, or what is served in half of a deadline."""
        in_half = self.slots * self.count * self.deadline_ms / (2 * self.service_ms)
        return self.gateway.get("queue", min(self.count * self.upstreams["queue"], int(in_half)))

    @property
    def wait_ms(self):
        return int(self.gateway.get("wait_max_ms", self.deadline_ms))


class Contestants(Peers):
    """Starts upstreams and one gateway in front of them."""

    def upstreams(self, setting):
        """Starts the upstreams and yields their processes and ports."""
        ports = free_ports(setting.count)
        processes = []
        for number, port in enumerate(ports):
            argv = [
                *(self.programs["tidegate"], "mock", "--faults", "--name", f"upstream-{number}"),
                *("--listen", f"127.0.0.1:{port}", "--max-running", setting.slots),
                *("--max-waiting", setting.upstreams["queue"]),
            ]
            if "thrash_above" in setting.upstreams:
                argv += ["--thrash-above", setting.upstreams["thrash_above"]]
            if not setting.upstreams.get("reports", True):
                argv += ["--metrics", "none"]
            process = Process(argv, self.directory / f"upstream-{number}.log")
            processes.append(process)
            wait_until(lambda port=port: listens(port), process, f"upstream {number}'s listener")
        return processes, ports

    def gateway(self, name, setting, upstreams):
        """Starts one gateway and yields its process and port."""
        [port] = free_ports(1)
        starter = {
            "tidegate": self.tidegate_gateway,
            "haproxy": self.haproxy_gateway,
            "nginx": self.nginx_gateway,
            "envoy": self.envoy_gateway,
        }[name]
        process = starter(setting, port, upstreams)
        wait_until(lambda: listens(port), process, f"{name}'s listener")
        return process, port

    def tidegate_gateway(self, setting, port, upstreams):
        [admin_port] = free_ports(1)
        upstreams = [part for upstream in upstreams for part in ("--upstream", f"http://127.0.0.1:{upstream}")]
        argv = [
            *(self.programs["tidegate"], "up", *upstreams, "--threads", 1, "--tasks", "false"),
            *("--listen", f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{admin_port}", "--log-level", "warn"),
        ]
        return Process(argv, self.directory / "tidegate.log")

    def haproxy_gateway(self, setting, port, upstreams):
        line = "  server upstream-{} 127.0.0.1:{} maxconn {} maxqueue {} check inter 500ms fall 2 rise 1"
        waiting = setting.waiting
        each = -(-waiting // setting.count)
        servers = [line.format(n, upstream, setting.slots, each) for n, upstream in enumerate(upstreams)]
        bounds = {"waiting": waiting, "waiting_normal": waiting * 3 // 4, "waiting_low": waiting // 2}
        text = HAPROXY.format(port=port, wait_ms=setting.wait_ms, servers="\n".join(servers), **bounds)
        config = self.directory / "haproxy.cfg"
        config.write_text(text)
        return Process([self.programs["haproxy"], "-db", "-f", config], self.directory / "haproxy.log")

    def nginx_gateway(self, setting, port, upstreams):
        servers = "\n".join(f"    server 127.0.0.1:{upstream} max_fails=3 fail_timeout=2s;" for upstream in upstreams)
        http = NGINX_PROXY.format(port=port, servers=servers, limit=setting.in_all)
        directory = self.directory / "nginx-gateway"
        directory.mkdir(exist_ok=True)
        config = directory / "nginx.conf"
        config.write_text(NGINX.format(dir=directory, http=http).replace("4096; }", "8000; }", 1))
        argv = [self.programs["nginx"], "-p", directory, "-c", config]
        return Process(argv, self.directory / "nginx-gateway.log")

    def envoy_gateway(self, setting, port, upstreams):
        config = self.directory / "envoy.json"
        config.write_text(envoy_config(setting, port, upstreams))
        flags = ["--concurrency", 1, "--disable-hot-restart", "--log-level", "error"]
        return Process([self.programs["envoy"], "-c", config, *flags], self.directory / "envoy.log")


def envoy_config(setting, port, upstreams):
    """Returns a configuration with adaptive concurrency as documented: Envoy finds the limit from response times."""
    adaptive = {
        "@type": ENVOY_TYPES + "http.adaptive_concurrency.v3.AdaptiveConcurrency",
        "gradient_controller_config": {
            "sample_aggregate_percentile": {"value": 90},
            "concurrency_limit_params": {"concurrency_update_interval": "0.1s", "max_concurrency_limit": 1000},
            "min_rtt_calc_params": {
                "interval": "30s",
                "jitter": {"value": 10},
                "request_count": 50,
                "min_concurrency": setting.count,
            },
        },
    }
    router = {"@type": ENVOY_TYPES + "http.router.v3.Router"}
    retry = {"retry_on": "connect-failure", "num_retries": 1}
    route = {"match": {"prefix": "/"}, "route": {"cluster": "out", "timeout": "30s", "retry_policy": retry}}
    manager = {
        "@type": ENVOY_TYPES + "network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "in",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [
            {"name": "envoy.filters.http.adaptive_concurrency", "typed_config": adaptive},
            {"name": "envoy.filters.http.router", "typed_config": router},
        ],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    endpoints = [{"endpoint": {"address": envoy_address(upstream)}} for upstream in upstreams]
    most = {"max_connections": 20000, "max_pending_requests": 20000, "max_requests": 20000}
    cluster = {
        "name": "out",
        "type": "STATIC",
        "lb_policy": "LEAST_REQUEST",
        "connect_timeout": "2s",
        "circuit_breakers": {"thresholds": [{"priority": "DEFAULT", **most}]},
        "load_assignment": {"cluster_name": "out", "endpoints": [{"lb_endpoints": endpoints}]},
    }
    listener = {"name": "in", "address": envoy_address(port), "filter_chains": [chain]}
    return json.dumps({"static_resources": {"listeners": [listener], "clusters": [cluster]}}, indent=1)

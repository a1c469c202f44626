use super::make::{integer, limit, millis, share, switch, unset, word};
use crate::config::field::{Fallback, Field, Kind};
use crate::config::{Anonymous, ForwardedPolicy, HostPolicy, LoadSource, LogFormat, Orca};
use crate::config::{
    LocalExecutor, OverloadStatus, clients, ingest, logging, models, routes, tasks,
};
use tidegate::admission::{Role, Sharing};
use tidegate::capacity::Placement;
use tidegate::line_protocol::Precision;
use tidegate::routing::{BusyPreset, OnSilence, Pick};
use tidegate::window::Law;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Every setting, section by section.
pub const SETTINGS: &[Field] = &[
    word::<Role>("role", "gate", "The part this node plays; its preset gives the limits below."),
    switch("dry_run", "Count by reason what every limit would refuse, and refuse nothing."),
    Field::new(
        "listen.address",
        Kind::Address,
        Fallback::Is("127.0.0.1:8000"),
        "Where requests arrive. Anything but loopback needs a [[client]] with a token.",
    ),
    Field::new(
        "listen.admin_address",
        Kind::Address,
        Fallback::Is("127.0.0.1:8001"),
        "Where health, metrics and administration answer. Loopback only.",
    ),
    integer("listen.threads", (0, 256), "0", "Threads that serve; 0 is one a core.")
        .unit("threads"),
    integer("listen.connections_max", (1, 1_000_000), "8192", "Connections open at once.")
        .unit("connections"),
    millis(
        "listen.header_timeout_ms",
        (100, 10 * MINUTE_MS),
        "30000",
        "How long the head of a request may take.",
    ),
    millis(
        "listen.shutdown_grace_ms",
        (0, HOUR_MS),
        "10000",
        "How long a shutdown waits for what is in flight.",
    ),
    unset("listen.tls_cert", Kind::Path, "PEM certificate chain to serve TLS with; needs tls_key."),
    unset("listen.tls_key", Kind::Path, "PEM private key of tls_cert."),
    limit(
        "admission.global_limit",
        1,
        Fallback::Preset(|role| role.limits().global_limit as u64),
        "Requests in flight at once, of all priorities.",
    )
    .alias(&["PENDING_RESPONSE_MAX_CONCURRENT"]),
    limit(
        "admission.high_limit",
        0,
        Fallback::Preset(|role| role.limits().high as u64),
        "Of these, how many may be High; 0: only the global limit binds.",
    )
    .alias(&["PENDING_RESPONSE_HIGH_LIMIT"]),
    limit(
        "admission.normal_limit",
        0,
        Fallback::Preset(|role| role.limits().normal as u64),
        "Of these, how many may be Normal; 0: only the global limit binds.",
    )
    .alias(&["PENDING_RESPONSE_NORMAL_LIMIT"]),
    limit(
        "admission.low_limit",
        0,
        Fallback::Preset(|role| role.limits().low as u64),
        "Of these, how many may be Low, which is refused first; 0: only the global limit binds.",
    )
    .alias(&["PENDING_RESPONSE_LOW_LIMIT"]),
    limit(
        "admission.critical_reserve",
        0,
        Fallback::TenthOfGlobal,
        "How much of the global limit Critical can use up; below it. A tenth of it if not set.",
    ),
    word::<Sharing>(
        "admission.sharing",
        "strict",
        "Whether a priority may use idle places of another: borrow, or never: strict.",
    ),
    Field::new(
        "admission.warn_threshold",
        Kind::Ratio { min: 0.0, max: 1.0 },
        Fallback::Is("0.8"),
        "Fill of a limit that is worth a warning.",
    )
    .unit("of the limit")
    .alias(&["PENDING_RESPONSE_WARN_THRESHOLD"]),
    millis(
        "admission.retry_after_min_ms",
        (1, MINUTE_MS),
        "50",
        "The shortest time after which a refused client is told to come back.",
    ),
    millis("admission.retry_after_max_ms", (1_000, HOUR_MS), "30000", "The longest such time."),
    word::<Pick>(
        "routing.pick",
        "power_of_two",
        "Who of the workers that have room gets a request.",
    ),
    word::<BusyPreset>(
        "routing.preset",
        "off",
        "Thresholds for an aim: refuse early (latency), fill workers (throughput) or never (off).",
    ),
    unset(
        "routing.active_decode_blocks_threshold",
        Kind::Ratio { min: 0.0, max: 1.0 },
        "A worker is busy above this share of its KV cache.",
    )
    .unit("of the blocks"),
    unset(
        "routing.active_prefill_tokens_threshold",
        models::TOKENS,
        "A worker is busy above this many tokens being prefilled.",
    )
    .unit("tokens"),
    unset(
        "routing.active_requests_threshold",
        models::REQUESTS,
        "At most this many requests at once at a rank of a worker, waiting ones included.",
    )
    .unit("requests"),
    share(
        "routing.normal_share",
        "0.95",
        "How much of each threshold Normal may use while High asks. Of few places it may use all.",
    ),
    share(
        "routing.low_share",
        "0.9",
        "How much of each threshold Low may use; the rest is for Normal and High.",
    ),
    word::<OverloadStatus>(
        "routing.overload_status",
        "503",
        "The HTTP status of a refusal because all workers are busy.",
    ),
    word::<LoadSource>(
        "routing.load",
        "scrape",
        "How load is learned: scrape also asks upstreams for their metrics; headers only reads answers.",
    ),
    word::<Orca>(
        "routing.orca",
        "read",
        "ORCA load headers of answers: read them, ask for them too, or leave them alone (off).",
    ),
    millis(
        "routing.scrape_interval_ms",
        (10, 10 * MINUTE_MS),
        "250",
        "Between two scrapes of an upstream's metrics.",
    ),
    Field::new(
        "routing.metrics_path",
        Kind::Text { shape: models::PATH_SHAPE, check: routes::is_path },
        Fallback::Is("/metrics"),
        "Where upstreams tell their metrics.",
    ),
    millis(
        "routing.report_ttl_ms",
        (10, HOUR_MS),
        "5000",
        "How long a worker's word about its load is believed.",
    ),
    word::<OnSilence>("routing.on_silence", "free", "What a worker is whose load is not known."),
    Field::new(
        "routing.model_header",
        Kind::Text { shape: models::HEADER_SHAPE, check: routes::is_header_name },
        Fallback::Is("tidegate-model"),
        "The header that names a request's model; without it the body's JSON is asked.",
    ),
    unset(
        "routing.rank_header",
        Kind::Text { shape: models::HEADER_SHAPE, check: routes::is_header_name },
        "Tells a worker which of its ranks was charged; vLLM takes X-data-parallel-rank.",
    ),
    integer(
        "routing.model_peek_bytes",
        (0, 16 * 1024 * 1024),
        "65536",
        "How much of a body is read to find its model; 0 reads none.",
    )
    .unit("bytes"),
    integer("routing.bytes_per_token", (1, 1024), "4", "Bytes of a request that make a token.")
        .unit("bytes"),
    integer(
        "routing.tokens_per_block",
        (1, 65_536),
        "16",
        "Tokens that share a block of KV cache.",
    )
    .unit("tokens"),
    integer(
        "outbox.concurrency",
        (0, 65_535),
        "0",
        "Requests sent to one upstream at once; more wait in its outbox. 0: no such limit.",
    )
    .unit("requests"),
    Field::new(
        "outbox.queue_size",
        Kind::Integer { min: 1, max: 1_000_000 },
        Fallback::Preset(|role| role.outgoing_queue_size() as u64),
        "Requests that may wait for one upstream.",
    )
    .unit("requests")
    .alias(&["OUTGOING_QUEUE_SIZE"]),
    integer(
        "outbox.overflow_size",
        (0, 1_000_000),
        "100",
        "Beyond that, how many more in a burst.",
    )
    .unit("requests")
    .alias(&["OUTGOING_OVERFLOW_SIZE"]),
    integer("outbox.max_destinations", (1, 65_536), "1000", "Upstreams that can be kept at once.")
        .unit("upstreams")
        .alias(&["OUTGOING_MAX_DESTINATIONS"]),
    millis(
        "outbox.wait_max_ms",
        (1, HOUR_MS),
        "5000",
        "How long a request may wait for its upstream before it is refused.",
    ),
    share(
        "outbox.share",
        "0.5",
        "How much of each admission limit the requests of one upstream may hold, if there are more.",
    ),
    word::<Anonymous>(
        "claims.anonymous",
        "high",
        "The highest priority that a request without a token may claim; refuse turns it away.",
    ),
    millis(
        "proxy.connect_timeout_ms",
        (1, 10 * MINUTE_MS),
        "2000",
        "Until a connection to an upstream stands.",
    ),
    millis(
        "proxy.response_timeout_ms",
        (1, DAY_MS),
        "120000",
        "Until the head of an upstream's response is there.",
    ),
    millis("proxy.stream_idle_timeout_ms", (1, DAY_MS), "300000", "Between two pieces of a body."),
    integer(
        "proxy.idle_connections_max",
        (0, 65_535),
        "256",
        "Idle connections kept for each upstream and thread.",
    )
    .unit("connections"),
    millis(
        "proxy.idle_timeout_ms",
        (1, HOUR_MS),
        "4000",
        "How long an idle connection is kept; below the 5 s after which many servers close.",
    ),
    millis(
        "proxy.health_interval_ms",
        (50, 10 * MINUTE_MS),
        "1000",
        "Between two health checks of an upstream.",
    ),
    word::<HostPolicy>(
        "proxy.host",
        "preserve",
        "The Host that an upstream sees: the client's (preserve) or its own (upstream).",
    ),
    word::<ForwardedPolicy>(
        "proxy.forwarded",
        "append",
        "What happens to Forwarded and X-Forwarded-*: append, replace (at the edge) or off.",
    ),
    unset(
        "proxy.tls_ca",
        Kind::Path,
        "PEM bundle to trust for https upstreams; the system's if not set.",
    ),
    Field::new(
        "ingest.enabled",
        Kind::Switch,
        Fallback::Is("true"),
        "Whether `tidegate up` takes usage records in.",
    ),
    Field::new(
        "ingest.frames_address",
        Kind::Address,
        Fallback::Is("127.0.0.1:7070"),
        "Where frames with acks arrive. Loopback only.",
    ),
    Field::new(
        "ingest.lines_address",
        Kind::Address,
        Fallback::Is("127.0.0.1:7071"),
        "Where lines of Influx line protocol arrive. Loopback only.",
    ),
    Field::new(
        "ingest.store",
        Kind::Text { shape: ingest::STORE_SHAPE, check: ingest::is_store },
        Fallback::Is("tidegate-data"),
        "Where records are kept: a folder, or postgres://user@host/database.",
    ),
    unset("ingest.tariffs", Kind::Path, "The file of tariffs; without it nothing has a price."),
    word::<Law>("ingest.law", "cubic", "How the windows of the stages follow load."),
    integer("ingest.window_slots_min", (64, 131_072), "1024", "The smallest window of a stage.")
        .unit("slots"),
    integer(
        "ingest.window_slots_max",
        (1_024, 1_048_576),
        "131072",
        "The largest window of a stage.",
    )
    .unit("slots"),
    integer(
        "ingest.memory_mib",
        (16, 65_536),
        "512",
        "What all that is under way may hold in memory.",
    )
    .unit("MiB"),
    integer("ingest.connections_max", (1, 65_536), "1024", "Connections of each protocol at once.")
        .unit("connections"),
    integer("ingest.frame_bytes_max", (2_048, 1 << 24), "65536", "The longest frame.")
        .unit("bytes"),
    integer("ingest.line_bytes_max", (256, 1 << 20), "65536", "The longest line.").unit("bytes"),
    Field::new(
        "ingest.tenant_tag",
        Kind::Text { shape: ingest::TAG_SHAPE, check: ingest::is_tag },
        Fallback::Is("tenant"),
        "The tag of a line that names who pays.",
    ),
    word::<Precision>("ingest.line_precision", "ns", "What one of a line's timestamp is."),
    integer(
        "ingest.retention_hours",
        (0, 87_600),
        "0",
        "How long records and their sums are kept; 0: for ever.",
    )
    .unit("hours"),
    millis(
        "ingest.idle_timeout_ms",
        (1_000, DAY_MS),
        "3600000",
        "How long a connection may say nothing.",
    ),
    millis(
        "ingest.write_timeout_ms",
        (100, 10 * MINUTE_MS),
        "30000",
        "How long a peer may leave its acks unread.",
    ),
    Field::new(
        "tasks.enabled",
        Kind::Switch,
        Fallback::Is("true"),
        "Whether `tidegate up` takes tasks.",
    ),
    Field::new(
        "tasks.store",
        Kind::Text { shape: ingest::STORE_SHAPE, check: ingest::is_store },
        Fallback::Is("tidegate-tasks"),
        "Where tasks are kept: a folder, or postgres://user@host/database to share them.",
    ),
    Field::new(
        "tasks.ledger",
        Kind::Text { shape: tasks::LEDGER_SHAPE, check: tasks::is_ledger },
        Fallback::Is("memory"),
        "Where slots are counted: memory, or redis://host:port/db where managers share executors.",
    ),
    word::<Placement>(
        "tasks.placement",
        "pull",
        "How waiting tasks come to the slots of executors.",
    ),
    unset(
        "tasks.node",
        Kind::Text { shape: clients::NAME_SHAPE, check: clients::is_name },
        "This manager's name among those that share a store; by machine and port if not set.",
    ),
    unset(
        "tasks.slots",
        Kind::Integer { min: 0, max: 65_536 },
        "Slots of the executor in this process; one a core if not set, none beside [[executor]]s.",
    )
    .unit("slots"),
    word::<LocalExecutor>(
        "tasks.executor",
        "process",
        "What the executor in this process does: run tasks in a sandbox, or only let time go by.",
    ),
    millis("tasks.mock_ms", (0, HOUR_MS), "50", "How long a task takes that a mock runs."),
    millis(
        "tasks.timeout_ms",
        (1, DAY_MS),
        "60000",
        "How long an attempt may run that does not say.",
    ),
    millis(
        "tasks.lease_ms",
        (1_000, 10 * MINUTE_MS),
        "15000",
        "After so long without a word an attempt is lost, and tried again elsewhere.",
    ),
    integer("tasks.tasks_max", (1, 10_000_000), "100000", "Tasks that may wait and run at once.")
        .unit("tasks"),
    integer("tasks.memory_mib", (1, 65_536), "256", "What they may hold in memory.").unit("MiB"),
    integer("tasks.code_bytes_max", (1_024, 1 << 21), "1048576", "The longest code of a task.")
        .unit("bytes"),
    integer(
        "tasks.output_bytes_max",
        (1_024, 1 << 24),
        "1048576",
        "The most output of an attempt that is kept.",
    )
    .unit("bytes"),
    integer(
        "tasks.retention_hours",
        (1, 87_600),
        "168",
        "How long tasks and their output are kept after their end.",
    )
    .unit("hours"),
    unset(
        "tasks.work_folder",
        Kind::Path,
        "Where tasks run; a folder of this user in the system's temporary one if not set.",
    ),
    Field::new(
        "log.level",
        Kind::Text { shape: logging::SHAPE, check: logging::is_filter },
        Fallback::Is("info"),
        "What is logged: a level, or directives such as \"info,hyper=warn\".",
    ),
    word::<LogFormat>("log.format", "text", "Lines for people (text) or for machines (json)."),
];

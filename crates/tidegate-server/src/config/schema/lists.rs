use super::make::{text, unset, word_unset};
use crate::config::field::{Fallback, Field, Kind, List};
use crate::config::{NetworkUse, tasks};
use crate::config::{clients, models, routes};
use tidegate::routing::BusyPreset;

/// Every list.
pub const LISTS: &[List] = &[
    List {
        key: "upstream",
        doc: "What requests are passed on to.",
        max: 65_536,
        short: Some("url"),
        example: &[("url", "http://127.0.0.1:9001")],
        fields: &[
            unset(
                "url",
                Kind::Url,
                "http (HTTP/1.1, gRPC by h2c), h2c (HTTP/2 without TLS) or https; host and port.",
            ),
            unset(
                "models",
                Kind::Names { shape: models::NAMES_SHAPE, check: models::is_name },
                "The models it serves; without it, what its /v1/models says, or any.",
            ),
        ],
    },
    List {
        key: "model",
        doc: "When the workers of a model count as busy, instead of the thresholds of [routing].",
        max: 1024,
        short: None,
        example: &[
            ("name", "Qwen/Qwen3-0.6B"),
            ("active_decode_blocks_threshold", "0.85"),
            ("active_prefill_tokens_threshold", "10000"),
        ],
        fields: &[
            text("name", models::NAME_SHAPE, models::is_name, "Its name, as requests give it."),
            word_unset::<BusyPreset>("preset", "Thresholds for an aim, as in [routing]."),
            unset(
                "active_decode_blocks_threshold",
                Kind::Ratio { min: 0.0, max: 1.0 },
                "Share of the KV cache above which a worker is busy.",
            ),
            unset(
                "active_prefill_tokens_threshold",
                models::TOKENS,
                "Tokens being prefilled above which a worker is busy.",
            ),
            unset(
                "active_requests_threshold",
                models::REQUESTS,
                "The most requests that a worker gets at once.",
            ),
        ],
    },
    List {
        key: "client",
        doc: "Who may claim which priority and hold how much of the gateway, known by a bearer token.",
        max: 10_000,
        short: None,
        example: &[
            ("name", "batch"),
            ("token_env", "BATCH_TOKEN"),
            ("max_priority", "low"),
            ("share", "0.5"),
        ],
        fields: &[
            text("name", clients::NAME_SHAPE, clients::is_name, "Its name in logs and metrics."),
            unset(
                "token",
                Kind::Secret { shape: clients::TOKEN_SHAPE, check: clients::is_token },
                "The token itself.",
            ),
            text(
                "token_env",
                "the name of an environment variable",
                clients::is_variable,
                "The environment variable that has the token: keeps it out of this file.",
            ),
            Field::new(
                "max_priority",
                Kind::Priority,
                Fallback::Is("high"),
                "The highest priority it may claim.",
            ),
            unset(
                "share",
                Kind::Ratio { min: 0.0, max: 1.0 },
                "How much of each admission limit its requests may hold together, at least one place.",
            ),
        ],
    },
    List {
        key: "route",
        doc: "Which requests have which priority or model; the first that matches and says it decides.",
        max: 1024,
        short: None,
        example: &[("path_prefix", "/v1/embeddings"), ("method", "POST"), ("priority", "low")],
        fields: &[
            text(
                "path_prefix",
                "a path that starts with \"/\", without query",
                routes::is_path,
                "Path and all below it, by whole segments.",
            ),
            text("method", "an HTTP method in capitals", routes::is_method, "HTTP method."),
            text(
                "header",
                "the name of a header",
                routes::is_header_name,
                "A header it must have.",
            ),
            text(
                "header_value",
                "a header's value in visible ASCII",
                routes::is_header_value,
                "The exact value of that header.",
            ),
            unset("priority", Kind::Priority, "The priority of what matches."),
            text(
                "model",
                models::NAME_SHAPE,
                models::is_name,
                "The model that what matches is for.",
            ),
        ],
    },
    List {
        key: "executor",
        doc: "Executors elsewhere that tasks are placed on, by the contract of docs/executors.md.",
        max: 1_000,
        short: Some("url"),
        example: &[("url", "http://127.0.0.1:8083")],
        fields: &[text("url", tasks::EXECUTOR_SHAPE, tasks::is_executor, "Where it is.")],
    },
    List {
        key: "runtime",
        doc: "What tasks can be run by in this process, besides the python and sh that are found.",
        max: 64,
        short: None,
        example: &[("name", "node"), ("command", "node"), ("extension", "js")],
        fields: &[
            text("name", clients::NAME_SHAPE, clients::is_name, "What tasks call it."),
            unset("command", Kind::Path, "The program, by its path or by its name in PATH."),
            unset(
                "args",
                Kind::Names { shape: tasks::ARGUMENT_SHAPE, check: tasks::is_argument },
                "Its arguments; {file} is the file with the code, which comes last if none has it.",
            ),
            unset(
                "env",
                Kind::Names { shape: tasks::VARIABLE_SHAPE, check: tasks::is_variable },
                "Variables that its tasks see.",
            ),
            text(
                "extension",
                tasks::EXTENSION_SHAPE,
                tasks::is_extension,
                "How the name of the file with the code ends.",
            ),
            unset(
                "timeout_max_ms",
                Kind::Integer { min: 1, max: 86_400_000 },
                "The longest that a task may run.",
            )
            .unit("ms"),
            unset(
                "memory_mib_max",
                Kind::Integer { min: 16, max: 1 << 20 },
                "The most memory that a task may use, all its processes together.",
            )
            .unit("MiB"),
            unset(
                "processes_max",
                Kind::Integer { min: 1, max: 65_536 },
                "The most processes and threads that a task may have at one time.",
            )
            .unit("processes"),
            unset(
                "cpu_s_max",
                Kind::Integer { min: 1, max: 864_000 },
                "The most CPU that a task may use, all its processes together.",
            )
            .unit("s"),
            unset(
                "file_mib_max",
                Kind::Integer { min: 1, max: 1 << 20 },
                "The most that a task may have in its work folder.",
            )
            .unit("MiB"),
            word_unset::<NetworkUse>(
                "network",
                "Whether its tasks may use the network: reaching for it ends them, fails, or works.",
            ),
        ],
    },
];

//! Names of load metrics, by kind of inference server.

use serde::Serialize;

/// The kind of a server with a metrics page. In order of precedence: a page on which several report, as an agent's
/// that passes on its server's, is read as the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerKind {
    /// An agent of ours.
    Tidegate,
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// TensorRT-LLM: `trtllm-serve`, or Triton with its backend.
    TrtLlm,
    /// Hugging Face's Text Generation Inference.
    Tgi,
    /// The server of llama.cpp.
    LlamaCpp,
    /// None of these.
    Unknown,
}

/// The meaning of a metric of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The fill of the KV cache, 0 … 1.
    KvRatio,
    /// Blocks of it in use.
    KvUsed,
    /// Blocks there are.
    KvTotal,
    /// Tokens of it in use.
    KvUsedTokens,
    /// Tokens there are room for.
    KvTotalTokens,
    /// Tokens in a block.
    BlockTokens,
    /// Blocks there are and the tokens in each, in these labels of an info metric.
    KvLabels { blocks: &'static str, tokens: &'static str },
    /// Tokens that are being prefilled.
    PrefillTokens,
    /// Requests that are being worked on.
    Running,
    /// Requests that wait.
    Waiting,
    /// Requests that wait for one of several reasons, by its number.
    WaitingFor(usize),
}

/// The reasons for which requests wait, apart, at servers that tell them.
pub(super) const WAIT_REASONS: usize = 2;

/// The metrics of one kind of server that begin alike: `vllm:…`, or `vllm_…` where a colon was not welcome on
/// the way (Ray, OpenTelemetry).
pub(super) struct Family {
    pub kind: ServerKind,
    prefix: &'static str,
    rows: &'static [Row],
}

/// One metric.
pub(super) struct Row {
    /// Without the family's prefix.
    name: &'static str,
    /// Several figures may share a name and be told apart by a label.
    pub only: Option<(&'static str, &'static str)>,
    pub meaning: Meaning,
}

/// All ratios are 0 … 1, also those that are called a percentage.
///
/// Note: vLLM reports the blocks of all engines of a data-parallel group as the `num_gpu_blocks` of each, so
/// that only the ratio to it is worth something. SGLang counts tokens, and its blocks are pages, of which it
/// tells the size in an info metric, and since 0.5.11 in gauges; its `token_usage` is that of the fullest of
/// several pools in hybrid models. TGI tells nothing of its cache, and llama.cpp does so no more since May 2025.
const FAMILIES: &[Family] = {
    use Meaning::*;
    &[
        Family {
            kind: ServerKind::Tidegate,
            prefix: "tidegate_upstream",
            rows: &[
                row("active_decode_blocks", KvUsed),
                row("kv_total_blocks", KvTotal),
                row("active_prefill_tokens", PrefillTokens),
                row("running_requests", Running),
                row("waiting_requests", Waiting),
            ],
        },
        Family {
            kind: ServerKind::Vllm,
            prefix: "vllm",
            rows: &[
                row("kv_cache_usage_perc", KvRatio),
                row("gpu_cache_usage_perc", KvRatio),
                row("cache_config_info", VLLM_CACHE),
                row("num_requests_running", Running),
                row("num_requests_waiting", Waiting),
                part("num_requests_waiting_by_reason", ("reason", "capacity"), WaitingFor(0)),
                part("num_requests_waiting_by_reason", ("reason", "deferred"), WaitingFor(1)),
            ],
        },
        Family {
            kind: ServerKind::Sglang,
            prefix: "sglang",
            rows: &[
                row("token_usage", KvRatio),
                row("num_used_tokens", KvUsedTokens),
                row("max_total_num_tokens", KvTotalTokens),
                row("cache_config_info", SGLANG_CACHE),
                row("page_size", BlockTokens),
                row("num_pages", KvTotal),
                row("num_running_reqs", Running),
                row("num_queue_reqs", Waiting),
            ],
        },
        Family {
            kind: ServerKind::TrtLlm,
            prefix: "trtllm",
            rows: &[
                row("kv_cache_utilization", KvRatio),
                row("kv_cache_used_blocks", KvUsed),
                row("kv_cache_max_blocks", KvTotal),
                row("kv_cache_tokens_per_block", BlockTokens),
                row("total_context_tokens", PrefillTokens),
                row("num_requests_running", Running),
                row("num_requests_waiting", Waiting),
            ],
        },
        Family {
            kind: ServerKind::TrtLlm,
            prefix: "nv_trt_llm",
            rows: &[
                part("kv_cache_block_metrics", ("kv_cache_block_type", "fraction"), KvRatio),
                part("kv_cache_block_metrics", ("kv_cache_block_type", "used"), KvUsed),
                part("kv_cache_block_metrics", ("kv_cache_block_type", "max"), KvTotal),
                part("kv_cache_block_metrics", ("kv_cache_block_type", "tokens_per"), BlockTokens),
                part("inflight_batcher_metrics", TRITON_CONTEXT_TOKENS, PrefillTokens),
                part("request_metrics", ("request_type", "active"), Running),
                part("request_metrics", ("request_type", "waiting"), Waiting),
            ],
        },
        Family {
            kind: ServerKind::Tgi,
            prefix: "tgi",
            rows: &[row("batch_current_size", Running), row("queue_size", Waiting)],
        },
        Family {
            kind: ServerKind::LlamaCpp,
            prefix: "llamacpp",
            rows: &[
                row("kv_cache_usage_ratio", KvRatio),
                row("requests_processing", Running),
                row("requests_deferred", Waiting),
            ],
        },
    ]
};

const VLLM_CACHE: Meaning = Meaning::KvLabels { blocks: "num_gpu_blocks", tokens: "block_size" };
const SGLANG_CACHE: Meaning = Meaning::KvLabels { blocks: "num_pages", tokens: "page_size" };

const TRITON_CONTEXT_TOKENS: (&str, &str) =
    ("inflight_batcher_specific_metric", "total_context_tokens");

const fn row(name: &'static str, meaning: Meaning) -> Row {
    Row { name, only: None, meaning }
}

const fn part(name: &'static str, only: (&'static str, &'static str), meaning: Meaning) -> Row {
    Row { name, only: Some(only), meaning }
}

// === impl Family ===

impl Family {
    /// The one that a metric belongs to, and the metric's name without its prefix.
    pub fn of(metric: &str) -> Option<(&'static Self, &str)> {
        let family = FAMILIES.iter().find(|family| metric.starts_with(family.prefix))?;
        let name = &metric[family.prefix.len()..];
        let joined = matches!(name.as_bytes().first(), Some(b':' | b'_'));
        joined.then(|| (family, &name[1..]))
    }

    /// The rows of a name. More than one when a label tells figures apart.
    pub fn rows(&self, name: &str) -> impl Iterator<Item = &'static Row> {
        self.rows.iter().filter(move |row| row.name == name)
    }
}

// === impl ServerKind ===

impl ServerKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Tidegate,
        Self::Vllm,
        Self::Sglang,
        Self::TrtLlm,
        Self::Tgi,
        Self::LlamaCpp,
        Self::Unknown,
    ];

    /// As labels and answers show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tidegate => "tidegate",
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::TrtLlm => "trt_llm",
            Self::Tgi => "tgi",
            Self::LlamaCpp => "llama_cpp",
            Self::Unknown => "unknown",
        }
    }

    /// The label that tells data-parallel engines apart.
    pub(super) fn rank_label(self) -> Option<&'static str> {
        match self {
            Self::Tidegate => Some("rank"),
            Self::Vllm => Some("engine"),
            Self::Sglang => Some("dp_rank"),
            Self::TrtLlm | Self::Tgi | Self::LlamaCpp | Self::Unknown => None,
        }
    }

    /// Returns true if a cache of no blocks means that the server is still starting. Others report 0 until their
    /// first request, and would never get one if that were taken for starting.
    pub(super) fn zero_blocks_is_starting(self) -> bool {
        matches!(self, Self::Tidegate | Self::Vllm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_with_a_colon_and_without() {
        for (metric, found) in [
            ("vllm:num_requests_running", Some((ServerKind::Vllm, "num_requests_running"))),
            ("vllm_num_requests_running", Some((ServerKind::Vllm, "num_requests_running"))),
            ("nv_trt_llm_request_metrics", Some((ServerKind::TrtLlm, "request_metrics"))),
            ("trtllm:num_requests_running", Some((ServerKind::TrtLlm, "num_requests_running"))),
            ("tidegate_upstream_kv_total_blocks", Some((ServerKind::Tidegate, "kv_total_blocks"))),
            ("vllmish", None),
            ("tidegate_in_flight", None),
            ("process_cpu_seconds_total", None),
            ("", None),
        ] {
            assert_eq!(
                Family::of(metric).map(|(family, name)| (family.kind, name)),
                found,
                "{metric}"
            );
        }
    }

    #[test]
    fn every_kind_but_the_unknown_one_has_rows_and_its_own_name() {
        for kind in ServerKind::ALL {
            let has_rows = FAMILIES.iter().any(|family| family.kind == kind);
            assert_eq!(has_rows, kind != ServerKind::Unknown, "{}", kind.name());
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn a_name_with_two_figures_tells_them_apart_by_a_label() {
        let (family, name) = Family::of("nv_trt_llm_request_metrics").unwrap();
        assert_eq!(family.rows(name).count(), 2);
        assert!(family.rows(name).all(|row| row.only.is_some()));
        assert_eq!(family.rows("request").count(), 0);
    }
}

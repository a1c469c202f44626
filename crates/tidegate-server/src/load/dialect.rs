//! What each kind of inference server calls its load.

use serde::Serialize;

/// What answers at a metrics page. In order of precedence: a page on which several tell something, as an agent's
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

/// What a metric tells of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// How full the KV cache is, 0 … 1.
    KvRatio,
    /// Blocks of it in use.
    KvUsed,
    /// Blocks there are.
    KvTotal,
    /// Blocks there are, in this label of an info metric.
    KvTotalLabel(&'static str),
    /// Tokens that are being prefilled.
    PrefillTokens,
    /// Requests that are being worked on.
    Running,
    /// Requests that wait.
    Waiting,
}

/// One metric of one kind of server.
pub(super) struct Row {
    pub kind: ServerKind,
    /// Without the family's prefix.
    name: &'static str,
    /// Several figures may share a name and be told apart by a label.
    pub only: Option<(&'static str, &'static str)>,
    pub meaning: Meaning,
}

/// A family of metrics: `vllm:…`, or `vllm_…` where a colon was not welcome on the way (Ray, OpenTelemetry).
struct Family {
    prefix: &'static str,
    kind: ServerKind,
}

const FAMILIES: &[Family] = &[
    family("tidegate_worker", ServerKind::Tidegate),
    family("vllm", ServerKind::Vllm),
    family("sglang", ServerKind::Sglang),
    family("trtllm", ServerKind::TrtLlm),
    family("nv_trt_llm", ServerKind::TrtLlm),
    family("tgi", ServerKind::Tgi),
    family("llamacpp", ServerKind::LlamaCpp),
];

/// All ratios are 0 … 1, also those that are called a percentage.
///
/// What surprises: vLLM tells the blocks of all engines of a data-parallel group as the `num_gpu_blocks` of each, so
/// that only the ratio to it is worth something. SGLang counts tokens, which are its blocks unless `--page-size` says
/// otherwise. Its `token_usage` is that of the fullest of several pools in hybrid models. TGI tells nothing of its
/// cache, and llama.cpp does so no more since May 2025.
const ROWS: &[Row] = {
    use Meaning::*;
    use ServerKind::*;
    &[
        row(Tidegate, "active_decode_blocks", KvUsed),
        row(Tidegate, "kv_total_blocks", KvTotal),
        row(Tidegate, "active_prefill_tokens", PrefillTokens),
        row(Tidegate, "running_requests", Running),
        row(Tidegate, "waiting_requests", Waiting),
        row(Vllm, "kv_cache_usage_perc", KvRatio),
        row(Vllm, "gpu_cache_usage_perc", KvRatio),
        row(Vllm, "cache_config_info", KvTotalLabel("num_gpu_blocks")),
        row(Vllm, "num_requests_running", Running),
        row(Vllm, "num_requests_waiting", Waiting),
        row(Sglang, "token_usage", KvRatio),
        row(Sglang, "num_used_tokens", KvUsed),
        row(Sglang, "max_total_num_tokens", KvTotal),
        row(Sglang, "num_running_reqs", Running),
        row(Sglang, "num_queue_reqs", Waiting),
        row(TrtLlm, "kv_cache_utilization", KvRatio),
        row(TrtLlm, "kv_cache_used_blocks", KvUsed),
        row(TrtLlm, "kv_cache_max_blocks", KvTotal),
        row(TrtLlm, "total_context_tokens", PrefillTokens),
        row(TrtLlm, "num_requests_running", Running),
        row(TrtLlm, "num_requests_waiting", Waiting),
        part(TrtLlm, "kv_cache_block_metrics", ("kv_cache_block_type", "fraction"), KvRatio),
        part(TrtLlm, "kv_cache_block_metrics", ("kv_cache_block_type", "used"), KvUsed),
        part(TrtLlm, "kv_cache_block_metrics", ("kv_cache_block_type", "max"), KvTotal),
        part(TrtLlm, "request_metrics", ("request_type", "active"), Running),
        part(TrtLlm, "request_metrics", ("request_type", "waiting"), Waiting),
        part(TrtLlm, "inflight_batcher_metrics", TRITON_CONTEXT_TOKENS, PrefillTokens),
        row(Tgi, "batch_current_size", Running),
        row(Tgi, "queue_size", Waiting),
        row(LlamaCpp, "kv_cache_usage_ratio", KvRatio),
        row(LlamaCpp, "requests_processing", Running),
        row(LlamaCpp, "requests_deferred", Waiting),
    ]
};

const TRITON_CONTEXT_TOKENS: (&str, &str) =
    ("inflight_batcher_specific_metric", "total_context_tokens");

const fn family(prefix: &'static str, kind: ServerKind) -> Family {
    Family { prefix, kind }
}

const fn row(kind: ServerKind, name: &'static str, meaning: Meaning) -> Row {
    Row { kind, name, only: None, meaning }
}

const fn part(
    kind: ServerKind,
    name: &'static str,
    only: (&'static str, &'static str),
    meaning: Meaning,
) -> Row {
    Row { kind, name, only: Some(only), meaning }
}

/// The kind of server that names a metric like this, and the name without its prefix.
pub(super) fn family_of(metric: &str) -> Option<(ServerKind, &str)> {
    FAMILIES.iter().find_map(|family| {
        let rest = metric.strip_prefix(family.prefix)?;
        let name = rest.strip_prefix([':', '_'])?;
        Some((family.kind, name))
    })
}

/// The rows for a metric of this kind of server. More than one when a label tells figures apart.
pub(super) fn rows(kind: ServerKind, name: &str) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.kind == kind && row.name == name)
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

    /// Whether a cache of no blocks says that the server is still starting. Others tell 0 until their first request,
    /// and would never get one if that were taken for starting.
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
            ("tidegate_worker_kv_total_blocks", Some((ServerKind::Tidegate, "kv_total_blocks"))),
            ("vllmish", None),
            ("tidegate_in_flight", None),
            ("process_cpu_seconds_total", None),
            ("", None),
        ] {
            assert_eq!(family_of(metric), found, "{metric}");
        }
    }

    #[test]
    fn every_kind_but_the_unknown_one_has_rows_and_its_own_name() {
        for kind in ServerKind::ALL {
            let has_rows = ROWS.iter().any(|row| row.kind == kind);
            assert_eq!(has_rows, kind != ServerKind::Unknown, "{}", kind.name());
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn a_name_with_two_figures_tells_them_apart_by_a_label() {
        let found: Vec<_> = rows(ServerKind::TrtLlm, "request_metrics").collect();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|row| row.only.is_some()));
        assert_eq!(rows(ServerKind::Vllm, "request_metrics").count(), 0);
    }
}

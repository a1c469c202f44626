//! Load metrics in the names, labels and types of the imitated servers.

use super::config::MetricsStyle;
use super::engine::RankLoad;
use std::fmt::Write as _;

/// Builder of a metrics page.
struct Page<'a> {
    text: String,
    labels: Labels<'a>,
    numbers: Numbers,
    ranks: &'a [RankLoad],
}

/// Number format of a server.
#[derive(Clone, Copy)]
enum Numbers {
    /// As in Python: 1 is `1.0`.
    Python,
    /// 1 is `1`.
    Plain,
}

/// Labels of a style.
enum Labels<'a> {
    /// No labels: one number for the server.
    None,
    /// Labels of the server.
    Server(String),
    /// Label of the rank, and further labels.
    Rank { label: &'a str, after: String },
}

/// Metrics page of a style; `None` for style `none`.
pub(super) fn page(style: MetricsStyle, model: &str, ranks: &[RankLoad]) -> Option<String> {
    let model = escaped(model);
    match style {
        MetricsStyle::Vllm => Some(vllm(&model, ranks)),
        MetricsStyle::Sglang => Some(sglang(&model, ranks)),
        MetricsStyle::Trtllm => Some(trtllm(&model, ranks)),
        MetricsStyle::Tgi => Some(tgi(ranks)),
        MetricsStyle::Llamacpp => Some(llamacpp(ranks)),
        MetricsStyle::Tidegate => Some(tidegate(ranks)),
        MetricsStyle::None => None,
    }
}

fn vllm(model: &str, ranks: &[RankLoad]) -> String {
    let after = format!(",model_name=\"{model}\"");
    let mut page = Page::new(Labels::rank("engine", &after), Numbers::Python, ranks);
    page.gauge(
        "vllm:num_requests_running",
        "Number of requests in model execution batches.",
        |load| load.running as f64,
    );
    page.gauge(
        "vllm:num_requests_waiting",
        "Number of requests waiting to be processed.",
        |load| load.waiting as f64,
    );
    let name = "vllm:num_requests_waiting_by_reason";
    page.head(name, "gauge", "Number of requests waiting by reason.");
    for (rank, load) in ranks.iter().enumerate() {
        for (reason, count) in [("capacity", load.waiting), ("deferred", 0)] {
            let labels = format!("engine=\"{rank}\",model_name=\"{model}\",reason=\"{reason}\"");
            page.series(name, &labels, count as f64);
        }
    }
    page.gauge(
        "vllm:kv_cache_usage_perc",
        "KV-cache usage. 1 means 100 percent usage.",
        RankLoad::usage,
    );
    page.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", |load| {
        load.prompt_tokens_total as f64
    });
    page.counter(
        "vllm:generation_tokens_total",
        "Number of generation tokens processed.",
        |load| load.output_tokens_total as f64,
    );
    page.head("vllm:request_success_total", "counter", "Count of successfully processed requests.");
    for (rank, load) in ranks.iter().enumerate() {
        for (reason, count) in [("stop", load.stopped_total), ("length", load.cut_total)] {
            let labels =
                format!("engine=\"{rank}\",finished_reason=\"{reason}\",model_name=\"{model}\"");
            page.series("vllm:request_success_total", &labels, count as f64);
        }
    }
    let name = "vllm:cache_config_info";
    page.head(name, "gauge", "Information of the LLMEngine CacheConfig");
    for (rank, load) in ranks.iter().enumerate() {
        let labels = format!(
            "block_size=\"{}\",cache_dtype=\"auto\",engine=\"{rank}\",num_gpu_blocks=\"{}\"",
            load.block_size, load.total_blocks
        );
        page.series(name, &labels, 1.0);
    }
    page.text
}

fn sglang(model: &str, ranks: &[RankLoad]) -> String {
    let after = format!(
        ",engine_type=\"unified\",model_name=\"{model}\",moe_ep_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\""
    );
    let mut page = Page::new(Labels::rank("dp_rank", &after), Numbers::Python, ranks);
    page.gauge("sglang:num_running_reqs", "The number of running requests.", |load| {
        load.running as f64
    });
    page.gauge("sglang:num_queue_reqs", "The number of requests in the waiting queue.", |load| {
        load.waiting as f64
    });
    page.gauge("sglang:num_used_tokens", "The number of used tokens.", |load| {
        (load.active_blocks * load.block_size) as f64
    });
    page.gauge("sglang:token_usage", "The token usage.", RankLoad::usage);
    page.gauge("sglang:max_total_num_tokens", "Maximum total number of tokens.", |load| {
        (load.total_blocks * load.block_size) as f64
    });
    page.counter("sglang:prompt_tokens_total", "Number of prefill tokens processed.", |load| {
        load.prompt_tokens_total as f64
    });
    page.counter(
        "sglang:generation_tokens_total",
        "Number of generation tokens processed.",
        |load| load.output_tokens_total as f64,
    );
    let name = "sglang:cache_config_info";
    page.head(name, "gauge", "Information of the cache configuration.");
    for (rank, load) in ranks.iter().enumerate() {
        let (pages, size) = (load.total_blocks, load.block_size);
        let labels =
            format!("dp_rank=\"{rank}\",num_pages=\"{pages}\",page_size=\"{size}\"{after}");
        page.series(name, &labels, 1.0);
    }
    page.text
}

fn trtllm(model: &str, ranks: &[RankLoad]) -> String {
    let sum = [sum(ranks)];
    let labels = format!("engine_type=\"trtllm\",model_name=\"{model}\"");
    let mut page = Page::new(Labels::Server(labels.clone()), Numbers::Python, &sum);
    page.gauge("trtllm_kv_cache_utilization", "KV cache utilization.", RankLoad::usage);
    page.gauge("trtllm_kv_cache_max_blocks", "Total blocks of the KV cache.", |load| {
        load.total_blocks as f64
    });
    page.gauge("trtllm_kv_cache_tokens_per_block", "Tokens in a block of the KV cache.", |load| {
        load.block_size as f64
    });
    page.gauge("trtllm_num_requests_running", "Number of requests being served.", |load| {
        load.running as f64
    });
    page.gauge("trtllm_num_requests_waiting", "Number of requests in the queue.", |load| {
        load.waiting as f64
    });
    let name = "trtllm_request_success_total";
    page.head(name, "counter", "Count of successfully processed requests.");
    for (reason, count) in [("stop", sum[0].stopped_total), ("length", sum[0].cut_total)] {
        page.series(name, &format!("finished_reason=\"{reason}\",{labels}"), count as f64);
    }
    page.text
}

fn tgi(ranks: &[RankLoad]) -> String {
    let sum = [sum(ranks)];
    let mut page = Page::new(Labels::None, Numbers::Plain, &sum);
    page.gauge("tgi_queue_size", "Current queue size", |load| load.waiting as f64);
    page.gauge("tgi_batch_current_size", "Current batch size", |load| load.running as f64);
    page.gauge("tgi_batch_current_max_tokens", "Maximum tokens for the current batch", |load| {
        load.cached_tokens as f64
    });
    page.counter("tgi_request_success", "Number of successful requests", |load| {
        (load.stopped_total + load.cut_total) as f64
    });
    page.text
}

fn llamacpp(ranks: &[RankLoad]) -> String {
    let sum = [sum(ranks)];
    let mut page = Page::new(Labels::None, Numbers::Plain, &sum);
    page.counter("llamacpp:prompt_tokens_total", "Number of prompt tokens processed.", |load| {
        load.prompt_tokens_total as f64
    });
    page.counter(
        "llamacpp:tokens_predicted_total",
        "Number of generation tokens processed.",
        |load| load.output_tokens_total as f64,
    );
    page.gauge("llamacpp:requests_processing", "Number of requests processing.", |load| {
        load.running as f64
    });
    page.gauge("llamacpp:requests_deferred", "Number of requests deferred.", |load| {
        load.waiting as f64
    });
    page.text
}

/// Metrics of Tidegate's agent.
fn tidegate(ranks: &[RankLoad]) -> String {
    let mut page = Page::new(Labels::rank("rank", ""), Numbers::Plain, ranks);
    page.gauge("tidegate_upstream_active_decode_blocks", "KV blocks in use.", |load| {
        load.active_blocks as f64
    });
    page.gauge("tidegate_upstream_kv_total_blocks", "KV blocks in total.", |load| {
        load.total_blocks as f64
    });
    page.gauge("tidegate_upstream_active_prefill_tokens", "Prompt tokens in prefill.", |load| {
        load.prefill_tokens as f64
    });
    page.gauge("tidegate_upstream_running_requests", "Running requests.", |load| {
        load.running as f64
    });
    page.gauge("tidegate_upstream_waiting_requests", "Queued requests.", |load| {
        load.waiting as f64
    });
    page.text
}

fn sum(ranks: &[RankLoad]) -> RankLoad {
    ranks.iter().copied().fold(RankLoad::default(), RankLoad::plus)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

// === impl Labels ===

impl<'a> Labels<'a> {
    fn rank(label: &'a str, after: &str) -> Self {
        Self::Rank { label, after: after.to_owned() }
    }

    fn of(&self, rank: usize) -> String {
        match self {
            Self::None => String::new(),
            Self::Server(labels) => labels.clone(),
            Self::Rank { label, after } => format!("{label}=\"{rank}\"{after}"),
        }
    }
}

// === impl Page ===

impl<'a> Page<'a> {
    fn new(labels: Labels<'a>, numbers: Numbers, ranks: &'a [RankLoad]) -> Self {
        Self { text: String::new(), labels, numbers, ranks }
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Fn(&RankLoad) -> f64) {
        self.metric(name, "gauge", help, value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Fn(&RankLoad) -> f64) {
        self.metric(name, "counter", help, value);
    }

    fn metric(&mut self, name: &str, kind: &str, help: &str, value: impl Fn(&RankLoad) -> f64) {
        self.head(name, kind, help);
        for (rank, load) in self.ranks.iter().enumerate() {
            let labels = self.labels.of(rank);
            self.series(name, &labels, value(load));
        }
    }

    // Writing to a String can't fail.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn series(&mut self, name: &str, labels: &str, value: f64) {
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        let _ = match self.numbers {
            Numbers::Python => writeln!(self.text, "{name}{open}{labels}{close} {value:?}"),
            Numbers::Plain => writeln!(self.text, "{name}{open}{labels}{close} {value}"),
        };
    }
}

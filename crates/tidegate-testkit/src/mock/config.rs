use super::engine::EngineSettings;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// Limit of models.
const MODELS_MAX: usize = 64;

/// Configuration of a mock; [`MockConfig::errors`] checks the ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct MockConfig {
    /// Listen address; loopback only, because the mock has no authentication. Port 0 picks a free port.
    pub listen: SocketAddr,
    /// Name in the response header `x-tidegate-mock`.
    pub name: String,
    /// Models that the mock serves; metrics name the first.
    pub models: Vec<String>,
    /// Size, speed and seed.
    pub engine: EngineSettings,
    /// Format of `/metrics`.
    pub metrics: MetricsStyle,
    /// Pieces of plain work, running and queued, beyond which all take longer.
    pub thrash_above: Option<usize>,
    /// Accepts fault injection at `/mock/fault`.
    pub faults: bool,
}

/// Server whose metrics the mock imitates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsStyle {
    /// vLLM, version 1 engine.
    #[default]
    Vllm,
    /// SGLang with `--enable-metrics`.
    Sglang,
    /// TensorRT-LLM's `trtllm-serve`; also served at `/prometheus/metrics`, as it does.
    Trtllm,
    /// Hugging Face text-generation-inference.
    Tgi,
    /// llama.cpp's server with `--metrics`.
    Llamacpp,
    /// Metrics of Tidegate's own agents.
    Tidegate,
    /// None: `/metrics` is not found.
    None,
}

/// Setting out of range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MockConfigError {
    /// Name of the flag without its dashes.
    pub setting: &'static str,
    /// Given value.
    pub given: String,
    /// Allowed values.
    pub allowed: String,
}

// === impl MockConfig ===

impl Default for MockConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 9000)),
            name: "mock-1".to_owned(),
            models: vec!["tidegate-mock".to_owned()],
            engine: EngineSettings {
                ranks: 1,
                kv_blocks: 2048,
                block_size: 16,
                max_running: 64,
                max_waiting: 256,
                prefill_tokens_per_s: 8000.0,
                decode_ms_per_token: 20.0,
                output_tokens_mean: 128,
                seed: 0,
            },
            metrics: MetricsStyle::default(),
            thrash_above: None,
            faults: false,
        }
    }
}

impl MockConfig {
    /// Small mock on a free port that a few requests overload.
    #[must_use]
    pub fn small(name: &str) -> Self {
        let config = Self::default();
        let engine = EngineSettings {
            kv_blocks: 256,
            max_running: 8,
            max_waiting: 16,
            output_tokens_mean: 48,
            ..config.engine
        };
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { listen, name: name.to_owned(), engine, ..config }
    }

    /// All settings that are out of range.
    #[must_use]
    pub fn errors(&self) -> Vec<MockConfigError> {
        let engine = &self.engine;
        let ranges = [
            within("ranks", engine.ranks, 1..=64, "ranks"),
            within("kv-blocks", engine.kv_blocks, 1..=1_048_576, "blocks"),
            within("block-size", engine.block_size, 1..=256, "tokens"),
            within("max-running", engine.max_running, 1..=4096, "requests"),
            within("max-waiting", engine.max_waiting, 0..=65_536, "requests"),
            within(
                "prefill-tokens-per-s",
                engine.prefill_tokens_per_s,
                1.0..=1e9,
                "tokens per second",
            ),
            within("decode-ms-per-token", engine.decode_ms_per_token, 0.01..=60_000.0, "ms"),
            within("output-tokens", engine.output_tokens_mean, 1..=1_000_000, "tokens"),
        ];
        let loopback = self.listen.ip().is_loopback();
        let others = [
            (!loopback).then(|| {
                let allowed = "a loopback address: the mock has no authentication";
                MockConfigError::new("listen", self.listen, allowed)
            }),
            (!is_name(&self.name)).then(|| {
                let allowed = "1 … 64 letters, digits, dots, dashes and underscores";
                MockConfigError::new("name", format_args!("{:?}", self.name), allowed)
            }),
            self.model_error(),
        ];
        others.into_iter().chain(ranges).flatten().collect()
    }

    fn model_error(&self) -> Option<MockConfigError> {
        let is_model = |name: &String| {
            (1..=256).contains(&name.len()) && !name.contains(|c: char| c.is_control())
        };
        let unique = |(at, name): (usize, &String)| !self.models[..at].contains(name);
        let right = (1..=MODELS_MAX).contains(&self.models.len())
            && self.models.iter().all(is_model)
            && self.models.iter().enumerate().all(unique);
        let allowed = "1 … 64 different names of 1 … 256 bytes without control characters";
        (!right).then(|| MockConfigError::new("model", format_args!("{:?}", self.models), allowed))
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}

fn within<T: PartialOrd + fmt::Display>(
    setting: &'static str,
    given: T,
    range: RangeInclusive<T>,
    unit: &str,
) -> Option<MockConfigError> {
    let allowed = format!("{} … {} {unit}", range.start(), range.end());
    (!range.contains(&given)).then(|| MockConfigError::new(setting, given, &allowed))
}

// === impl MetricsStyle ===

impl MetricsStyle {
    /// All styles with their names.
    pub const ALL: [(&'static str, Self); 7] = [
        ("vllm", Self::Vllm),
        ("sglang", Self::Sglang),
        ("trtllm", Self::Trtllm),
        ("tgi", Self::Tgi),
        ("llamacpp", Self::Llamacpp),
        ("tidegate", Self::Tidegate),
        ("none", Self::None),
    ];
}

// === impl MockConfigError ===

impl MockConfigError {
    fn new(setting: &'static str, given: impl fmt::Display, allowed: &str) -> Self {
        Self { setting, given: given.to_string(), allowed: allowed.to_owned() }
    }
}

impl fmt::Display for MockConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: given {}; allowed: {}", self.setting, self.given, self.allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        assert_eq!(MockConfig::default().errors(), []);
        assert_eq!(MockConfig::small("a.b-c_9").errors(), []);
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let mut config = MockConfig {
            listen: SocketAddr::from(([0, 0, 0, 0], 9000)),
            name: "a b".to_owned(),
            models: vec!["x".to_owned(), "x".to_owned()],
            ..MockConfig::default()
        };
        config.engine.ranks = 0;
        config.engine.decode_ms_per_token = f64::NAN;
        config.engine.prefill_tokens_per_s = f64::INFINITY;
        let wrong: Vec<_> = config.errors().iter().map(|error| error.setting).collect();
        let expected =
            ["listen", "name", "model", "ranks", "prefill-tokens-per-s", "decode-ms-per-token"];
        assert_eq!(wrong, expected);
        assert_eq!(config.errors()[3].to_string(), "ranks: given 0; allowed: 1 … 64 ranks");
    }
}

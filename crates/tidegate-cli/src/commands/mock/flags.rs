use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use std::net::SocketAddr;
use tidegate_testkit::mock::engine::EngineSettings;
use tidegate_testkit::mock::{MetricsStyle, MockConfig};

pub const EXAMPLES: &str = "\
Examples:
  tidegate mock                                        listens on 127.0.0.1:9000
  tidegate mock --listen 127.0.0.1:0 --name b          on a free port, printed at the start
  tidegate mock --kv-blocks 128 --max-running 4        small: a few requests fill it
  tidegate mock --ranks 4 --metrics sglang             four data-parallel ranks, SGLang's metrics
  tidegate mock --faults                               accepts POST /mock/fault, for drills

Then: tidegate up --upstream http://127.0.0.1:9000

Sizes and speeds apply to each rank. docs/mock.md describes the model and how it differs from a \
real server.

Exit codes: 0 ok, 1 failed while running, 2 invalid flags.";

/// Flags of `tidegate mock`; their defaults are those of [`MockConfig`].
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct MockFlags {
    /// Listen address, loopback only; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value_t = MockConfig::default().listen)]
    listen: SocketAddr,
    /// Name in the response header x-tidegate-mock
    #[arg(long, default_value_t = MockConfig::default().name)]
    name: String,
    /// Model to serve; repeatable [default: tidegate-mock]
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Format of /metrics
    #[arg(long, value_name = "STYLE", default_value = "vllm", value_parser = style_parser())]
    metrics: MetricsStyle,
    /// Accept fault injection by POST /mock/fault
    #[arg(long)]
    faults: bool,
    #[command(flatten)]
    size: SizeFlags,
    #[command(flatten)]
    speed: SpeedFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Size")]
struct SizeFlags {
    /// Data-parallel ranks, each with its own batch, queue and KV cache
    #[arg(long, value_name = "N", default_value_t = engine().ranks)]
    ranks: usize,
    /// KV cache blocks
    #[arg(long, value_name = "N", default_value_t = engine().kv_blocks)]
    kv_blocks: u64,
    /// Tokens per block
    #[arg(long, value_name = "TOKENS", default_value_t = engine().block_size)]
    block_size: u64,
    /// Limit of running requests
    #[arg(long, value_name = "N", default_value_t = engine().max_running)]
    max_running: usize,
    /// Limit of queued requests; further ones get 503
    #[arg(long, value_name = "N", default_value_t = engine().max_waiting)]
    max_waiting: usize,
    /// Requests at /work above which it collapses: it works by the square of the excess more slowly
    #[arg(long, value_name = "N")]
    thrash_above: Option<usize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Speed")]
struct SpeedFlags {
    /// Prefill speed in tokens per second
    #[arg(long, value_name = "TOKENS", default_value_t = engine().prefill_tokens_per_s)]
    prefill_tokens_per_s: f64,
    /// Decode time per token of a single request; 1.5 times as long in a full batch
    #[arg(long, value_name = "MS", default_value_t = engine().decode_ms_per_token)]
    decode_ms_per_token: f64,
    /// Mean output length of requests without max_tokens
    #[arg(long, value_name = "MEAN", default_value_t = engine().output_tokens_mean)]
    output_tokens: u64,
    /// Seed of the random numbers: same seed and same requests give the same responses
    #[arg(long, default_value_t = engine().seed)]
    seed: u64,
}

// === impl MockFlags ===

impl MockFlags {
    pub fn config(&self) -> MockConfig {
        let defaults = MockConfig::default();
        MockConfig {
            listen: self.listen,
            name: self.name.clone(),
            models: match self.models.is_empty() {
                true => defaults.models,
                false => self.models.clone(),
            },
            engine: EngineSettings {
                ranks: self.size.ranks,
                kv_blocks: self.size.kv_blocks,
                block_size: self.size.block_size,
                max_running: self.size.max_running,
                max_waiting: self.size.max_waiting,
                prefill_tokens_per_s: self.speed.prefill_tokens_per_s,
                decode_ms_per_token: self.speed.decode_ms_per_token,
                output_tokens_mean: self.speed.output_tokens,
                seed: self.speed.seed,
            },
            metrics: self.metrics,
            thrash_above: self.size.thrash_above,
            faults: self.faults,
        }
    }
}

fn engine() -> EngineSettings {
    MockConfig::default().engine
}

fn style_parser() -> impl clap::builder::TypedValueParser<Value = MetricsStyle> {
    let names = MetricsStyle::ALL.map(|(name, _)| name);
    PossibleValuesParser::new(names).map(|given| {
        let known = MetricsStyle::ALL.into_iter().find(|(name, _)| *name == given);
        known.map_or(MetricsStyle::default(), |(_, style)| style)
    })
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use tidegate_testkit::mock::{MetricsStyle, MockConfig};

    fn parsed(line: &str) -> MockConfig {
        let Command::Mock(flags) = Cli::parse_from(line.split_whitespace()).command else {
            panic!("not mock");
        };
        flags.config()
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        assert_eq!(parsed("tidegate mock"), MockConfig::default());
    }

    #[test]
    fn every_flag_counts() {
        let config = parsed(
            "tidegate mock --listen 127.0.0.1:1 --name a --model b --model c --ranks 2 --kv-blocks 3 \
             --block-size 4 --max-running 5 --max-waiting 6 --prefill-tokens-per-s 7 \
             --decode-ms-per-token 0.8 --output-tokens 9 --seed 10 --metrics tgi --faults --thrash-above 11",
        );
        let engine = config.engine;
        assert_eq!((config.listen.port(), config.name.as_str()), (1, "a"));
        assert_eq!(config.models, ["b", "c"]);
        assert_eq!((engine.ranks, engine.kv_blocks, engine.block_size), (2, 3, 4));
        assert_eq!((engine.max_running, engine.max_waiting), (5, 6));
        assert_eq!((engine.prefill_tokens_per_s, engine.decode_ms_per_token), (7.0, 0.8));
        assert_eq!((engine.output_tokens_mean, engine.seed), (9, 10));
        assert_eq!((config.metrics, config.faults), (MetricsStyle::Tgi, true));
        assert_eq!(config.thrash_above, Some(11));
    }
}

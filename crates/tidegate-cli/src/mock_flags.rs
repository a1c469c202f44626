use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use std::net::SocketAddr;
use tidegate_server::mock::engine::EngineSettings;
use tidegate_server::mock::{MetricsStyle, MockConfig};

pub const EXAMPLES: &str = "\
Examples:
  tidegate mock                                        one on 127.0.0.1:9000
  tidegate mock --listen 127.0.0.1:0 --name b          on any free port, printed at the start
  tidegate mock --kv-blocks 128 --max-running 4        so small that a few requests fill it
  tidegate mock --ranks 4 --metrics sglang             four data-parallel ranks, SGLang's metrics
  tidegate mock --faults                               with POST /mock/fault, for drills

Then: tidegate up --upstream http://127.0.0.1:9000

Sizes and speeds are for each rank. docs/mock.md says how it behaves, and where that differs from a real server.";

/// What `tidegate mock` was told. The defaults are [`MockConfig`]'s.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct MockFlags {
    /// Where it listens: a loopback address; port 0 is any free one
    #[arg(long, value_name = "ADDR", default_value_t = MockConfig::default().listen)]
    listen: SocketAddr,
    /// What it calls itself in the header x-tidegate-mock
    #[arg(long, default_value_t = MockConfig::default().name)]
    name: String,
    /// A model that it serves; may be repeated [default: tidegate-mock]
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Whose metrics /metrics looks like
    #[arg(long, value_name = "STYLE", default_value = "vllm", value_parser = style_parser())]
    metrics: MetricsStyle,
    /// Let clients on this machine make it fail, by POST /mock/fault
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
    /// Data-parallel ranks, each with a batch, a queue and a cache of its own
    #[arg(long, value_name = "N", default_value_t = engine().ranks)]
    ranks: usize,
    /// Blocks of KV cache
    #[arg(long, value_name = "N", default_value_t = engine().kv_blocks)]
    kv_blocks: u64,
    /// Tokens in a block
    #[arg(long, value_name = "TOKENS", default_value_t = engine().block_size)]
    block_size: u64,
    /// Requests in the batch
    #[arg(long, value_name = "N", default_value_t = engine().max_running)]
    max_running: usize,
    /// Requests in the queue; beyond it they are refused with 503
    #[arg(long, value_name = "N", default_value_t = engine().max_waiting)]
    max_waiting: usize,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Speed")]
struct SpeedFlags {
    /// How fast prompts are read
    #[arg(long, value_name = "TOKENS", default_value_t = engine().prefill_tokens_per_s)]
    prefill_tokens_per_s: f64,
    /// How long a token takes, for a request that is alone; half again in a full batch
    #[arg(long, value_name = "MS", default_value_t = engine().decode_ms_per_token)]
    decode_ms_per_token: f64,
    /// Mean length of answers to requests that set no max_tokens
    #[arg(long, value_name = "MEAN", default_value_t = engine().output_tokens_mean)]
    output_tokens: u64,
    /// What is drawn follows from it: same seed and same requests, same answers
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
    use crate::flags::{Cli, Command};
    use clap::Parser;
    use tidegate_server::mock::{MetricsStyle, MockConfig};

    fn parsed(line: &str) -> MockConfig {
        let Command::Mock(flags) = Cli::parse_from(line.split_whitespace()).command else {
            panic!("not mock");
        };
        flags.config()
    }

    #[test]
    fn without_flags_it_is_what_the_library_starts() {
        assert_eq!(parsed("tidegate mock"), MockConfig::default());
    }

    #[test]
    fn every_flag_counts() {
        let config = parsed(
            "tidegate mock --listen 127.0.0.1:1 --name a --model b --model c --ranks 2 --kv-blocks 3 \
             --block-size 4 --max-running 5 --max-waiting 6 --prefill-tokens-per-s 7 \
             --decode-ms-per-token 0.8 --output-tokens 9 --seed 10 --metrics tgi --faults",
        );
        let engine = config.engine;
        assert_eq!((config.listen.port(), config.name.as_str()), (1, "a"));
        assert_eq!(config.models, ["b", "c"]);
        assert_eq!((engine.ranks, engine.kv_blocks, engine.block_size), (2, 3, 4));
        assert_eq!((engine.max_running, engine.max_waiting), (5, 6));
        assert_eq!((engine.prefill_tokens_per_s, engine.decode_ms_per_token), (7.0, 0.8));
        assert_eq!((engine.output_tokens_mean, engine.seed), (9, 10));
        assert_eq!((config.metrics, config.faults), (MetricsStyle::Tgi, true));
    }
}

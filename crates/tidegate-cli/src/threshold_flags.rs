use clap::{Args, Subcommand, ValueEnum};

pub const EXAMPLES: &str = "\
Examples:
  tidegate threshold get
  tidegate threshold set Qwen/Qwen3-0.6B --active-decode-blocks-threshold 0.85
  tidegate threshold set Qwen/Qwen3-0.6B --preset latency
  tidegate threshold clear Qwen/Qwen3-0.6B
  tidegate threshold clear Qwen/Qwen3-0.6B active-prefill-tokens

A change holds at once and until the gateway restarts; [routing] and [[model]] in the file hold for good.
The model * stands for requests whose model nobody knows.

Exit codes: 0 ok, 1 no gateway there or no such model, 2 wrong flags or values.";

/// What to do with the thresholds of a running gateway.
#[derive(Debug, Subcommand)]
pub enum ThresholdCommand {
    /// Show when workers count as busy, of all models or of one
    Get {
        /// The model
        model: Option<String>,
        /// As the gateway's JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: AdminFlag,
    },
    /// Change some thresholds of a model; those that are not given stay
    Set {
        /// The model
        model: String,
        #[command(flatten)]
        values: ThresholdValues,
        /// As the gateway's JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: AdminFlag,
    },
    /// Switch checks of a model off
    Clear {
        /// The model
        model: String,
        /// Which checks; without any, all of them
        #[arg(value_enum)]
        checks: Vec<Check>,
        /// As the gateway's JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: AdminFlag,
    },
}

#[derive(Debug, Args)]
pub struct AdminFlag {
    /// The gateway's admin address
    #[arg(long = "admin", value_name = "ADDR", env = "TIDEGATE_LISTEN_ADMIN_ADDRESS")]
    #[arg(default_value = "127.0.0.1:8001")]
    pub address: String,
}

/// Typed as text: the gateway says what is wrong with a value, in the same words for everyone.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct ThresholdValues {
    /// Busy above this share of the KV cache, 0.0 … 1.0
    #[arg(long, value_name = "RATIO", allow_negative_numbers = true)]
    pub active_decode_blocks_threshold: Option<String>,
    /// Busy above this many tokens being prefilled
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub active_prefill_tokens_threshold: Option<String>,
    /// At most this many requests at once
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub active_requests_threshold: Option<String>,
    /// The thresholds of an aim; single ones given beside it win
    #[arg(long, value_enum)]
    pub preset: Option<Aim>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Aim {
    /// Refuse early: 0.70 and 5,000
    Latency,
    /// Fill workers: 0.95 and 20,000
    Throughput,
    /// Never refuse
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Check {
    #[value(name = "active-decode-blocks")]
    DecodeBlocks,
    #[value(name = "active-prefill-tokens")]
    PrefillTokens,
    #[value(name = "active-requests")]
    Requests,
}

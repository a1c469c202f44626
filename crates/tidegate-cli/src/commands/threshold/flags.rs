use crate::admin_client::AdminFlag;
use clap::{Args, Subcommand, ValueEnum};

pub const EXAMPLES: &str = "\
Examples:
  tidegate threshold get
  tidegate threshold set Qwen/Qwen3-0.6B --active-decode-blocks-threshold 0.85
  tidegate threshold set Qwen/Qwen3-0.6B --preset latency
  tidegate threshold clear Qwen/Qwen3-0.6B
  tidegate threshold clear Qwen/Qwen3-0.6B active-prefill-tokens

A change is effective at once and until the gateway restarts; [routing] and [[model]] in the file \
are permanent. The model * stands for requests without a known model.

Exit codes: 0 ok, 1 gateway not reachable or unknown model, 2 invalid flags or values.";

/// Subcommands of `tidegate threshold`.
#[derive(Debug, Subcommand)]
pub enum ThresholdCommand {
    /// Show the busy thresholds of all models or of one
    Get {
        /// Model
        model: Option<String>,
        /// Print the gateway's JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: AdminFlag,
    },
    /// Change thresholds of a model; others stay
    Set {
        /// Model
        model: String,
        #[command(flatten)]
        values: ThresholdValues,
        /// Print the gateway's JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: AdminFlag,
    },
    /// Remove thresholds of a model
    Clear {
        /// Model
        model: String,
        /// Thresholds to remove [default: all]
        #[arg(value_enum, value_name = "THRESHOLD")]
        checks: Vec<Check>,
        /// Print the gateway's JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: AdminFlag,
    },
}

/// Threshold values as text: the gateway validates them.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct ThresholdValues {
    /// Busy above this share of KV cache blocks, 0.0 … 1.0
    #[arg(long, value_name = "RATIO", allow_negative_numbers = true)]
    pub active_decode_blocks_threshold: Option<String>,
    /// Busy above this number of prefill tokens
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub active_prefill_tokens_threshold: Option<String>,
    /// Limit of concurrent requests per upstream
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub active_requests_threshold: Option<String>,
    /// Thresholds of a preset; single thresholds override it
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Preset {
    /// Refuse early: 0.70 of KV blocks, 5,000 prefill tokens
    Latency,
    /// Fill upstreams: 0.95 of KV blocks, 20,000 prefill tokens
    Throughput,
    /// No thresholds
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

/// Longest report, in bytes, without its newline.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Most counters of an execution.
pub const COUNTERS_MAX: usize = 32;
/// Most gauges of an execution.
pub const GAUGES_MAX: usize = 32;
/// Most histograms of an execution.
pub const HISTOGRAMS_MAX: usize = 8;
/// Most buckets of a histogram.
pub const BUCKETS_MAX: usize = 32;
/// Longest name of a counter, gauge or histogram, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// Longest message, in bytes. A longer one is cut.
pub const MESSAGE_BYTES_MAX: usize = 256;

use super::password::masked;
use super::settings::Settings;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate::line_protocol::Precision;
use tidegate::window::Law;

/// What the place looks like where records are stored, in words.
pub(super) const STORE_SHAPE: &str = "a folder, or postgres://user@host/database";
/// What the name of a tag looks like, in words.
pub(super) const TAG_SHAPE: &str = "the name of a tag, 1 … 128 characters without spaces";

/// Where usage records come in, and where they are kept.
#[derive(Clone, PartialEq)]
pub struct IngestConfig {
    /// Whether `tidegate up` takes records in at all. Default true.
    pub enabled: bool,
    /// For frames with acks; always loopback. Default `127.0.0.1:7070`.
    pub frames_address: SocketAddr,
    /// For lines of Influx line protocol; always loopback. Default `127.0.0.1:7071`.
    pub lines_address: SocketAddr,
    /// A folder, or the URL of a PostgreSQL database. Default `tidegate-data`.
    pub store: String,
    /// The file of tariffs. Default none: every record is priced by the fallback, at nothing.
    pub tariffs: Option<PathBuf>,
    /// How windows follow load. Default cubic.
    pub law: Law,
    /// The smallest window of a stage, 64 … 131,072 slots. Default 1,024.
    pub window_slots_min: u64,
    /// The largest, 1,024 … 1,048,576 slots. Default 131,072.
    pub window_slots_max: u64,
    /// What all that is under way may hold in memory, 16 MiB … 64 GiB. Default 512 MiB.
    pub memory_bytes: u64,
    /// Connections of each protocol open at once, 1 … 65,536. Default 1,024.
    pub connections_max: usize,
    /// The longest frame, 2 KiB … 16 MiB. Default 64 KiB.
    pub frame_bytes_max: usize,
    /// The longest line, 256 B … 1 MiB. Default 64 KiB.
    pub line_bytes_max: usize,
    /// The tag of a line that names who pays. Default `tenant`.
    pub tenant_tag: String,
    /// What one of a line's timestamp is. Default a nanosecond.
    pub line_precision: Precision,
    /// How long records are kept, 1 h … 10 years. Default for ever.
    pub retention: Option<Duration>,
    /// How long a connection may say nothing, 1 s … 24 h. Default 1 h: that a peer is gone is found by TCP itself.
    pub idle_timeout: Duration,
    /// How long a peer may leave an answer unread, 100 ms … 10 min. Default 30 s.
    pub write_timeout: Duration,
}

// === impl IngestConfig ===

impl IngestConfig {
    /// Where records are kept, without a password.
    #[must_use]
    pub fn store_shown(&self) -> String {
        masked(&self.store).into_owned()
    }
}

/// Without the password that the URL of a store may hold.
impl std::fmt::Debug for IngestConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IngestConfig")
            .field("enabled", &self.enabled)
            .field("frames_address", &self.frames_address)
            .field("lines_address", &self.lines_address)
            .field("store", &self.store_shown())
            .field("law", &self.law)
            .field("memory_bytes", &self.memory_bytes)
            .finish_non_exhaustive()
    }
}

pub(super) fn ingest(settings: &Settings) -> IngestConfig {
    IngestConfig {
        enabled: settings.get("ingest.enabled"),
        frames_address: settings.get("ingest.frames_address"),
        lines_address: settings.get("ingest.lines_address"),
        store: settings.get("ingest.store"),
        tariffs: settings.optional("ingest.tariffs"),
        law: settings.choice("ingest.law"),
        window_slots_min: settings.get("ingest.window_slots_min"),
        window_slots_max: settings.get("ingest.window_slots_max"),
        memory_bytes: settings.get::<u64>("ingest.memory_mib") << 20,
        connections_max: connections_max(settings),
        frame_bytes_max: settings.size("ingest.frame_bytes_max"),
        line_bytes_max: settings.size("ingest.line_bytes_max"),
        tenant_tag: settings.get("ingest.tenant_tag"),
        line_precision: settings.choice("ingest.line_precision"),
        retention: match settings.get::<u64>("ingest.retention_hours") {
            0 => None,
            hours => Some(Duration::from_secs(hours * 3_600)),
        },
        idle_timeout: settings.millis("ingest.idle_timeout_ms"),
        write_timeout: settings.millis("ingest.write_timeout_ms"),
    }
}

/// Nobody's choice gives way to a smaller memory.
fn connections_max(settings: &Settings) -> usize {
    let longest = ["ingest.frame_bytes_max", "ingest.line_bytes_max"];
    let each = longest.map(|key| settings.get::<u64>(key)).iter().sum();
    let most = connections_most(settings.get("ingest.memory_mib"), each);
    settings.size("ingest.connections_max").min(usize::try_from(most).unwrap_or(usize::MAX)).max(1)
}

/// How many connections may each hold so much that has not come whole: in half of the memory.
pub(super) fn connections_most(memory_mib: u64, each_bytes: u64) -> u64 {
    (memory_mib << 20) / 2 / each_bytes.max(1)
}

pub(super) fn is_store(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    !text.trim().is_empty() && matches!(scheme, None | Some("postgres" | "postgresql"))
}

pub(super) fn is_tag(text: &str) -> bool {
    let fits = |c: char| !(c.is_whitespace() || c.is_control() || matches!(c, ',' | '='));
    (1..=128).contains(&text.len()) && text.chars().all(fits)
}

use super::tls::TlsFiles;
use crate::config::policies::TlsMode;
use crate::config::schema::record;
use crate::config::value::masked;
use crate::config::value::shape::{ADDRESS, STORE, TAG};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate::line_protocol::Precision;
use tidegate::window::Law;

record! {
    /// Listeners, pipeline and store of usage records.
    #[derive(Clone, PartialEq)]
    pub struct IngestConfig from IngestSettings {
        /// Ingestion by `tidegate up`; with upstreams off, unless a setting of the ingestion is given.
        enabled: bool = switch().or(true).flag("ingest").off_flag("no-ingest") => enabled;
        /// Address for frames of usage records; any but loopback needs TLS and a `[[client]]`.
        frames_address: SocketAddr = text(ADDRESS).or(loopback(7070)).flag("frames-listen")
            => frames_address;
        /// Address for lines of usage records; any but loopback needs TLS and a `[[client]]`.
        lines_address: SocketAddr = text(ADDRESS).or(loopback(7071)).flag("lines-listen")
            => lines_address;
        /// Tokens are needed of senders on loopback too, as of those beyond it.
        tokens_required: bool = switch().or(false) => tokens_required;
        /// Store of usage records: a folder, or postgres://user@host/database. Default in the state folder.
        store: String = text(STORE).or("tidegate-data".to_owned()).flag("store") => store;
        /// File of tariffs; without it every price is 0.
        tariffs: Option<PathBuf> = path().unset().example("/path/to/tariffs.toml").flag("tariffs")
            => tariffs;
        /// Law that adapts the windows of the stages to load.
        law: Law = word().or(Law::Cubic) => law;
        /// The smallest window of a stage.
        window_slots_min: u64 = whole(64, 131_072, "slots").or(1_024) => window_slots_min;
        /// The largest window of a stage.
        window_slots_max: u64 = whole(1_024, 1_048_576, "slots").or(131_072) => window_slots_max;
        /// The most memory that records in the pipeline may use.
        memory_mib: u64 = mebibytes(16, 65_536).or(512 << 20) => memory_bytes;
        /// The most connections of each protocol that may be open at once.
        connections_max: usize = whole(1, 65_536, "connections").or(1_024);
        /// The most series, each a tenant and a meter, that one client or sender may begin.
        series_per_sender_max: u64 = whole(1, 100_000_000, "series").or(100_000)
            => series_per_sender_max;
        /// The most series that the store may have.
        series_max: u64 = whole(1, 100_000_000, "series").or(1_000_000) => series_max;
        /// The longest frame.
        frame_bytes_max: usize = whole(2_048, 1 << 24, "bytes").or(65_536) => frame_bytes_max;
        /// The longest line of line protocol.
        line_bytes_max: usize = whole(256, 1 << 20, "bytes").or(65_536) => line_bytes_max;
        /// Tag of a line that names the tenant who pays.
        tenant_tag: String = text(TAG).or("tenant".to_owned()) => tenant_tag;
        /// Unit of the timestamps of lines.
        line_precision: Precision = word().or(Precision::Ns) => line_precision;
        /// Lifetime of records and their sums; 0 means for ever.
        retention_hours: Duration = hours(0, 87_600).or_ms(0);
        /// The longest time that a connection may be silent.
        idle_timeout_ms: Duration = millis(1_000, DAY_MS).or_ms(3_600_000) => idle_timeout;
        /// The longest time that a peer may leave its acks unread.
        write_timeout_ms: Duration = millis(100, 10 * MINUTE_MS).or_ms(30_000) => write_timeout;
        /// TLS of the frames port: on where a certificate is configured (auto), or plain text (off).
        frames_tls: TlsMode = word().or(TlsMode::Auto);
        /// PEM certificate chain of the frames port, instead of `tls.cert`.
        frames_tls_cert: Option<PathBuf> = path().unset().example("/path/to/cert.pem");
        /// PEM private key of `frames_tls_cert`.
        frames_tls_key: Option<PathBuf> = path().unset().example("/path/to/key.pem");
        /// PEM authorities of client certificates on the frames port, instead of `tls.client_ca`.
        frames_tls_client_ca: Option<PathBuf> = path().unset().example("/path/to/clients.pem");
        /// TLS of the lines port: on where a certificate is configured (auto), or plain text (off).
        lines_tls: TlsMode = word().or(TlsMode::Auto);
        /// PEM certificate chain of the lines port, instead of `tls.cert`.
        lines_tls_cert: Option<PathBuf> = path().unset().example("/path/to/cert.pem");
        /// PEM private key of `lines_tls_cert`.
        lines_tls_key: Option<PathBuf> = path().unset().example("/path/to/key.pem");
        /// PEM authorities of client certificates on the lines port, instead of `tls.client_ca`.
        lines_tls_client_ca: Option<PathBuf> = path().unset().example("/path/to/clients.pem");
    }
    derived |settings| {
        /// The most connections of each protocol that may be open at once. The default shrinks with the memory.
        connections_max: usize =
            settings.connections_max.get().min(settings.connections_most()).max(1);
        /// TLS files of the frames port, its own or those of `[tls]`. Default none: plain text.
        frames_tls: Option<TlsFiles> = None;
        /// TLS files of the lines port, its own or those of `[tls]`. Default none: plain text.
        lines_tls: Option<TlsFiles> = None;
        /// Lifetime of records, 1 h … 10 years. Default for ever.
        retention: Option<Duration> =
            Some(settings.retention_hours.get()).filter(|retention| !retention.is_zero());
    }
}

impl IngestSettings {
    /// The most connections of which half of the memory can hold an incomplete frame and line each.
    pub fn connections_most(&self) -> usize {
        let each_bytes = self.frame_bytes_max.get() + self.line_bytes_max.get();
        let half_bytes = usize::try_from(self.memory_mib.get() / 2).unwrap_or(usize::MAX);
        half_bytes / each_bytes.max(1)
    }
}

/// Masks the password that the URL of the store may contain.
impl std::fmt::Debug for IngestConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IngestConfig").field("store", &masked(&self.store)).finish_non_exhaustive()
    }
}

use super::file_state::FilesState;
use super::port::TlsPort;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Time between two looks at the files: a renewal is in force within seconds, and a look costs three `stat` calls.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Reads the certificates of these ports again whenever their files have changed, for ever.
///
/// A renewal may be found half done, the new certificate beside the old key. It is then refused, and tried again
/// at the next change.
pub async fn reload_forever(ports: Vec<Arc<TlsPort>>) {
    let mut seen: Vec<FilesState> = ports.iter().map(|port| port.files_at_load()).collect();
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !ports.is_empty() {
        ticks.tick().await;
        let (looked, before) = (ports.clone(), std::mem::take(&mut seen));
        // A file system that hangs must not stop the runtime of the port.
        let pass = tokio::task::spawn_blocking(move || pass(&looked, before)).await;
        let Ok(now) = pass else { return tracing::error!("certificates are no longer reloaded") };
        seen = now;
    }
}

/// Looks at the files of all ports once, and reloads those that have changed.
fn pass(ports: &[Arc<TlsPort>], seen: Vec<FilesState>) -> Vec<FilesState> {
    let one = |(port, before): (&Arc<TlsPort>, FilesState)| {
        let now = FilesState::of(port.files());
        if now != before {
            port.reload(Timestamp::now());
        }
        now
    };
    ports.iter().zip(seen).map(one).collect()
}

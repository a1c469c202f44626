use super::{DestinationQueueStats, QueueState};
use serde::Serialize;
use std::fmt;

/// Alert: a destination accepts messages more slowly than they arrive, and its queue overflows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DestinationSlow {
    /// Host and port.
    pub destination: String,
    /// [`QueueState::Overflow`] or [`QueueState::Saturated`].
    pub state: QueueState,
}

// === impl DestinationSlow ===

impl DestinationSlow {
    /// Name in labels and logs.
    pub const NAME: &'static str = "destination_slow";

    /// The alert, if it is active for this snapshot.
    #[must_use]
    pub fn of(stats: &DestinationQueueStats) -> Option<Self> {
        let state = stats.queue.state;
        (state >= QueueState::Overflow).then(|| Self { destination: address(stats), state })
    }
}

impl fmt::Display for DestinationSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "destination {} is in {}: slow connection", self.destination, self.state)
    }
}

/// Address as in a URL: an IPv6 address needs brackets before its port.
fn address(stats: &DestinationQueueStats) -> String {
    let DestinationQueueStats { destination_host: host, destination_port: port, .. } = stats;
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::super::{QueueConfig, RobustQueue, SenderStats};
    use super::*;
    use crate::admission::MessageClass;

    fn stats(queue: &RobustQueue<usize>, host: &str) -> DestinationQueueStats {
        DestinationQueueStats {
            destination_host: host.to_owned(),
            destination_port: 9000,
            queue: queue.stats(),
            sender: SenderStats::default(),
        }
    }

    #[test]
    fn it_holds_in_overflow_and_saturated_and_lets_go() {
        let mut queue = RobustQueue::new(QueueConfig::default()).unwrap();
        let mut seen = Vec::new();
        for message in 0..600 {
            let _ = queue.put(MessageClass::Data, message).unwrap();
            let alert = DestinationSlow::of(&stats(&queue, "10.0.0.7"));
            assert_eq!(alert.is_some(), queue.state() >= QueueState::Overflow);
            seen.extend(alert.map(|alert| alert.to_string()));
        }
        seen.dedup();
        assert_eq!(
            seen,
            [
                "destination 10.0.0.7:9000 is in OVERFLOW: slow connection",
                "destination 10.0.0.7:9000 is in SATURATED: slow connection",
            ]
        );
        while queue.get().is_some() {}
        assert_eq!(DestinationSlow::of(&stats(&queue, "10.0.0.7")), None, "no latch");
    }

    #[test]
    fn an_ipv6_address_is_told_apart_from_its_port() {
        let config = QueueConfig { primary_size: 1, overflow_size: 0, ..QueueConfig::default() };
        let mut queue = RobustQueue::new(config).unwrap();
        let _ = queue.put(MessageClass::Data, 1).unwrap();
        let alert = DestinationSlow::of(&stats(&queue, "::1")).unwrap();
        assert_eq!(alert.destination, "[::1]:9000");
    }
}

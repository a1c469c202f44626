use indicatif::HumanCount;
use serde_json::{Map, Value, json};
use std::fmt;
use std::time::Duration;
use tidegate::client::Summary;

/// Summary of a transfer.
pub struct Report {
    pub source: String,
    pub server: String,
    pub sender: String,
    pub elapsed: Duration,
    pub lines: u64,
    pub lines_refused: u64,
    pub summary: Summary,
}

// === impl Report ===

impl Report {
    /// Records without an acknowledgement.
    pub fn unacked(&self) -> u64 {
        self.summary.unacked.iter().map(|batch| batch.records.len() as u64).sum()
    }

    pub fn is_complete(&self) -> bool {
        let rejected = self.summary.stats.records_rejected;
        self.lines_refused + rejected + self.unacked() == 0 && self.summary.error.is_none()
    }

    /// As a JSON object.
    pub fn json(&self) -> Value {
        let stats = &self.summary.stats;
        let rejects =
            stats.rejects.iter().map(|(why, count)| (why.name().to_owned(), json!(count)));
        json!({
            "source": self.source,
            "server": self.server,
            "sender": self.sender,
            "complete": self.is_complete(),
            "lines": self.lines,
            "lines_refused": self.lines_refused,
            "records": stats.records_taken,
            "acked": stats.records_acked,
            "repeated": stats.records_known,
            "rejected": stats.records_rejected,
            "unacked": self.unacked(),
            "resent": stats.records_resent,
            "rejects": rejects.collect::<Map<_, _>>(),
            "connections": stats.connections,
            "batches_sent": stats.batches_sent,
            "bytes_sent": stats.bytes_sent,
            "seconds": self.elapsed.as_secs_f64(),
            "records_per_s": self.records_per_s(),
            "p50_ms": ms(stats.latency.p50),
            "p99_ms": ms(stats.latency.p99),
            "max_ms": ms(stats.latency.max),
        })
    }

    fn records_per_s(&self) -> f64 {
        let settled = self.summary.stats.records_acked + self.summary.stats.records_known;
        settled as f64 / self.elapsed.as_secs_f64().max(1e-6)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = &self.summary.stats;
        let (taken, seconds) = (HumanCount(stats.records_taken), self.elapsed.as_secs_f64());
        let per_s = HumanCount(self.records_per_s() as u64);
        writeln!(f, "{taken} records from {} in {seconds:.1} s, {per_s} records/s", self.source)?;
        let rows = [
            ("acked", stats.records_acked, format!("stored by {}", self.server)),
            ("repeated", stats.records_known, "stored before, not sent again".to_owned()),
            ("rejected", stats.records_rejected, "rejected by the server".to_owned()),
            ("unacked", self.unacked(), "not acknowledged".to_owned()),
            ("invalid lines", self.lines_refused, format!("of {}", HumanCount(self.lines))),
        ];
        for (name, count, about) in rows {
            // Rows with 0 are omitted, except for the acknowledged records.
            if count > 0 || name == "acked" {
                writeln!(f, "  {name:<13} {:>13}  {about}", HumanCount(count).to_string())?;
            }
        }
        let (p50, p99) = (ms(stats.latency.p50), ms(stats.latency.p99));
        if stats.records_acked > 0 {
            writeln!(f, "  send to ack   p50 {p50:.1} ms, p99 {p99:.1} ms")?;
        }
        write!(f, "  sender        {}", self.sender)
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

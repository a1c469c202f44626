use std::time::Duration;
use tidegate_core::admission::MessageClass;
use tidegate_core::frame::{FrameLimits, FrameLimitsError, SenderName, SenderToken};
use tidegate_core::retry::Decorrelated;
use tidegate_core::sequence::SEQ_WINDOW;

/// The most batches that may be cut and not over. Half of what a receiver remembers one by one, so that a batch
/// that was given up and not yet settled never brings the newest one out of its sight.
pub(super) const BATCHES_MAX: usize = (SEQ_WINDOW / 2) as usize;

/// Configuration of a client: batching, sending, timeouts and numbering.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConfig {
    /// Under what name its batches are numbered. One client at a time may use it.
    pub sender: SenderName,
    /// Token that says whose records it may send, where the server knows tokens. Default none.
    pub token: Option<SenderToken>,
    /// Where its numbers begin.
    pub numbering: Numbering,
    /// Class of its records: data, or telemetry, which may be dropped when the server is overloaded.
    /// Default data.
    pub class: MessageClass,
    /// Where batches are cut. What a server takes must not be less. Default 64 KiB, 512 records (less than the
    /// smallest window of a server), 4,096 names.
    pub batch: FrameLimits,
    /// Longest time that a record waits for others to share its batch. `None` cuts batches by their size alone,
    /// and where [`flush`](super::IngestClient::flush) says so, never by time: then the same records give the same
    /// batches. At most a minute; default 5 ms.
    pub linger: Option<Duration>,
    /// Batches that are sent before the first of them is answered. 1 … 512, default 64.
    pub in_flight_max: usize,
    /// Records that are held until they are durable at the server. At least a batch; default 65,536.
    pub buffer_records: u64,
    /// The same in bytes, as they are on the wire. At least two frames; default 16 MiB.
    pub buffer_bytes: u64,
    /// Wait between two attempts to connect. Default 100 ms … 20 s, random.
    pub backoff: Decorrelated,
    /// Longest time that connecting may take. Above 0; default 5 s.
    pub connect_timeout: Duration,
    /// With batches under way, a server that says nothing for so long is taken for gone. Above 0; default 30 s.
    pub answer_timeout: Duration,
    /// Reports of batches that were not taken which wait to be read; beyond it the newest is counted and lost.
    /// 1 … 65,536, default 64.
    pub rejections_max: usize,
}

/// Where the numbers of a client's batches begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// Beyond all that was used under this name before: what this client sends is new.
    ///
    /// The first number is the time in nanoseconds since 1970 at which the server is first reached, or the last
    /// number that the server knows, whichever is greater. A clock that was put back can do harm only while
    /// batches of the client before are still on their way to the store.
    #[default]
    Continue,
    /// At 1: what this client sends is the same, from the beginning, as under this name before, cut in the same
    /// way. What the server has of it is not sent again. For anything else use another name: its batches would
    /// be taken for those that the server has.
    FromOne,
}

/// An invalid [`ClientConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientConfigError {
    /// Batches that can't be cut so.
    #[error("batch: {0}")]
    Batch(FrameLimitsError),
    /// Records are data or telemetry.
    #[error("class is {given:?}: set it to Data or Telemetry")]
    Class {
        /// The given value.
        given: MessageClass,
    },
    /// Too few or too many batches in flight.
    #[error("in_flight_max is {given}: set it to 1 … {BATCHES_MAX}")]
    InFlight {
        /// The given value.
        given: usize,
    },
    /// A buffer that can't hold what is cut.
    #[error("{field} is {given}: set it to {min} or more")]
    Buffer {
        /// Which bound.
        field: &'static str,
        /// The given value.
        given: u64,
        /// The least that works.
        min: u64,
    },
    /// A time that can't work.
    #[error("{field} is {given:?}: set it to {expected}")]
    Time {
        /// Which one.
        field: &'static str,
        /// The given value.
        given: Duration,
        /// The valid range.
        expected: &'static str,
    },
    /// Too few or too many reports.
    #[error("rejections_max is {given}: set it to 1 … 65,536")]
    Rejections {
        /// The given value.
        given: usize,
    },
    /// The client was created outside of a tokio runtime, where its task can't run.
    #[error("a client needs a tokio runtime with time and network: make it inside one")]
    NoRuntime,
}

// === impl ClientConfig ===

impl ClientConfig {
    /// The defaults, under this name.
    #[must_use]
    pub fn new(sender: SenderName) -> Self {
        Self {
            sender,
            token: None,
            numbering: Numbering::Continue,
            class: MessageClass::Data,
            batch: FrameLimits { batch_records_max: 512, ..FrameLimits::default() },
            linger: Some(Duration::from_millis(5)),
            in_flight_max: 64,
            buffer_records: 65_536,
            buffer_bytes: 16 << 20,
            backoff: Decorrelated::default(),
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(30),
            rejections_max: 64,
        }
    }

    /// Checks the ranges of all fields.
    ///
    /// # Errors
    ///
    /// Says the first thing with which it can't, and what it should be.
    pub fn validate(&self) -> Result<(), ClientConfigError> {
        self.batch.validate().map_err(ClientConfigError::Batch)?;
        if !matches!(self.class, MessageClass::Data | MessageClass::Telemetry) {
            return Err(ClientConfigError::Class { given: self.class });
        }
        if !(1..=BATCHES_MAX).contains(&self.in_flight_max) {
            return Err(ClientConfigError::InFlight { given: self.in_flight_max });
        }
        let (records, frame) = (self.batch.batch_records_max, self.batch.frame_bytes_max);
        at_least("buffer_records", self.buffer_records, records.into())?;
        at_least("buffer_bytes", self.buffer_bytes, 2 * u64::from(frame))?;
        self.validate_times()?;
        match self.rejections_max {
            1..=65_536 => Ok(()),
            given => Err(ClientConfigError::Rejections { given }),
        }
    }

    fn validate_times(&self) -> Result<(), ClientConfigError> {
        let wrong = |field, given, expected| ClientConfigError::Time { field, given, expected };
        let minute = Duration::from_secs(60);
        match self.linger {
            Some(given) if given > minute => {
                return Err(wrong("linger", given, "a minute or less"));
            }
            _ => {}
        }
        let waits = [
            ("connect_timeout", self.connect_timeout),
            ("answer_timeout", self.answer_timeout),
            ("backoff.base", self.backoff.base),
            ("backoff.cap", self.backoff.cap),
        ];
        match waits.into_iter().find(|(_, wait)| wait.is_zero()) {
            Some((field, given)) => Err(wrong(field, given, "more than nothing")),
            None => Ok(()),
        }
    }
}

fn at_least(field: &'static str, given: u64, min: u64) -> Result<(), ClientConfigError> {
    match given >= min {
        true => Ok(()),
        false => Err(ClientConfigError::Buffer { field, given, min }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_named_with_what_it_should_be() {
        let good = || ClientConfig::new("a".parse().unwrap());
        assert_eq!(good().validate(), Ok(()));
        let tiny = FrameLimits { frame_bytes_max: 10, ..good().batch };
        let hour = Some(Duration::from_secs(3_600));
        let never = Decorrelated { cap: Duration::ZERO, ..Decorrelated::default() };
        let errors = [
            (ClientConfig { batch: tiny, ..good() }, "batch: frame_bytes_max"),
            (ClientConfig { class: MessageClass::Control, ..good() }, "class is Control"),
            (ClientConfig { in_flight_max: 0, ..good() }, "in_flight_max is 0: set it to 1 … 512"),
            (ClientConfig { in_flight_max: 513, ..good() }, "in_flight_max is 513"),
            (ClientConfig { buffer_records: 9, ..good() }, "buffer_records is 9: set it to 512"),
            (ClientConfig { buffer_bytes: 99, ..good() }, "buffer_bytes is 99: set it to 131072"),
            (ClientConfig { linger: hour, ..good() }, "linger is 3600s: set it to a minute"),
            (ClientConfig { connect_timeout: Duration::ZERO, ..good() }, "connect_timeout is 0"),
            (ClientConfig { answer_timeout: Duration::ZERO, ..good() }, "answer_timeout is 0"),
            (ClientConfig { backoff: never, ..good() }, "backoff.cap is 0"),
            (ClientConfig { rejections_max: 0, ..good() }, "rejections_max is 0"),
        ];
        for (config, expected) in errors {
            let error = config.validate().expect_err(expected).to_string();
            assert!(error.contains(expected), "{error:?} does not say {expected:?}");
        }
    }
}

use super::HEADER_BYTES;
use std::fmt;

/// The longest tenant and the longest meter, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The longest labels of a record, in bytes.
pub const LABELS_BYTES_MAX: usize = 1024;

/// What a receiver takes at the most in one frame. It says so in its hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// The longest frame, in bytes, with its length and everything else before the body. 2,048 … 16 MiB,
    /// by default 64 KiB.
    pub frame_bytes_max: u32,
    /// The most records in a batch. 1 … 65,536, by default 4,096.
    pub batch_records_max: u32,
    /// The most names in the table of a batch. 3 … 65,536, by default 4,096.
    pub batch_names_max: u32,
}

/// Limits that can't work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimitsError {
    /// Which one.
    pub name: &'static str,
    /// What it is.
    pub given: u32,
    /// The least that it can be.
    pub min: u32,
    /// The most that it can be.
    pub max: u32,
}

// === impl FrameLimits ===

impl FrameLimits {
    /// The greatest length that may stand at the head of a frame.
    #[must_use]
    pub const fn length_max(&self) -> u32 {
        self.frame_bytes_max.saturating_sub(4)
    }

    /// The longest body.
    #[must_use]
    pub const fn body_bytes_max(&self) -> usize {
        (self.frame_bytes_max as usize).saturating_sub(HEADER_BYTES)
    }

    /// Whether frames can be sent and read within them.
    ///
    /// # Errors
    ///
    /// Names the first one that is out of its range.
    pub fn validate(&self) -> Result<(), FrameLimitsError> {
        // The least: a record with the longest names and labels still fits.
        check("frame_bytes_max", self.frame_bytes_max, 2048, 16 << 20)?;
        check("batch_records_max", self.batch_records_max, 1, 65_536)?;
        check("batch_names_max", self.batch_names_max, 3, 65_536)
    }
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self { frame_bytes_max: 64 << 10, batch_records_max: 4096, batch_names_max: 4096 }
    }
}

fn check(name: &'static str, given: u32, min: u32, max: u32) -> Result<(), FrameLimitsError> {
    if (min..=max).contains(&given) {
        Ok(())
    } else {
        Err(FrameLimitsError { name, given, min, max })
    }
}

// === impl FrameLimitsError ===

impl fmt::Display for FrameLimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, given, min, max } = self;
        write!(f, "{name} is {given}: expected {min} to {max}")
    }
}

impl std::error::Error for FrameLimitsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_works_and_what_does_not_is_named() {
        let limits = FrameLimits::default();
        assert_eq!(limits.validate(), Ok(()));
        assert_eq!((limits.length_max(), limits.body_bytes_max()), (65_532, 65_529));
        let tiny = FrameLimits { frame_bytes_max: 100, ..limits };
        assert_eq!(tiny.validate().unwrap_err().name, "frame_bytes_max");
        let none = FrameLimits { batch_records_max: 0, ..limits };
        assert_eq!(none.validate().unwrap_err().name, "batch_records_max");
        let huge = FrameLimits { batch_names_max: 65_537, ..limits };
        assert_eq!(
            huge.validate().unwrap_err().to_string(),
            "batch_names_max is 65537: expected 3 to 65536"
        );
    }
}

use super::HEADER_BYTES;
use std::fmt;

/// Maximum length of a tenant or a meter, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// Maximum length of a record's labels, in bytes.
pub const LABELS_BYTES_MAX: usize = 1024;

/// Limits of one frame, announced in the receiver's hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Maximum length of a frame including its header, in bytes. 2,048 … 16 MiB, 64 KiB by default.
    pub frame_bytes_max: u32,
    /// Maximum number of records in a batch. 1 … 65,536, 4,096 by default.
    pub batch_records_max: u32,
    /// Maximum number of names in the table of a batch. 3 … 65,536, 4,096 by default.
    pub batch_names_max: u32,
}

/// Error of frame limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimitsError {
    /// Name of the limit.
    pub name: &'static str,
    /// Value given.
    pub given: u32,
    /// Smallest valid value.
    pub min: u32,
    /// Largest valid value.
    pub max: u32,
}

// === impl FrameLimits ===

impl FrameLimits {
    /// Maximum value of the length in a header.
    #[must_use]
    pub const fn length_max(&self) -> u32 {
        self.frame_bytes_max.saturating_sub(4)
    }

    /// Maximum length of a body, in bytes.
    #[must_use]
    pub const fn body_bytes_max(&self) -> usize {
        (self.frame_bytes_max as usize).saturating_sub(HEADER_BYTES)
    }

    /// Checks the limits.
    ///
    /// # Errors
    ///
    /// The first limit that is out of range.
    pub fn validate(&self) -> Result<(), FrameLimitsError> {
        // At the minimum, a record with the longest names and labels still fits.
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

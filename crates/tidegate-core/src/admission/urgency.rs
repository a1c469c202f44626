use super::MessagePriority;

/// Urgency of RFC 9218, 0 (first) … 7 (last), 3 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency(u8);

// === impl Urgency ===

impl Urgency {
    /// Urgency of a request without a usable `u`.
    pub const DEFAULT: Self = Self(3);

    /// Reads `u` from the value of a `Priority` header, a structured-field dictionary.
    ///
    /// As the RFC demands, unknown, malformed and out-of-range members are ignored, and the last valid `u` counts.
    /// `None` if there is no valid `u`.
    ///
    /// ```
    /// use tidegate_core::admission::{MessagePriority, Urgency};
    /// assert_eq!(Urgency::parse("u=5, i").map(Urgency::priority), Some(MessagePriority::Low));
    /// assert_eq!(Urgency::parse("i"), None);
    /// ```
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        members(header).filter_map(Self::from_member).last()
    }

    /// Maps 0 … 2 to High, 3 and 4 to Normal, 5 … 7 to Low. Never Critical, which a client can't claim.
    #[must_use]
    pub const fn priority(self) -> MessagePriority {
        match self.0 {
            0..=2 => MessagePriority::High,
            3..=4 => MessagePriority::Normal,
            _ => MessagePriority::Low,
        }
    }

    fn from_member(member: &str) -> Option<Self> {
        let value = member.strip_prefix("u=")?;
        // Parameters after the value are allowed and have no meaning.
        let digits = value.split(';').next().unwrap_or(value).trim_end();
        match digits.as_bytes() {
            [digit @ b'0'..=b'7'] => Some(Self(digit - b'0')),
            _ => None,
        }
    }
}

/// Members of a dictionary, split at commas outside of quoted strings.
fn members(header: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    header
        .split(move |c: char| {
            let boundary = c == ',' && !quoted;
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                _ => {}
            }
            boundary
        })
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessagePriority::{High, Low, Normal};

    #[test]
    fn urgency_maps_to_three_priorities() {
        let read = |u: u8| Urgency::parse(&format!("u={u}")).map(Urgency::priority);
        let expected = [High, High, High, Normal, Normal, Low, Low, Low];
        for (u, priority) in (0..8).zip(expected) {
            assert_eq!(read(u), Some(priority), "u={u}");
        }
        assert_eq!(Urgency::DEFAULT.priority(), Normal);
    }

    #[test]
    fn what_is_malformed_is_ignored() {
        for header in [
            "",
            "u",
            "u=",
            "u=8",
            "u=-1",
            "u=1.0",
            "u=11",
            "U=1",
            "x=\"a, u=1\"",
            "u=\"1\"",
            "i=?1",
            "u =1",
        ] {
            assert_eq!(Urgency::parse(header), None, "{header:?}");
        }
    }

    #[test]
    fn the_last_of_several_counts_and_parameters_are_skipped() {
        assert_eq!(Urgency::parse("u=1, i, u=6"), Some(Urgency(6)));
        assert_eq!(Urgency::parse("i,u=2;a=b"), Some(Urgency(2)));
        assert_eq!(Urgency::parse("u=2, u=9"), Some(Urgency(2)));
        assert_eq!(Urgency::parse("x=\"\\\",u=0\", u=5"), Some(Urgency(5)));
    }
}

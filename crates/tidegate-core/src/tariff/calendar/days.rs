use std::fmt;

/// Set of days of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days(u8);

// === impl Days ===

impl Days {
    /// Names of the days, from Monday.
    pub const NAMES: [&'static str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    /// Every day.
    pub const ALL: Self = Self(0b111_1111);
    /// No day.
    pub const NONE: Self = Self(0);
    /// Monday to Friday.
    pub const WEEKDAYS: Self = Self(0b001_1111);
    /// Saturday and Sunday.
    pub const WEEKEND: Self = Self(0b110_0000);

    /// Adds a day, 0 for Monday to 6 for Sunday; any other number changes nothing.
    #[must_use]
    pub const fn with(self, day: u8) -> Self {
        if day < 7 { Self(self.0 | 1 << day) } else { self }
    }

    /// True if there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Numbers of the days.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..7).filter(move |day| self.0 & 1 << day != 0)
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("every day"),
            Self::WEEKDAYS => f.write_str("mon-fri"),
            Self::WEEKEND => f.write_str("sat-sun"),
            some => {
                let names: Vec<_> = some.iter().map(|day| Self::NAMES[usize::from(day)]).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use tidegate_core::admission::{PriorityLimits, Sharing};

/// Admission limits and their sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The admission limits of each priority.
    pub limits: PriorityLimits,
    /// The use of limits beyond a priority's own.
    pub sharing: Sharing,
}

/// A limit that is to be another one: `limits.low=100` or `sharing=borrow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Places for all together.
    Global(u16),
    /// Places for High.
    High(u16),
    /// Places for Normal.
    Normal(u16),
    /// Places for Low.
    Low(u16),
    /// The Critical requests that count toward the global limit.
    CriticalReserve(u16),
    /// The use of limits beyond a priority's own.
    Sharing(Sharing),
}

// === impl Limits ===

impl Limits {
    /// These limits with some of them changed.
    #[must_use]
    pub fn with(mut self, settings: &[Setting]) -> Self {
        for setting in settings {
            match *setting {
                Setting::Global(places) => self.limits.global_limit = places,
                Setting::High(places) => self.limits.high = places,
                Setting::Normal(places) => self.limits.normal = places,
                Setting::Low(places) => self.limits.low = places,
                Setting::CriticalReserve(places) => self.limits.critical_reserve = places,
                Setting::Sharing(sharing) => self.sharing = sharing,
            }
        }
        self
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PriorityLimits { global_limit, high, normal, low, critical_reserve } = self.limits;
        let sharing = sharing_name(self.sharing);
        write!(
            f,
            "global {global_limit}, high {high}, normal {normal}, low {low}, \
             critical_reserve {critical_reserve}, {sharing}"
        )
    }
}

impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("global", &self.limits.global_limit)?;
        map.serialize_entry("high", &self.limits.high)?;
        map.serialize_entry("normal", &self.limits.normal)?;
        map.serialize_entry("low", &self.limits.low)?;
        map.serialize_entry("critical_reserve", &self.limits.critical_reserve)?;
        map.serialize_entry("sharing", &self.sharing)?;
        map.end()
    }
}

fn sharing_name(sharing: Sharing) -> &'static str {
    match sharing {
        Sharing::Strict => "strict",
        Sharing::Borrow => "borrow",
    }
}

// === impl Setting ===

impl Setting {
    const KNOWN: &'static str = "limits.global, limits.high, limits.normal, limits.low, \
                                 limits.critical_reserve and sharing";

    /// Returns `true` if both set the same limit.
    #[must_use]
    pub fn is_of_the_same_as(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!("write NAME=VALUE, such as limits.low=100, with {}", Self::KNOWN));
        };
        let places = || {
            value.parse().map_err(|_| format!("{name} is a number from 0 to 65535, not {value:?}"))
        };
        match name {
            "limits.global" => places().map(Self::Global),
            "limits.high" => places().map(Self::High),
            "limits.normal" => places().map(Self::Normal),
            "limits.low" => places().map(Self::Low),
            "limits.critical_reserve" => places().map(Self::CriticalReserve),
            "sharing" => match value {
                "strict" => Ok(Self::Sharing(Sharing::Strict)),
                "borrow" => Ok(Self::Sharing(Sharing::Borrow)),
                _ => Err(format!("sharing is strict or borrow, not {value:?}")),
            },
            _ => Err(format!("{name:?} can't be set: there are {}", Self::KNOWN)),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global(places) => write!(f, "limits.global={places}"),
            Self::High(places) => write!(f, "limits.high={places}"),
            Self::Normal(places) => write!(f, "limits.normal={places}"),
            Self::Low(places) => write!(f, "limits.low={places}"),
            Self::CriticalReserve(places) => write!(f, "limits.critical_reserve={places}"),
            Self::Sharing(sharing) => write!(f, "sharing={}", sharing_name(*sharing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_read_as_it_is_written() {
        for text in [
            "limits.global=1",
            "limits.high=2",
            "limits.normal=0",
            "limits.low=65535",
            "limits.critical_reserve=5",
            "sharing=borrow",
            "sharing=strict",
        ] {
            assert_eq!(
                text.parse::<Setting>().map(|setting| setting.to_string()).as_deref(),
                Ok(text)
            );
        }
        for (wrong, says) in [
            ("limits.low", "NAME=VALUE"),
            ("limits.lowest=1", "limits.low,"),
            ("limits.low=-1", "65535"),
            ("limits.low=65536", "65535"),
            ("sharing=both", "strict or borrow"),
        ] {
            assert!(wrong.parse::<Setting>().unwrap_err().contains(says), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_set_changes() {
        let limits =
            Limits { limits: PriorityLimits::new(1000, 500, 300, 200), sharing: Sharing::Strict };
        let changed = limits.with(&[Setting::Low(100), Setting::Sharing(Sharing::Borrow)]);
        assert_eq!(
            changed.to_string(),
            "global 1000, high 500, normal 300, low 100, critical_reserve 100, borrow"
        );
    }
}

use tidegate::admission::{MessagePriority, Role, Sharing};
use tidegate::capacity::Placement;
use tidegate::limit::LimitGoal;
use tidegate::line_protocol::Precision;
use tidegate::routing::{BusyPreset, OnSilence, Pick};
use tidegate::window::Law;

/// A policy that the configuration names by a word.
pub trait Choice: Copy + PartialEq + 'static {
    /// The values, in the order of `NAMES`.
    const ALL: &'static [Self];
    /// The word of each value.
    const NAMES: &'static [&'static str];
    /// Text that follows the list of words in error messages.
    const NOTE: &'static str = "";
}

pub fn from_name<C: Choice>(name: &str) -> Option<C> {
    C::ALL.iter().zip(C::NAMES).find(|(_, known)| **known == name).map(|(choice, _)| *choice)
}

pub fn name_of<C: Choice>(choice: C) -> &'static str {
    let named = C::ALL.iter().zip(C::NAMES).find(|(known, _)| **known == choice);
    named.map_or("", |(_, name)| name)
}

/// Implements [`Choice`]: each value beside its word, and a note.
macro_rules! choices {
    ($($T:ty { $($name:literal $value:expr),* $(; $note:literal)? })*) => {$(
        impl $crate::config::value::Choice for $T {
            const ALL: &'static [Self] = &[$($value),*];
            const NAMES: &'static [&'static str] = &[$($name),*];
            $(const NOTE: &'static str = $note;)?
        }
    )*};
}
pub(in crate::config) use choices;

choices! {
    Role { "gate" Self::Gate, "manager" Self::Manager, "worker" Self::Worker }
    Sharing { "strict" Self::Strict, "borrow" Self::Borrow }
    MessagePriority {
        "high" Self::High, "normal" Self::Normal, "low" Self::Low;
        "; critical is for the control plane alone"
    }
    Pick {
        "power_of_two" Self::PowerOfTwo, "round_robin" Self::RoundRobin, "random" Self::Random,
        "least_loaded" Self::LeastLoaded, "direct" Self::Direct
    }
    BusyPreset { "latency" Self::Latency, "throughput" Self::Throughput, "off" Self::Off }
    LimitGoal {
        "latency" Self::Latency, "balanced" Self::Balanced, "throughput" Self::Throughput
    }
    OnSilence { "free" Self::Free, "busy" Self::Busy }
    Law { "cubic" Self::Cubic, "seed" Self::Seed }
    Precision { "ns" Self::Ns, "us" Self::Us, "ms" Self::Ms, "s" Self::S }
    Placement {
        "pull" Self::Pull, "optimistic" Self::Optimistic, "semaphore" Self::Semaphore,
        "queue" Self::Queue, "reserve" Self::Reserve
    }
}

use super::OverloadStatus;
use super::tasks::{LocalExecutor, NetworkUse};
use super::{Anonymous, ForwardedPolicy, HostPolicy, LoadSource, LogFormat, Orca};
use tidegate::admission::{MessagePriority, Role, Sharing};
use tidegate::capacity::Placement;
use tidegate::line_protocol::Precision;
use tidegate::routing::{BusyPreset, OnSilence, Pick};
use tidegate::window::Law;

/// A policy that the configuration names by a word.
pub(super) trait Choice: Copy + PartialEq + 'static {
    /// The words, beside what each of them means.
    const ALL: &'static [Self];
    /// The words, in the order of `ALL`.
    const NAMES: &'static [&'static str];
}

pub(super) fn from_name<C: Choice>(name: &str) -> Option<C> {
    let place = C::NAMES.iter().position(|known| *known == name)?;
    C::ALL.get(place).copied()
}

pub(super) fn name_of<C: Choice>(choice: C) -> &'static str {
    let place = C::ALL.iter().position(|known| *known == choice);
    place.and_then(|place| C::NAMES.get(place)).copied().unwrap_or_default()
}

impl Choice for Role {
    const ALL: &'static [Self] = &[Self::Gate, Self::Manager, Self::Worker];
    const NAMES: &'static [&'static str] = &["gate", "manager", "worker"];
}

impl Choice for Sharing {
    const ALL: &'static [Self] = &[Self::Strict, Self::Borrow];
    const NAMES: &'static [&'static str] = &["strict", "borrow"];
}

/// Critical is not among the words: it is for the control plane alone.
impl Choice for MessagePriority {
    const ALL: &'static [Self] = &[Self::High, Self::Normal, Self::Low];
    const NAMES: &'static [&'static str] = &["high", "normal", "low"];
}

impl Choice for Anonymous {
    const ALL: &'static [Self] = &[
        Self::UpTo(MessagePriority::High),
        Self::UpTo(MessagePriority::Normal),
        Self::UpTo(MessagePriority::Low),
        Self::Refuse,
    ];
    const NAMES: &'static [&'static str] = &["high", "normal", "low", "refuse"];
}

impl Choice for HostPolicy {
    const ALL: &'static [Self] = &[Self::Preserve, Self::Upstream];
    const NAMES: &'static [&'static str] = &["preserve", "upstream"];
}

impl Choice for ForwardedPolicy {
    const ALL: &'static [Self] = &[Self::Append, Self::Replace, Self::Off];
    const NAMES: &'static [&'static str] = &["append", "replace", "off"];
}

impl Choice for LogFormat {
    const ALL: &'static [Self] = &[Self::Text, Self::Json];
    const NAMES: &'static [&'static str] = &["text", "json"];
}

impl Choice for Pick {
    const ALL: &'static [Self] = &Self::ALL;
    const NAMES: &'static [&'static str] =
        &["power_of_two", "round_robin", "random", "least_loaded", "direct"];
}

impl Choice for BusyPreset {
    const ALL: &'static [Self] = &[Self::Latency, Self::Throughput, Self::Off];
    const NAMES: &'static [&'static str] = &["latency", "throughput", "off"];
}

impl Choice for OnSilence {
    const ALL: &'static [Self] = &[Self::Free, Self::Busy];
    const NAMES: &'static [&'static str] = &["free", "busy"];
}

impl Choice for OverloadStatus {
    const ALL: &'static [Self] = &[Self::Unavailable, Self::Overloaded, Self::TooMany];
    const NAMES: &'static [&'static str] = &["503", "529", "429"];
}

impl Choice for LoadSource {
    const ALL: &'static [Self] = &[Self::Scrape, Self::Headers];
    const NAMES: &'static [&'static str] = &["scrape", "headers"];
}

impl Choice for Orca {
    const ALL: &'static [Self] = &[Self::Read, Self::Ask, Self::Off];
    const NAMES: &'static [&'static str] = &["read", "ask", "off"];
}

impl Choice for Law {
    const ALL: &'static [Self] = &[Self::Cubic, Self::Seed];
    const NAMES: &'static [&'static str] = &["cubic", "seed"];
}

impl Choice for Precision {
    const ALL: &'static [Self] = &Self::ALL;
    const NAMES: &'static [&'static str] = &["ns", "us", "ms", "s"];
}

impl Choice for Placement {
    const ALL: &'static [Self] = &Self::ALL;
    const NAMES: &'static [&'static str] = &["pull", "optimistic", "semaphore", "queue", "reserve"];
}

impl Choice for LocalExecutor {
    const ALL: &'static [Self] = &[Self::Process, Self::Mock];
    const NAMES: &'static [&'static str] = &["process", "mock"];
}

impl Choice for NetworkUse {
    const ALL: &'static [Self] = &[Self::Deny, Self::Fail, Self::Allow];
    const NAMES: &'static [&'static str] = &["deny", "fail", "allow"];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips<C: Choice + std::fmt::Debug>() {
        assert_eq!(C::ALL.len(), C::NAMES.len());
        for choice in C::ALL {
            assert_eq!(from_name::<C>(name_of(*choice)), Some(*choice));
        }
        assert_eq!(from_name::<C>("no such word"), None);
    }

    #[test]
    fn every_word_means_one_policy_and_back() {
        round_trips::<Role>();
        round_trips::<Sharing>();
        round_trips::<MessagePriority>();
        round_trips::<Anonymous>();
        round_trips::<HostPolicy>();
        round_trips::<ForwardedPolicy>();
        round_trips::<LogFormat>();
        round_trips::<Pick>();
        round_trips::<BusyPreset>();
        round_trips::<OnSilence>();
        round_trips::<OverloadStatus>();
        round_trips::<LoadSource>();
        round_trips::<Orca>();
        round_trips::<Law>();
        round_trips::<Precision>();
        round_trips::<Placement>();
        round_trips::<LocalExecutor>();
        round_trips::<NetworkUse>();
    }
}

use super::bounds::{COUNTERS_MAX, GAUGES_MAX, HISTOGRAMS_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX};
use super::error::ProgressError;
use super::histogram::{Histogram, UncheckedHistogram};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Progress of an execution, as it reported it.
///
/// Deserialization refuses names, numbers and values outside of the bounds. Counters and the counts of
/// histograms are cumulative, so lost, repeated and reordered reports are harmless: a merge keeps the highest
/// value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Progress {
    /// Cumulative counts by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<Box<str>, u64>,
    /// Newest values by name; finite.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<Box<str>, f64>,
    /// Distributions by name, cumulative. The bounds of a name's buckets are those of its first report.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<Box<str>, Histogram>,
    /// Newest message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<str>>,
    /// Units done of `total`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
    /// Units in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// Progress before its bounds are checked. Unknown fields are ignored: a newer node may send more.
#[derive(Deserialize)]
pub(super) struct Unchecked {
    #[serde(default)]
    pub(super) counters: BTreeMap<Box<str>, u64>,
    #[serde(default)]
    pub(super) gauges: BTreeMap<Box<str>, f64>,
    #[serde(default)]
    pub(super) histograms: BTreeMap<Box<str>, UncheckedHistogram>,
    #[serde(default)]
    pub(super) message: Option<Box<str>>,
    #[serde(default)]
    pub(super) done: Option<u64>,
    #[serde(default)]
    pub(super) total: Option<u64>,
}

// === impl Progress ===

impl Progress {
    /// Adds a newer report: the highest value of each counter and bucket, and the newest of everything else.
    /// Returns how many names were refused, because the limit of their kind was reached or because their buckets
    /// have other bounds.
    ///
    /// Idempotent; for counters and histograms also commutative and associative, as long as all names fit.
    pub fn merge(&mut self, newer: &Self) -> usize {
        let refused = merge_named(&mut self.counters, &newer.counters, COUNTERS_MAX, u64::max)
            + merge_named(&mut self.gauges, &newer.gauges, GAUGES_MAX, |_, newest| newest)
            + merge_histograms(&mut self.histograms, &newer.histograms);
        if newer.message.is_some() {
            self.message.clone_from(&newer.message);
        }
        self.done = newer.done.or(self.done);
        self.total = newer.total.or(self.total);
        refused
    }

    /// True when nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Approximate memory that it takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let entry = size_of::<(Box<str>, u64)>();
        let names = self.counters.keys().chain(self.gauges.keys());
        let named: usize = names.map(|name| name.len() + entry).sum();
        let histograms = self.histograms.iter();
        let buckets: usize = histograms.map(|(name, of)| name.len() + entry + of.bytes()).sum();
        named + buckets + self.message.as_ref().map_or(0, |message| message.len())
    }
}

impl TryFrom<Unchecked> for Progress {
    type Error = ProgressError;

    fn try_from(given: Unchecked) -> Result<Self, ProgressError> {
        let Unchecked { counters, gauges, histograms, message, done, total } = given;
        if counters.len() > COUNTERS_MAX {
            return Err(ProgressError::Counters { given: counters.len() });
        }
        if gauges.len() > GAUGES_MAX {
            return Err(ProgressError::Gauges { given: gauges.len() });
        }
        if histograms.len() > HISTOGRAMS_MAX {
            return Err(ProgressError::Histograms { given: histograms.len() });
        }
        let mut names = counters.keys().chain(gauges.keys()).chain(histograms.keys());
        if let Some(name) = names.find(|name| !is_name(name)) {
            let given = name.chars().take(NAME_BYTES_MAX).collect();
            return Err(ProgressError::Name { given });
        }
        if let Some((name, _)) = gauges.iter().find(|(_, value)| !value.is_finite()) {
            return Err(ProgressError::NotFinite { name: name.to_string() });
        }
        let checked = histograms.into_iter().map(|(name, given)| match given.try_into() {
            Ok(histogram) => Ok((name, histogram)),
            Err(why) => Err(ProgressError::Buckets { name: name.into_string(), why }),
        });
        let histograms = checked.collect::<Result<_, _>>()?;
        Ok(Self { counters, gauges, histograms, message: message.map(cut), done, total })
    }
}

/// Combines values of one name, adds new names while there is room, and counts those that were refused.
fn merge_named<T: Copy>(
    known: &mut BTreeMap<Box<str>, T>,
    newer: &BTreeMap<Box<str>, T>,
    names_max: usize,
    combine: impl Fn(T, T) -> T,
) -> usize {
    let mut refused = 0;
    for (name, value) in newer {
        let has_room = known.len() < names_max;
        match known.get_mut(name) {
            Some(known) => *known = combine(*known, *value),
            None if has_room => drop(known.insert(name.clone(), *value)),
            None => refused += 1,
        }
    }
    refused
}

/// Combines histograms as [`merge_named`] does values. Of one name, those with other bounds are refused.
fn merge_histograms(
    known: &mut BTreeMap<Box<str>, Histogram>,
    newer: &BTreeMap<Box<str>, Histogram>,
) -> usize {
    let mut refused = 0;
    for (name, newer) in newer {
        let has_room = known.len() < HISTOGRAMS_MAX;
        match known.get_mut(name) {
            Some(known) => refused += usize::from(!known.merge(newer)),
            None if has_room => drop(known.insert(name.clone(), newer.clone())),
            None => refused += 1,
        }
    }
    refused
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

/// The longest beginning of a message that fits and splits no character.
fn cut(message: Box<str>) -> Box<str> {
    if message.len() <= MESSAGE_BYTES_MAX {
        return message;
    }
    let at = (0..=MESSAGE_BYTES_MAX).rev().find(|at| message.is_char_boundary(*at));
    message[..at.unwrap_or(0)].into()
}

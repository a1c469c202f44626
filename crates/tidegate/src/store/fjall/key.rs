use crate::storage::name::{escape, unescape};
use crate::store::decide::StoredSender;
use crate::store::sum::Sum;
use crate::store::tally::{MINUTE_NS, Tally, TallyKey, floor};
use std::str::FromStr;
use tidegate_core::sequence::SeqWindow;
use tidegate_core::usage::Currency;

const HOUR_NS: i64 = 60 * MINUTE_NS;

/// Blocks and the longest sums end where a day (UTC) ends.
pub(super) const DAY_NS: i64 = 24 * HOUR_NS;

/// Where the number of the last commit and that of the next block are kept.
pub(super) const STATE: &[u8] = b"state";

/// Where the number of all series is kept.
pub(super) const SERIES_TOTAL: &[u8] = b"series";

/// Where it is kept that the totals of all tenants are complete.
pub(super) const TOTALS: &[u8] = b"totals";

/// Where it is kept how far a checkpoint under way has come.
pub(super) const CHECKPOINT: &[u8] = b"checkpoint";

/// Before the source of series, where their number is kept.
const SERIES_OF: u8 = b'o';

/// Before the keys of blocks that are not in the sums yet.
pub(super) const BEHIND: u8 = b'b';

/// Before the owner of a sender.
const OWNED: u8 = 1;

/// Time span of a sum. Long queries read few rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Minute,
    Hour,
    Day,
}

/// The part of a checkpoint's sums that is stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Covered {
    UpTo(TallyKey),
    All,
}

/// A part of a query's time that rows of one level cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) level: Level,
    pub(super) from_ns: i64,
    pub(super) until_ns: i64,
}

/// Bytes that sort as the numbers do.
pub(super) fn ordered(ns: i64) -> [u8; 8] {
    (ns as u64 ^ 1 << 63).to_be_bytes()
}

/// A block's key: its latest time, and its number.
pub(super) fn block(max_ns: i64, number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&ordered(max_ns));
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Key prefix of all sums of a tenant.
pub(super) fn tenant(tenant: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key.extend_from_slice(escape(tenant).as_bytes());
    key.push(0);
    key
}

/// Key prefix of all sums of a tenant's meter.
pub(super) fn pair(tenant_name: &str, meter: &str) -> Vec<u8> {
    let mut key = tenant(tenant_name);
    key.extend_from_slice(escape(meter).as_bytes());
    key.push(0);
    key
}

/// Length of the part of a sum's key that names the tenant and the meter, and both names.
pub(super) fn split_pair(key: &[u8]) -> Option<(usize, String, String)> {
    let end = key.iter().position(|byte| *byte == 0)?;
    let second = end + 1 + key.get(end + 1..)?.iter().position(|byte| *byte == 0)?;
    let name = |bytes: &[u8]| Some(unescape(std::str::from_utf8(bytes).ok()?).into_owned());
    Some((second + 1, name(&key[..end])?, name(&key[end + 1..second])?))
}

/// A sum's key: tenant, meter, level, time, currency, client. Rows from before usage was counted by client have
/// none.
pub(super) fn sum(key: &TallyKey, level: Level) -> Vec<u8> {
    let mut bytes =
        level.start(&pair(&key.tenant, &key.meter), floor(key.minute_ns, level.span_ns()));
    bytes.extend_from_slice(key.currency.code().as_bytes());
    bytes.extend_from_slice(key.client.as_bytes());
    bytes
}

/// The currency and the client of a sum, from the part of its key after the time.
fn currency_and_client(end: &[u8]) -> Option<(Currency, &str)> {
    let (code, client) = end.split_first_chunk::<3>()?;
    let currency = Currency::from_str(std::str::from_utf8(code).ok()?).ok()?;
    Some((currency, std::str::from_utf8(client).ok()?))
}

/// The same from the whole key of a sum of a pair.
pub(super) fn end<'a>(key: &'a [u8], pair: &[u8]) -> Option<(Currency, &'a str)> {
    currency_and_client(key.get(pair.len() + 1 + size_of::<i64>()..)?)
}

pub(super) fn encode_tally(tally: &Tally) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(48);
    bytes.extend_from_slice(&tally.records.to_be_bytes());
    bytes.extend_from_slice(&tally.fallbacks.to_be_bytes());
    tally.quantity.encode(&mut bytes);
    tally.amount.encode(&mut bytes);
    bytes
}

pub(super) fn decode_tally(bytes: &[u8]) -> Option<Tally> {
    let (records, rest) = bytes.split_first_chunk::<8>()?;
    let (fallbacks, rest) = rest.split_first_chunk::<8>()?;
    let (quantity, rest) = Sum::decode(rest)?;
    let (amount, rest) = Sum::decode(rest)?;
    let (records, fallbacks) = (u64::from_be_bytes(*records), u64::from_be_bytes(*fallbacks));
    rest.is_empty().then_some(Tally { records, fallbacks, quantity, amount })
}

/// Progress of a checkpoint: the block before which its blocks are, and the last key that is in the sums. All are
/// if there is none.
pub(super) fn covered(until_block: u64, last: Option<&TallyKey>) -> Vec<u8> {
    let mut bytes = until_block.to_be_bytes().to_vec();
    bytes.extend(last.map(|key| sum(key, Level::Minute)).unwrap_or_default());
    bytes
}

pub(super) fn decode_covered(bytes: &[u8]) -> Option<(u64, Covered)> {
    let (until_block, last) = bytes.split_first_chunk()?;
    let covered = if last.is_empty() { Covered::All } else { Covered::UpTo(minute_key(last)?) };
    Some((u64::from_be_bytes(*until_block), covered))
}

/// Reverses [`sum`] for the row of a minute.
fn minute_key(bytes: &[u8]) -> Option<TallyKey> {
    split_sum(bytes).map(|(key, _)| key)
}

/// Reverses [`sum`]: the key has the start of the level's span for its minute.
pub(super) fn split_sum(bytes: &[u8]) -> Option<(TallyKey, Level)> {
    let (length, tenant, meter) = split_pair(bytes)?;
    let level = match bytes.get(length)? {
        b'm' => Level::Minute,
        b'h' => Level::Hour,
        b'd' => Level::Day,
        _ => return None,
    };
    let (time, end) = bytes.get(length + 1..)?.split_first_chunk()?;
    let (currency, client) = currency_and_client(end)?;
    let minute_ns = (u64::from_be_bytes(*time) ^ 1 << 63) as i64;
    let (tenant, meter, client) = (tenant.into(), meter.into(), client.into());
    Some((TallyKey { tenant, meter, minute_ns, currency, client }, level))
}

/// The fewest rows that cover a time: whole days, then whole hours beside them, then minutes.
pub(super) fn parts(from_ns: i64, until_ns: i64) -> Vec<Part> {
    let mut parts = Vec::new();
    cover(&mut parts, from_ns, until_ns, &[Level::Day, Level::Hour, Level::Minute]);
    parts
}

fn cover(parts: &mut Vec<Part>, from_ns: i64, until_ns: i64, levels: &[Level]) {
    let Some((level, finer)) = levels.split_first() else { return };
    if from_ns >= until_ns {
        return;
    }
    let span_ns = level.span_ns();
    let mut first = floor(from_ns, span_ns);
    if first < from_ns {
        first = first.saturating_add(span_ns);
    }
    let last = floor(until_ns, span_ns);
    if first >= last {
        return cover(parts, from_ns, until_ns, finer);
    }
    cover(parts, from_ns, first, finer);
    parts.push(Part { level: *level, from_ns: first, until_ns: last });
    cover(parts, last, until_ns, finer);
}

/// A sender's key. An empty name is a name too, but no key.
pub(super) fn sender(name: &str) -> Vec<u8> {
    [b"n", name.as_bytes()].concat()
}

/// The key in the log of the number of series that a source began.
pub(super) fn series_of(source: &str) -> Vec<u8> {
    [&[SERIES_OF], source.as_bytes()].concat()
}

/// A sender: when it last sent, its numbers, and after a 1 its owner if it has one.
pub(super) fn encode_sender(last_ns: i64, sender: &StoredSender) -> Vec<u8> {
    let mut bytes = [&last_ns.to_be_bytes()[..], &sender.window.to_bytes()].concat();
    if let Some(owner) = &sender.owner {
        bytes.push(OWNED);
        bytes.extend_from_slice(owner.as_bytes());
    }
    bytes
}

pub(super) fn decode_sender(bytes: &[u8]) -> Option<StoredSender> {
    let (numbers, rest) = bytes.get(8..)?.split_at_checked(SeqWindow::BYTES)?;
    let owner = match rest.split_first() {
        None => None,
        Some((&OWNED, owner)) => Some(std::str::from_utf8(owner).ok()?.into()),
        Some(_) => return None,
    };
    Some(StoredSender { window: SeqWindow::from_bytes(numbers).ok()?, owner })
}

/// The key in the log of a block that is not in the sums yet.
pub(super) fn behind(number: u64) -> [u8; 9] {
    let mut key = [BEHIND; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

// === impl Level ===

impl Level {
    pub(super) const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    pub(super) const fn span_ns(self) -> i64 {
        match self {
            Self::Minute => MINUTE_NS,
            Self::Hour => HOUR_NS,
            Self::Day => DAY_NS,
        }
    }

    /// The first key of a level at a time, after the tenant's and the meter's part.
    pub(super) fn start(self, pair: &[u8], ns: i64) -> Vec<u8> {
        let mut key = Vec::with_capacity(pair.len() + 12);
        key.extend_from_slice(pair);
        key.push(match self {
            Self::Minute => b'm',
            Self::Hour => b'h',
            Self::Day => b'd',
        });
        key.extend_from_slice(&ordered(ns));
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_sort_as_times(a in any::<i64>(), b in any::<i64>()) {
            prop_assert_eq!(ordered(a).cmp(&ordered(b)), a.cmp(&b));
        }

        #[test]
        fn parts_cover_each_minute_once(from in -5_000_i64..5_000, length in 0_i64..9_000) {
            let (from_ns, until_ns) = (from * MINUTE_NS, (from + length) * MINUTE_NS);
            let parts = parts(from_ns, until_ns);
            let mut next = from_ns;
            for part in &parts {
                prop_assert_eq!(part.from_ns, next);
                prop_assert!(part.until_ns > part.from_ns);
                prop_assert_eq!(floor(part.from_ns, part.level.span_ns()), part.from_ns);
                prop_assert_eq!(floor(part.until_ns, part.level.span_ns()), part.until_ns);
                next = part.until_ns;
            }
            prop_assert_eq!(next, until_ns);
            prop_assert!(parts.len() <= 5);
        }

        #[test]
        fn names_come_out_of_a_key(tenant in "[\0\u{1}aé]{0,4}", meter in "[\0\u{1}aé]{0,4}") {
            let mut key = pair(&tenant, &meter);
            let length = key.len();
            key.extend_from_slice(b"m\0\0");
            prop_assert_eq!(split_pair(&key), Some((length, tenant, meter)));
        }
    }

    proptest! {
        #[test]
        fn the_progress_of_a_checkpoint_is_read_back(
            tenant in "[\0\u{1}aé]{0,4}",
            meter in "[\0\u{1}aé]{0,4}",
            client in "[\0aé]{0,3}",
            minute in any::<i64>(),
            block in any::<u64>(),
        ) {
            let key = TallyKey {
                tenant: tenant.into(),
                meter: meter.into(),
                minute_ns: floor(minute, MINUTE_NS),
                currency: Currency::USD,
                client: client.into(),
            };
            let (some, all) = (covered(block, Some(&key)), covered(block, None));
            prop_assert_eq!(decode_covered(&some), Some((block, Covered::UpTo(key))));
            prop_assert_eq!(decode_covered(&all), Some((block, Covered::All)));
        }
    }

    #[test]
    fn all_of_time_has_parts() {
        let parts = parts(i64::MIN, i64::MAX);
        assert_eq!(parts.first().map(|part| part.from_ns), Some(i64::MIN));
        assert_eq!(parts.last().map(|part| part.until_ns), Some(floor(i64::MAX, MINUTE_NS)));
    }
}

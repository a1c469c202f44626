use rust_decimal::Decimal;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use tidegate_core::usage::{Currency, Fallback, PricedRecord, UsageCharge, UsageRecord};

/// Number of records in a block: enough that names and keys cost little, few enough to be read at once.
pub(super) const BLOCK_RECORDS: u32 = 1024;

/// The first byte of a block: how the rest is to be read.
const VERSION: u8 = 1;

/// The same for one that has the client of each record after all records.
const VERSION_CLIENTS: u8 = 2;

const QUANTITY_NEGATIVE: u8 = 1 << 6;
const AMOUNT_NEGATIVE: u8 = 1 << 7;
const FALLBACK_BITS: u8 = 0b111;

/// Records as bytes: the names once, then each record with the numbers of its names.
///
/// The engine keeps a checksum of every value, so a block has none of its own.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    numbers: HashMap<Arc<str>, u64>,
    names: Vec<u8>,
    records: Vec<u8>,
    /// For each record 0, or 1 more than the number of its client's name.
    clients: Vec<u64>,
    count: u32,
    last_ns: i64,
    max_ns: Option<i64>,
}

/// Bytes that are no block, or one of a newer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotABlock;

struct Reader<'a> {
    bytes: &'a [u8],
    names: Vec<Arc<str>>,
    last_ns: i64,
}

/// The records of a block, each with its client.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<(Arc<str>, PricedRecord)>, NotABlock> {
    read(bytes).ok_or(NotABlock)
}

fn read(bytes: &[u8]) -> Option<Vec<(Arc<str>, PricedRecord)>> {
    let mut reader = Reader { bytes, names: Vec::new(), last_ns: 0 };
    let has_clients = match reader.byte()? {
        VERSION => false,
        VERSION_CLIENTS => true,
        _ => return None,
    };
    let names = reader.short()?;
    for _ in 0..names {
        let length = reader.short()?;
        let name = std::str::from_utf8(reader.take(length)?).ok()?;
        reader.names.push(Arc::from(name));
    }
    let count = reader.short()?;
    // A record has at least 10 bytes: a wrong count asks for no more memory than there are bytes.
    let mut records = Vec::with_capacity(count.min(reader.bytes.len()));
    for _ in 0..count {
        records.push((Arc::default(), reader.record()?));
    }
    for (client, _) in records.iter_mut().filter(|_| has_clients) {
        *client = reader.client()?;
    }
    reader.bytes.is_empty().then_some(records)
}

// === impl BlockBuilder ===

impl BlockBuilder {
    pub(super) fn push(&mut self, client: &Arc<str>, priced: &PricedRecord) {
        let PricedRecord { record, charge } = priced;
        let fallback = charge.fallback.map_or(0, Fallback::code);
        let sign = |number: &Decimal, bit| if number.is_sign_negative() { bit } else { 0 };
        self.records.push(
            fallback
                | sign(&record.quantity, QUANTITY_NEGATIVE)
                | sign(&charge.amount, AMOUNT_NEGATIVE),
        );
        for number in [&record.quantity, &charge.amount] {
            self.records.push(number.scale() as u8);
            put(&mut self.records, number.mantissa().unsigned_abs());
        }
        for name in [&record.tenant, &record.meter, &record.labels, &charge.tariff] {
            let number = self.number(name);
            put(&mut self.records, u128::from(number));
        }
        self.records.extend_from_slice(charge.currency.code().as_bytes());
        let ahead = record.time_ns.wrapping_sub(self.last_ns);
        put(&mut self.records, u128::from((ahead << 1 ^ ahead >> 63) as u64));
        self.last_ns = record.time_ns;
        self.max_ns = self.max_ns.max(Some(record.time_ns));
        let client = if client.is_empty() { 0 } else { self.number(client) + 1 };
        self.clients.push(client);
        self.count += 1;
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= BLOCK_RECORDS
    }

    /// The latest time and the bytes of what was pushed; nothing if nothing was. Empty again after that.
    pub(super) fn finish(&mut self) -> Option<(i64, Vec<u8>)> {
        let max_ns = self.max_ns.take()?;
        let mut bytes = Vec::with_capacity(self.names.len() + self.records.len() + 16);
        let has_clients = self.clients.iter().any(|client| *client > 0);
        bytes.push(if has_clients { VERSION_CLIENTS } else { VERSION });
        put(&mut bytes, self.numbers.len() as u128);
        bytes.extend_from_slice(&self.names);
        put(&mut bytes, u128::from(self.count));
        bytes.extend_from_slice(&self.records);
        let clients = self.clients.drain(..);
        clients.filter(|_| has_clients).for_each(|client| put(&mut bytes, u128::from(client)));
        self.numbers.clear();
        self.names.clear();
        self.records.clear();
        (self.count, self.last_ns) = (0, 0);
        Some((max_ns, bytes))
    }

    fn number(&mut self, name: &Arc<str>) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.numbers.len() as u64;
        self.numbers.insert(name.clone(), number);
        put(&mut self.names, name.len() as u128);
        self.names.extend_from_slice(name.as_bytes());
        number
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    fn record(&mut self) -> Option<PricedRecord> {
        let flags = self.byte()?;
        let quantity = self.decimal(flags & QUANTITY_NEGATIVE != 0)?;
        let amount = self.decimal(flags & AMOUNT_NEGATIVE != 0)?;
        let [tenant, meter, labels, tariff] =
            [self.name()?, self.name()?, self.name()?, self.name()?];
        let currency = Currency::from_str(std::str::from_utf8(self.take(3)?).ok()?).ok()?;
        let ahead = u64::try_from(self.number()?).ok()?;
        let ahead = (ahead >> 1) as i64 ^ -((ahead & 1) as i64);
        self.last_ns = self.last_ns.wrapping_add(ahead);
        let fallback = match flags & FALLBACK_BITS {
            0 => None,
            code => Some(Fallback::from_code(code)?),
        };
        Some(PricedRecord {
            record: UsageRecord { tenant, meter, quantity, time_ns: self.last_ns, labels },
            charge: UsageCharge { amount, currency, tariff, fallback },
        })
    }

    fn decimal(&mut self, negative: bool) -> Option<Decimal> {
        let scale = u32::from(self.byte()?);
        let digits = i128::try_from(self.number()?).ok()?;
        let mut number = Decimal::try_from_i128_with_scale(digits, scale).ok()?;
        number.set_sign_negative(negative);
        Some(number)
    }

    fn name(&mut self) -> Option<Arc<str>> {
        let number = self.short()?;
        self.names.get(number).cloned()
    }

    fn client(&mut self) -> Option<Arc<str>> {
        match self.short()?.checked_sub(1) {
            None => Some(Arc::default()),
            Some(number) => self.names.get(number).cloned(),
        }
    }

    fn short(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn number(&mut self) -> Option<u128> {
        let mut number = 0;
        for shift in (0..=126).step_by(7) {
            let byte = self.byte()?;
            number |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn put(into: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_decimal() -> impl Strategy<Value = Decimal> {
        (-(1_i128 << 96) + 1..1 << 96, 0_u32..=28)
            .prop_map(|(digits, scale)| Decimal::from_i128_with_scale(digits, scale))
    }

    fn any_client() -> impl Strategy<Value = Arc<str>> {
        prop::sample::select(vec!["", "a", "é"]).prop_map(Arc::from)
    }

    prop_compose! {
        fn any_record()(
            names in prop::array::uniform4(".{0,5}"),
            quantity in any_decimal(),
            amount in any_decimal(),
            time_ns in prop_oneof![any::<i64>(), 0_i64..100],
            currency in "[A-Z]{3}",
            fallback in 0_u8..=4,
        ) -> PricedRecord {
            let [tenant, meter, labels, tariff] = names.map(Arc::<str>::from);
            PricedRecord {
                record: UsageRecord { tenant, meter, quantity, time_ns, labels },
                charge: UsageCharge {
                    amount,
                    currency: currency.parse().unwrap(),
                    tariff,
                    fallback: Fallback::from_code(fallback),
                },
            }
        }
    }

    proptest! {
        #[test]
        fn a_block_comes_back(
            records in prop::collection::vec((any_client(), any_record()), 1..40),
        ) {
            let mut builder = BlockBuilder::default();
            // What a first block leaves behind must not show in a second.
            for _ in 0..2 {
                records.iter().for_each(|(client, record)| builder.push(client, record));
                let (max_ns, bytes) = builder.finish().unwrap();
                let latest = records.iter().map(|(_, priced)| priced.record.time_ns).max();
                prop_assert_eq!(Some(max_ns), latest);
                prop_assert_eq!(decode(&bytes), Ok(records.clone()));
            }
            prop_assert_eq!(builder.finish(), None);
        }

        #[test]
        fn other_bytes_are_no_block_and_no_panic(
            records in prop::collection::vec((any_client(), any_record()), 1..4),
            cut in 0_usize..1_000,
            garbage in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut builder = BlockBuilder::default();
            records.iter().for_each(|(client, record)| builder.push(client, record));
            let (_, mut bytes) = builder.finish().unwrap();
            bytes.truncate(cut % bytes.len());
            prop_assert_eq!(decode(&bytes), Err(NotABlock));
            let _ = decode(&garbage);
            for version in [VERSION, VERSION_CLIENTS] {
                let _ = decode(&[&[version], &garbage[..]].concat());
            }
        }
    }
}

use super::account::Account;
use super::sums::Sum;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many places a book has where nothing else is said: about 20 MB.
pub const BOOK_KEYS_DEFAULT: usize = 100_000;

/// Places in front of the map, for names that were looked up lately: at first 4 KiB, at most 1 MiB.
const NEAR_SLOTS_MIN: usize = 1 << 10;
const NEAR_SLOTS_MAX: usize = 1 << 18;
const EMPTY: u32 = u32::MAX;

/// The accounts of all tenants and meters seen lately. It has a capacity, and exceeds it only by what is not
/// durable yet.
#[derive(Debug)]
pub(super) struct Book {
    accounts: Vec<Option<Account>>,
    free: Vec<u32>,
    /// Where each account is.
    places: BTreeMap<(Arc<str>, Arc<str>), u32>,
    /// The same for some of them, by a hash of their names. A collision costs a look into the map and no more.
    near: Vec<u32>,
    keys: usize,
    capacity: usize,
    /// A sweep that finds too little is not repeated before this batch is durable …
    sweep_when_durable: u64,
    /// … or there are this many keys.
    sweep_at_keys: usize,
    evicted: u64,
}

/// How full a book is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookStats {
    /// Sums that are kept, and tenants' meters that need none.
    pub keys: usize,
    /// How many there should be at most.
    pub capacity: usize,
    /// How many there are beyond that because what they count is not durable yet.
    pub over_capacity: usize,
    /// How many have been dropped since the start; each is read from the store again when it is needed.
    pub evicted: u64,
    /// How many sums began at zero because nobody had [loaded](super::Evaluator::load) them.
    pub unloaded: u64,
}

// === impl Book ===

impl Book {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            accounts: Vec::new(),
            free: Vec::new(),
            places: BTreeMap::new(),
            near: vec![EMPTY; NEAR_SLOTS_MIN],
            keys: 0,
            capacity: capacity.max(1),
            sweep_when_durable: 0,
            sweep_at_keys: 0,
            evicted: 0,
        }
    }

    pub(super) fn stats(&self) -> BookStats {
        BookStats {
            keys: self.keys,
            capacity: self.capacity,
            over_capacity: self.keys.saturating_sub(self.capacity),
            evicted: self.evicted,
            unloaded: 0,
        }
    }

    pub(super) fn get(&self, tenant: &Arc<str>, meter: &Arc<str>) -> Option<&Account> {
        let near = self.near[self.slot(tenant, meter)];
        if let Some(Some(account)) = self.accounts.get(near as usize)
            && account.is(tenant, meter)
        {
            return Some(account);
        }
        let place = *self.places.get(&(Arc::clone(tenant), Arc::clone(meter)))?;
        self.accounts.get(place as usize)?.as_ref()
    }

    /// The account, made if there is none, changed by `act`.
    #[inline]
    pub(super) fn with<T>(
        &mut self,
        tenant: &Arc<str>,
        meter: &Arc<str>,
        act: impl FnOnce(&mut Account) -> T,
    ) -> T {
        let slot = self.slot(tenant, meter);
        let near = self.near[slot] as usize;
        let known =
            matches!(self.accounts.get(near), Some(Some(account)) if account.is(tenant, meter));
        let place = if known { near } else { self.place(tenant, meter) };
        let account = self.accounts[place]
            .get_or_insert_with(|| Account::new(Arc::clone(tenant), Arc::clone(meter)));
        let before = account.weight();
        let answer = act(account);
        self.keys += account.weight() - before;
        answer
    }

    /// The same for an account that may be absent; sums are neither added nor removed.
    pub(super) fn with_known(
        &mut self,
        tenant: &Arc<str>,
        meter: &Arc<str>,
        act: impl FnOnce(&mut Account),
    ) {
        let place = self.places.get(&(Arc::clone(tenant), Arc::clone(meter)));
        let account = place.and_then(|place| self.accounts.get_mut(*place as usize));
        if let Some(Some(account)) = account {
            act(account);
        }
    }

    /// Drops what was used longest ago of what is durable, an eighth more than is too much, so that it need not
    /// be done for every batch. Returns how many keys were dropped.
    pub(super) fn evict(&mut self, durable_through: u64) -> usize {
        let is_useful =
            durable_through >= self.sweep_when_durable || self.keys >= self.sweep_at_keys;
        if self.keys <= self.capacity || !is_useful {
            return 0;
        }
        let excess = self.keys - (self.capacity - self.capacity / 8);
        let cutoff = self.cutoff(durable_through, excess);
        let dropped = cutoff.map_or(0, |cutoff| self.sweep(durable_through, cutoff));
        self.evicted += dropped as u64;
        let is_enough = self.keys <= self.capacity;
        self.sweep_when_durable = if is_enough { 0 } else { durable_through.saturating_add(1) };
        self.sweep_at_keys = if is_enough { 0 } else { self.keys + self.capacity.div_ceil(8) };
        dropped
    }

    fn place(&mut self, tenant: &Arc<str>, meter: &Arc<str>) -> usize {
        let name = (Arc::clone(tenant), Arc::clone(meter));
        if !self.places.contains_key(&name) {
            // A batch may be on its way that found its sums here and expects them: only names without any go.
            self.evict(0);
        }
        let (accounts, free) = (&mut self.accounts, &mut self.free);
        let keys = &mut self.keys;
        let place = *self.places.entry(name).or_insert_with(|| {
            *keys += 1;
            free.pop().unwrap_or_else(|| {
                accounts.push(None);
                (accounts.len() - 1) as u32
            })
        });
        // One in four is taken at most, so that few share a place.
        if self.places.len() > self.near.len() / 4 && self.near.len() < NEAR_SLOTS_MAX {
            self.near = vec![EMPTY; self.near.len() * 4];
        }
        let slot = self.slot(tenant, meter);
        self.near[slot] = place;
        place as usize
    }

    #[inline]
    fn slot(&self, tenant: &str, meter: &str) -> usize {
        hash(tenant, meter) as usize & (self.near.len() - 1)
    }

    /// Up to which batch keys must go so that so many do.
    fn cutoff(&self, durable_through: u64, excess: usize) -> Option<u64> {
        let mut touched = Vec::new();
        for account in self.accounts.iter().flatten() {
            let durable = account.sums.iter().map(|sum| sum.touched);
            touched.extend(durable.filter(|batch| *batch <= durable_through));
            touched.extend((account.sums.len() == 0).then_some(account.touched));
        }
        let last = touched.len().checked_sub(1)?;
        Some(*touched.select_nth_unstable(last.min(excess.saturating_sub(1))).1)
    }

    fn sweep(&mut self, durable_through: u64, cutoff: u64) -> usize {
        let before = self.keys;
        self.near.fill(EMPTY);
        for (place, entry) in (0..).zip(&mut self.accounts) {
            let Some(account) = entry else { continue };
            let weight = account.weight();
            let keep = |sum: &Sum| sum.touched > cutoff.min(durable_through);
            account.sums.retain(keep);
            if account.sums.len() == 0 && account.touched <= cutoff {
                self.keys -= weight;
                self.places.remove(&(Arc::clone(&account.tenant), Arc::clone(&account.meter)));
                *entry = None;
                self.free.push(place);
            } else if account.weight() < weight {
                self.keys -= weight - account.weight();
                account.forget();
            }
        }
        before - self.keys
    }
}

/// A hash of two names. Nothing but speed depends on it.
#[inline]
fn hash(tenant: &str, meter: &str) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let mut hash = tenant.len() as u64;
    for name in [tenant, meter] {
        let (words, rest) = name.as_bytes().as_chunks::<8>();
        hash = words.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
        let last = rest.iter().fold(0, |last, byte| last << 8 | u64::from(*byte));
        hash = mix(hash, last);
    }
    // A product's high bits depend on most of what went in.
    hash >> 32
}

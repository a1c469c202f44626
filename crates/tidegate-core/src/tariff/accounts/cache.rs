use super::account::Account;
use super::sums::Sum;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Default capacity in keys: about 20 MB.
pub const ACCOUNT_KEYS_DEFAULT: usize = 100_000;

/// Sizes of the direct-mapped table in front of the map: 4 KiB at first, at most 1 MiB.
const RECENT_SLOTS_MIN: usize = 1 << 10;
const RECENT_SLOTS_MAX: usize = 1 << 18;
const EMPTY: u32 = u32::MAX;

/// Cache of the accounts of recently seen tenants and meters. It exceeds its capacity only by sums that are not
/// durable yet.
#[derive(Debug)]
pub(in crate::tariff) struct AccountCache {
    accounts: Vec<Option<Account>>,
    free: Vec<u32>,
    /// Index of each account.
    indices: BTreeMap<(Arc<str>, Arc<str>), u32>,
    /// Index of some accounts, by a hash of their names. A collision costs one lookup in the map.
    recent: Vec<u32>,
    keys: usize,
    capacity: usize,
    /// A sweep that freed too little is not repeated before this batch is durable …
    sweep_when_durable: u64,
    /// … or there are this many keys.
    sweep_at_keys: usize,
    evicted: u64,
}

/// Fill of the account cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountCacheStats {
    /// Cached sums, and accounts without one.
    pub keys: usize,
    /// Capacity in keys.
    pub capacity: usize,
    /// Keys beyond the capacity, because their sums are not durable yet.
    pub over_capacity: usize,
    /// Keys evicted since the start; each is read from the store again when needed.
    pub evicted: u64,
    /// Sums that started at zero because they were not [loaded](crate::tariff::Evaluator::load).
    pub unloaded: u64,
}

// === impl AccountCache ===

impl AccountCache {
    pub(in crate::tariff) fn new(capacity: usize) -> Self {
        Self {
            accounts: Vec::new(),
            free: Vec::new(),
            indices: BTreeMap::new(),
            recent: vec![EMPTY; RECENT_SLOTS_MIN],
            keys: 0,
            capacity: capacity.max(1),
            sweep_when_durable: 0,
            sweep_at_keys: 0,
            evicted: 0,
        }
    }

    pub(in crate::tariff) fn stats(&self) -> AccountCacheStats {
        AccountCacheStats {
            keys: self.keys,
            capacity: self.capacity,
            over_capacity: self.keys.saturating_sub(self.capacity),
            evicted: self.evicted,
            unloaded: 0,
        }
    }

    pub(in crate::tariff) fn get(&self, tenant: &Arc<str>, meter: &Arc<str>) -> Option<&Account> {
        let recent = self.recent[self.slot(tenant, meter)];
        if let Some(Some(account)) = self.accounts.get(recent as usize)
            && account.is(tenant, meter)
        {
            return Some(account);
        }
        let index = *self.indices.get(&(Arc::clone(tenant), Arc::clone(meter)))?;
        self.accounts.get(index as usize)?.as_ref()
    }

    /// Runs `act` on the account, created if missing.
    #[inline]
    pub(in crate::tariff) fn with<T>(
        &mut self,
        tenant: &Arc<str>,
        meter: &Arc<str>,
        act: impl FnOnce(&mut Account) -> T,
    ) -> T {
        let slot = self.slot(tenant, meter);
        let recent = self.recent[slot] as usize;
        let known =
            matches!(self.accounts.get(recent), Some(Some(account)) if account.is(tenant, meter));
        let index = if known { recent } else { self.index(tenant, meter) };
        let account = self.accounts[index]
            .get_or_insert_with(|| Account::new(Arc::clone(tenant), Arc::clone(meter)));
        let before = account.weight();
        let answer = act(account);
        self.keys += account.weight() - before;
        answer
    }

    /// Runs `act` on the account if it exists; sums are neither added nor removed.
    pub(in crate::tariff) fn with_known(
        &mut self,
        tenant: &Arc<str>,
        meter: &Arc<str>,
        act: impl FnOnce(&mut Account),
    ) {
        let index = self.indices.get(&(Arc::clone(tenant), Arc::clone(meter)));
        let account = index.and_then(|index| self.accounts.get_mut(*index as usize));
        if let Some(Some(account)) = account {
            act(account);
        }
    }

    /// Evicts the least recently used durable keys, an eighth of the capacity more than necessary, so that not
    /// every batch evicts. Returns the number of evicted keys.
    pub(in crate::tariff) fn evict(&mut self, durable_through: u64) -> usize {
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

    fn index(&mut self, tenant: &Arc<str>, meter: &Arc<str>) -> usize {
        let name = (Arc::clone(tenant), Arc::clone(meter));
        if !self.indices.contains_key(&name) {
            // A batch in progress may rely on sums found in the cache: only accounts without sums are evicted.
            self.evict(0);
        }
        let (accounts, free) = (&mut self.accounts, &mut self.free);
        let keys = &mut self.keys;
        let index = *self.indices.entry(name).or_insert_with(|| {
            *keys += 1;
            free.pop().unwrap_or_else(|| {
                accounts.push(None);
                (accounts.len() - 1) as u32
            })
        });
        // At most one in four entries is used, so that collisions are rare.
        if self.indices.len() > self.recent.len() / 4 && self.recent.len() < RECENT_SLOTS_MAX {
            self.recent = vec![EMPTY; self.recent.len() * 4];
        }
        let slot = self.slot(tenant, meter);
        self.recent[slot] = index;
        index as usize
    }

    #[inline]
    fn slot(&self, tenant: &str, meter: &str) -> usize {
        hash(tenant, meter) as usize & (self.recent.len() - 1)
    }

    /// Batch number up to which keys have to go to evict `excess` of them.
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
        self.recent.fill(EMPTY);
        for (index, entry) in (0..).zip(&mut self.accounts) {
            let Some(account) = entry else { continue };
            let weight = account.weight();
            let keep = |sum: &Sum| sum.touched > cutoff.min(durable_through);
            account.sums.retain(keep);
            if account.sums.len() == 0 && account.touched <= cutoff {
                self.keys -= weight;
                self.indices.remove(&(Arc::clone(&account.tenant), Arc::clone(&account.meter)));
                *entry = None;
                self.free.push(index);
            } else if account.weight() < weight {
                self.keys -= weight - account.weight();
                account.forget();
            }
        }
        before - self.keys
    }
}

/// Hash of two names. Only speed depends on it.
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
    // The high bits of a product depend on most of its input.
    hash >> 32
}

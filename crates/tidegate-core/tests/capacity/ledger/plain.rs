use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::admission::MessagePriority;
use tidegate_core::capacity::{Acquired, SlotLease};
use tidegate_core::task::ExecutionKey;

/// The rules with no thought for speed: lists that are searched from the start.
#[derive(Default)]
pub struct Plain {
    pub slots: BTreeMap<&'static str, u32>,
    pub leases: Vec<(SlotLease, u64, bool)>,
    pub line: Vec<Waiter>,
    pub arrivals: u64,
    pub fences: u64,
}

pub struct Waiter {
    pub priority: MessagePriority,
    pub arrival: u64,
    pub holder: ExecutionKey,
    pub executors: Vec<&'static str>,
    pub ends_ms: u64,
}

// === impl Plain ===

impl Plain {
    pub fn free(&self, executor: &str) -> bool {
        let held = self.leases.iter().filter(|held| &*held.0.executor == executor).count();
        held < self.slots.get(executor).copied().unwrap_or(0) as usize
    }

    pub fn grant(&mut self, holder: &ExecutionKey, executor: &str, ends_ms: u64, told: bool) {
        self.fences += 1;
        let lease =
            SlotLease { holder: holder.clone(), executor: executor.into(), fence: self.fences };
        self.leases.push((lease, ends_ms, told));
    }

    /// Each free slot is that of the first in the line who wants it.
    pub fn hand_out(&mut self, executor: &str) {
        while self.free(executor) {
            let wants = |waiter: &Waiter| waiter.executors.contains(&executor);
            let Some(at) = self.line.iter().position(wants) else { return };
            let Waiter { holder, ends_ms, .. } = self.line.remove(at);
            self.grant(&holder, executor, ends_ms, false);
        }
    }

    pub fn expire(&mut self, now_ms: u64) {
        self.line.retain(|waiter| waiter.ends_ms > now_ms);
        let over = self.leases.iter().filter(|held| held.1 <= now_ms);
        let freed: BTreeSet<_> = over.map(|held| held.0.executor.clone()).collect();
        self.leases.retain(|held| held.1 > now_ms);
        for executor in freed {
            self.hand_out(&executor);
        }
    }

    pub fn acquire(
        &mut self,
        holder: &ExecutionKey,
        priority: MessagePriority,
        executors: &[&'static str],
        ends_ms: u64,
    ) -> Acquired {
        if let Some(held) = self.leases.iter_mut().find(|held| held.0.holder == *holder) {
            held.1 = held.1.max(ends_ms);
            held.2 = true;
            return Acquired::Granted(held.0.clone());
        }
        let at = self.line.iter().position(|waiter| waiter.holder == *holder);
        let before = at.map(|at| self.line.remove(at));
        if let Some(executor) = executors.iter().find(|executor| self.free(executor)) {
            self.grant(holder, executor, ends_ms, true);
            return Acquired::Granted(self.leases.last().unwrap().0.clone());
        }
        let arrival = before.as_ref().map_or_else(
            || {
                self.arrivals += 1;
                self.arrivals
            },
            |before| before.arrival,
        );
        let ends_ms = before.map_or(ends_ms, |before| before.ends_ms.max(ends_ms));
        let executors = executors.to_vec();
        self.line.push(Waiter { priority, arrival, holder: holder.clone(), executors, ends_ms });
        self.line.sort_by_key(|waiter| (waiter.priority, waiter.arrival));
        Acquired::Waiting { ahead: self.ahead(holder) }
    }

    pub fn ahead(&self, holder: &ExecutionKey) -> u64 {
        let own = self.line.iter().position(|waiter| waiter.holder == *holder).unwrap();
        let wants =
            |executor: &'static str| move |waiter: &&Waiter| waiter.executors.contains(&executor);
        let lengths = self.line[own].executors.iter();
        let shortest = lengths.min_by_key(|name| self.line.iter().filter(wants(name)).count());
        self.line[..own].iter().filter(wants(shortest.unwrap())).count() as u64
    }

    pub fn end(&mut self, which: impl Fn(&(SlotLease, u64, bool)) -> bool) -> u64 {
        let over: Vec<_> = self.leases.extract_if(.., |held| which(held)).collect();
        for executor in over.iter().map(|held| &held.0.executor).collect::<BTreeSet<_>>() {
            self.hand_out(executor);
        }
        over.len() as u64
    }
}

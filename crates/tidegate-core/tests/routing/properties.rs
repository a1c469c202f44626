//! Properties of an upstream's load account under any order of events.

use proptest::prelude::*;
use std::time::Duration;
use tidegate_core::routing::{
    BusyThresholds, Charge, ChargeTicket, KvUsage, LoadAccount, LoadReport, OnSilence,
};

/// Something that happens to an upstream.
#[derive(Clone, Debug)]
enum Event {
    Send {
        blocks: u64,
        tokens: u64,
    },
    Sent(usize),
    Begin(usize),
    End(usize),
    /// A report by a rank, made up to a second ago, that says anything.
    Report {
        rank: usize,
        ago_ms: u64,
        active: u64,
        tokens: Option<u64>,
        running: Option<u64>,
    },
    Expire,
    /// Time passes, or a thread with an older clock comes in.
    Pass {
        ms: u64,
    },
    StepBack {
        ms: u64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1_u64..50, 1_u64..500).prop_map(|(blocks, tokens)| Event::Send { blocks, tokens }),
        4 => (0_usize..64).prop_map(Event::Sent),
        2 => (0_usize..64).prop_map(Event::Begin),
        3 => (0_usize..64).prop_map(Event::End),
        3 => report(),
        1 => Just(Event::Expire),
        3 => (0_u64..400).prop_map(|ms| Event::Pass { ms }),
        1 => (3_000_u64..20_000).prop_map(|ms| Event::Pass { ms }),
        1 => (0_u64..100).prop_map(|ms| Event::StepBack { ms }),
    ]
}

fn report() -> impl Strategy<Value = Event> {
    let optional = |max| prop::option::of(0_u64..max);
    (0_usize..3, 0_u64..1_000, 0_u64..1_200, optional(2_000), optional(100)).prop_map(
        |(rank, ago_ms, active, tokens, running)| Event::Report {
            rank,
            ago_ms,
            active,
            tokens,
            running,
        },
    )
}

/// An upstream, a clock and what is on its way.
struct World {
    account: LoadAccount,
    thresholds: BusyThresholds,
    now_ms: u64,
    held: Vec<ChargeTicket>,
}

impl World {
    fn new(thresholds: BusyThresholds) -> Self {
        let account = LoadAccount::new(OnSilence::Free);
        Self { account, thresholds, now_ms: 1_000, held: Vec::new() }
    }

    fn happen(&mut self, event: &Event) {
        let now = Duration::from_millis(self.now_ms);
        match *event {
            Event::Send { blocks, tokens } => {
                let charge = Charge::new(blocks, tokens);
                self.held.extend(self.account.try_charge(charge, &self.thresholds).ok());
            }
            Event::Sent(index) if !self.held.is_empty() => {
                let index = index % self.held.len();
                self.account.sent(&mut self.held[index], now);
            }
            Event::Begin(index) if !self.held.is_empty() => {
                let index = index % self.held.len();
                self.account.prefilled(&mut self.held[index]);
            }
            Event::End(index) if !self.held.is_empty() => {
                let ticket = self.held.swap_remove(index % self.held.len());
                self.account.release(ticket);
            }
            Event::Sent(_) | Event::Begin(_) | Event::End(_) => {}
            Event::Report { rank, ago_ms, active, tokens, running } => {
                let report = LoadReport {
                    active_decode_blocks: Some(active),
                    kv_total_blocks: Some(1_000),
                    active_prefill_tokens: tokens,
                    running,
                    waiting: None,
                    tokens_per_block: None,
                };
                let at = Duration::from_millis(self.now_ms.saturating_sub(ago_ms));
                self.account.record_report(rank, report, at);
            }
            Event::Expire => {
                self.account.expire(now.saturating_sub(Duration::from_secs(5)));
            }
            Event::Pass { ms } => self.now_ms += ms,
            Event::StepBack { ms } => self.now_ms -= ms,
        }
    }
}

proptest! {
    #[test]
    fn no_more_requests_are_sent_than_all_ranks_may_have(
        events in prop::collection::vec(event(), 1..200),
        most in 0_u64..12,
    ) {
        let thresholds = BusyThresholds { active_requests: Some(most), ..BusyThresholds::OFF };
        let mut world = World::new(thresholds);
        for event in &events {
            world.happen(event);
            let ranks = world.account.ranks().len() as u64;
            prop_assert_eq!(world.account.outstanding(), world.held.len() as u64);
            prop_assert!(world.account.outstanding() <= most * ranks);
            prop_assert!(world.account.requests() >= world.account.outstanding());
            prop_assert!(world.account.occupancy() >= world.account.outstanding());
        }
    }

    #[test]
    fn when_all_has_ended_and_a_report_says_idle_nothing_is_left(
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut world = World::new(BusyThresholds::OFF);
        events.iter().for_each(|event| world.happen(event));
        for ticket in std::mem::take(&mut world.held) {
            world.account.release(ticket);
        }
        let late = Duration::from_millis(world.now_ms + 2_000);
        let ranks: Vec<_> = world.account.ranks().map(|told| told.rank).collect();
        for rank in ranks {
            let idle = LoadReport {
                active_decode_blocks: Some(0),
                kv_total_blocks: Some(1_000),
                active_prefill_tokens: Some(0),
                running: Some(0),
                waiting: Some(0),
                tokens_per_block: None,
            };
            world.account.record_report(rank, idle, late);
        }
        for told in world.account.ranks() {
            let view = told.view;
            prop_assert_eq!(view.kv, KvUsage::Blocks { active: 0, total: 1_000 });
            prop_assert_eq!((view.requests, view.prefill_tokens), (0, 0));
        }
        prop_assert_eq!(world.account.occupancy(), 0);
    }

    #[test]
    fn what_no_report_can_have_yet_counts_in_full(
        events in prop::collection::vec(event(), 0..100),
        sizes in prop::collection::vec(1_u64..50, 1..20),
    ) {
        let mut world = World::new(BusyThresholds::OFF);
        events.iter().for_each(|event| world.happen(event));
        // Long enough that everything before is in the report.
        let at = Duration::from_millis(world.now_ms + 2_000);
        for ticket in &mut world.held {
            world.account.sent(ticket, Duration::from_millis(world.now_ms));
        }
        let ranks: Vec<_> = world.account.ranks().map(|told| told.rank).collect();
        for rank in &ranks {
            let report = LoadReport {
                active_decode_blocks: Some(100),
                kv_total_blocks: Some(1_000),
                ..LoadReport::default()
            };
            world.account.record_report(*rank, report, at);
        }
        let (mut sent, mut charged) = (Vec::new(), 0);
        for size in &sizes {
            let charge = Charge::new(*size, 1);
            charged += world.account.estimate(charge).blocks;
            let mut ticket = world.account.charge_anyway(charge);
            world.account.sent(&mut ticket, at);
            sent.push(ticket);
        }
        let active = |account: &LoadAccount| -> u64 {
            let of = |kv| if let KvUsage::Blocks { active, .. } = kv { active } else { 0 };
            account.ranks().map(|told| of(told.view.kv)).sum()
        };
        let told = 100 * ranks.len() as u64;
        prop_assert_eq!(active(&world.account), told + charged);
        for ticket in sent {
            world.account.release(ticket);
        }
        let left = active(&world.account);
        prop_assert!(left <= told, "{} of {}", left, told);
    }
}

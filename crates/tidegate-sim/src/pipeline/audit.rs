//! Invariants of the pipeline, checked at every step.

use super::server::Work;
use super::stages::{Moved, Stages};
use crate::Violation;
use std::time::Duration;
use tidegate_core::window::{Grant, Stage, WindowConfig};

/// Counts on its own, from what is offered and what leaves, and holds the stages to it.
#[derive(Debug, Default)]
pub(super) struct Audit {
    offered: u64,
    taken: u64,
    stored: u64,
    /// Items in each window after the previous step.
    items: [u64; Stage::COUNT],
}

// === impl Audit ===

impl Audit {
    pub(super) fn offered(&self) -> u64 {
        self.offered
    }

    pub(super) fn stored(&self) -> u64 {
        self.stored
    }

    /// After every millisecond.
    pub(super) fn step(
        &mut self,
        stages: &Stages,
        offered: u64,
        moved: Moved,
        now: Duration,
    ) -> Result<(), Violation> {
        self.offered += offered;
        self.taken += moved.taken;
        self.stored += moved.delivered;
        let violated = |invariant, found| violation(stages, now, invariant, found);
        let held = stages.held();
        if self.offered != stages.unsent + held + self.stored || self.taken != held + self.stored {
            let found = format!(
                "{} offered, {} taken, {held} held, {} stored, {} at their senders",
                self.offered, self.taken, self.stored, stages.unsent
            );
            return Err(violated("every record is at its sender, held or stored", found));
        }
        for stage in Stage::ALL {
            self.check_channel(stages, stage, now)?;
        }
        let (bytes, budget) = (stages.held_bytes(), stages.scheduler.config().budget_bytes);
        if bytes > budget {
            let found = format!("{bytes} bytes of {budget}");
            return Err(violated("all windows together hold no more than the budget", found));
        }
        Ok(())
    }

    fn check_channel(
        &mut self,
        stages: &Stages,
        stage: Stage,
        now: Duration,
    ) -> Result<(), Violation> {
        let violated = |invariant, found| violation(stages, now, invariant, found);
        let channel = &stages.channels[stage.index()];
        let (items, credits, free) = (channel.items(), channel.credits, channel.free);
        if free + items as i64 != credits as i64 {
            let found = format!(
                "{stage}: {free} free, {} waiting and {} leased of {credits}",
                channel.waiting, channel.leased
            );
            return Err(violated("free, waiting and leased credits are what is granted", found));
        }
        let worked_on = match stages.servers[stage.index()].work() {
            Work::Idle => 0,
            Work::Busy { items, .. } | Work::Done { items } => items,
        };
        if worked_on != channel.leased {
            let found = format!("{stage}: {} leased, {worked_on} worked on", channel.leased);
            return Err(violated("what is leased is what a stage works on", found));
        }
        let before = std::mem::replace(&mut self.items[stage.index()], items);
        if items > credits && items > before {
            let found = format!("{stage}: from {before} to {items} of {credits}");
            return Err(violated("no stage is given more than it granted", found));
        }
        Ok(())
    }

    /// After every measurement.
    pub(super) fn tick(&self, stages: &Stages, now: Duration) -> Result<(), Violation> {
        let config = stages.scheduler.config();
        let violated = |invariant, found| violation(stages, now, invariant, found);
        let mut is_after_stalled = false;
        for stage in Stage::ALL.into_iter().rev() {
            let grant = stages.scheduler.grants()[stage.index()];
            if !is_sound(config, &grant) {
                let found = format!("{stage}: {} credits in {} slots", grant.credits, grant.window);
                return Err(violated("windows are within their bounds", found));
            }
            let is_stalled = stages.scheduler.state(stage).is_stalled();
            let departed = stages.samples[stage.index()].departed_items;
            if is_stalled && departed > 0 && !is_after_stalled {
                let found = format!("{stage}: {departed} left, and it is held to be stalled");
                return Err(violated("the first departure after a stall ends it", found));
            }
            is_after_stalled |= is_stalled;
        }
        Ok(())
    }
}

fn is_sound(config: &WindowConfig, grant: &Grant) -> bool {
    let bounds = config.window_min..=config.window_max;
    bounds.contains(&grant.window) && grant.credits <= grant.window
}

fn violation(stages: &Stages, at: Duration, invariant: &'static str, found: String) -> Violation {
    Violation { invariant, found, at, events: stages.decisions }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{PipelineScenario, StageModel};
    use tidegate_core::rng::Rng;
    use tidegate_core::window::{AdaptiveScheduler, Law};

    const WELL: [Option<f64>; Stage::COUNT] = [Some(1.0); Stage::COUNT];

    /// Stages that have been at work for a while, and the audit of them.
    fn at_work(config: WindowConfig, item_bytes: u64) -> (Stages, Audit) {
        let models = PipelineScenario::overloaded(Law::Cubic, Duration::ZERO).stages;
        let models = models.map(|model| StageModel { item_bytes, ..model });
        let rng = &mut Rng::new(1);
        let mut stages = Stages::new(config, Law::Cubic, &models, rng).unwrap();
        let mut audit = Audit::default();
        for _ in 0..50 {
            let moved = stages.step(200, WELL);
            audit.step(&stages, 200, moved, Duration::ZERO).unwrap();
        }
        (stages, audit)
    }

    /// Returns the violation that the audit finds after a change of the stages.
    fn found_after(change: impl FnOnce(&mut Stages)) -> &'static str {
        let (mut stages, mut audit) = at_work(WindowConfig::default(), 256);
        change(&mut stages);
        let moved = stages.step(200, WELL);
        match audit.step(&stages, 200, moved, Duration::ZERO) {
            Ok(()) => "nothing",
            Err(violation) => violation.invariant,
        }
    }

    #[test]
    fn what_is_well_is_not_found_fault_with() {
        assert_eq!(found_after(|_| {}), "nothing");
    }

    #[test]
    fn a_record_that_vanishes_or_comes_from_nowhere_is_found() {
        let everywhere = "every record is at its sender, held or stored";
        assert_eq!(found_after(|stages| stages.unsent -= 1), everywhere);
        assert_eq!(found_after(|stages| stages.channels[2].waiting += 1), everywhere);
    }

    #[test]
    fn a_credit_that_leaks_or_is_made_up_is_found() {
        let conserved = "free, waiting and leased credits are what is granted";
        assert_eq!(found_after(|stages| stages.channels[4].free -= 1), conserved);
        assert_eq!(found_after(|stages| stages.channels[0].free += 1), conserved);
    }

    #[test]
    fn a_lease_that_nobody_works_on_is_found() {
        let found = found_after(|stages| {
            let waiting = stages.channels[4].waiting;
            stages.channels[4].lease(waiting);
        });
        assert_eq!(found, "what is leased is what a stage works on");
    }

    #[test]
    fn a_stage_that_is_given_more_than_it_granted_is_found() {
        let (stages, mut audit) = at_work(WindowConfig::default(), 256);
        // As if it had been empty, and its grant that small, before this step.
        audit.items = [0; Stage::COUNT];
        let mut stages = stages;
        let store = &mut stages.channels[4];
        store.credits = 1;
        store.free = 1 - store.items() as i64;
        let moved = Moved::default();
        let violation = audit.step(&stages, 0, moved, Duration::ZERO).unwrap_err();
        assert_eq!(violation.invariant, "no stage is given more than it granted");
        assert!(violation.found.starts_with("store: from 0 to "), "{}", violation.found);
    }

    #[test]
    fn more_than_the_budget_is_found() {
        let (mut stages, mut audit) = at_work(WindowConfig::default(), 100 << 10);
        let small = WindowConfig { budget_bytes: 1 << 20, ..WindowConfig::default() };
        stages.scheduler = AdaptiveScheduler::new(small, Law::Cubic).unwrap();
        let violation = audit.step(&stages, 0, Moved::default(), Duration::ZERO).unwrap_err();
        assert_eq!(violation.invariant, "all windows together hold no more than the budget");
    }

    #[test]
    fn a_window_out_of_its_bounds_is_found() {
        let config = WindowConfig::default();
        let grant = |window, credits| Grant { window, credits, ..Grant::default() };
        assert!(is_sound(&config, &grant(1_024, 609)) && is_sound(&config, &grant(131_072, 1)));
        assert!(!is_sound(&config, &grant(1_023, 609)));
        assert!(!is_sound(&config, &grant(131_073, 609)));
        assert!(!is_sound(&config, &grant(1_024, 1_025)));
    }

    #[test]
    fn a_stall_that_outlasts_its_cause_is_found() {
        let (mut stages, audit) = at_work(WindowConfig::default(), 256);
        let mut now = Duration::ZERO;
        let blocked = [Some(1.0), Some(1.0), Some(1.0), Some(1.0), None];
        for _ in 0..20 {
            for _ in 0..100 {
                stages.step(0, blocked);
            }
            now += Duration::from_millis(100);
            stages.tick(now);
            audit.tick(&stages, now).unwrap();
        }
        assert!(stages.scheduler.state(Stage::Store).is_stalled());
        // As if something had left in this measurement, and the law had not seen it.
        stages.samples[Stage::Store.index()].departed_items = 1;
        let violation = audit.tick(&stages, now).unwrap_err();
        assert_eq!(violation.invariant, "the first departure after a stall ends it");
    }
}

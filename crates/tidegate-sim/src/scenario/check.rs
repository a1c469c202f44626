//! Validation of a scenario beyond its types. Returns all errors, not only the first.

use super::{
    Class, Fault, FaultKind, FieldError, RetryPlan, Scenario, Service, UpstreamLimit, Wave, What,
    World,
};
use std::collections::BTreeSet;
use tidegate_core::admission::MessagePriority;

/// Longer than this is no scenario but a service.
const DURATION_MAX_S: f64 = 24.0 * 3600.0;
/// The largest number of classes that reports and measures support.
const CLASSES_MAX: usize = 32;
const PHASES_MAX: usize = 64;
const FAULTS_MAX: usize = 64;
/// Latencies are kept to a thousandth for each class in each phase, in 94 KB each.
const CELLS_MAX: usize = 256;

#[derive(Default)]
struct Found(Vec<FieldError>);

impl Scenario {
    /// Returns all errors.
    #[must_use]
    pub fn errors(&self) -> Vec<FieldError> {
        let mut found = Found::default();
        found.unless(!self.about.trim().is_empty(), "about", "say in a line what it shows");
        found.within("duration_s", self.duration_s, 0.1, DURATION_MAX_S);
        found.within("settle_s", self.settle_s, 0.0, self.duration_s);
        if let Some(short) = self.short {
            found.within("short.duration_s", short.duration_s, 0.1, self.duration_s);
            found.within("short.settle_s", short.settle_s, 0.0, short.duration_s);
            found.within("short.slower", short.slower, 1.0, 100.0);
        }
        self.check_world(&mut found);
        self.check_load(&mut found);
        for (index, class) in self.classes.iter().enumerate() {
            self.check_class(&mut found, index, class);
        }
        found.unless(self.faults.len() <= FAULTS_MAX, "fault", "at most 64");
        for (index, fault) in self.faults.iter().enumerate() {
            self.check_fault(&mut found, index, fault);
        }
        self.check_expectations(&mut found);
        self.check_judged(&mut found, "settle_s");
        if let Some(short) = self.short {
            self.shortened().check_judged(&mut found, "short.settle_s");
            if short.slower != 1.0 {
                self.check_slower(&mut found);
            }
        }
        found.0
    }

    /// Checks the short form with slower requests.
    fn check_slower(&self, found: &mut Found) {
        const AT: &str = "short.slower";
        found.unless(
            self.upstreams.is_some(),
            AT,
            "slows what upstreams do, and there are none: leave it out",
        );
        let mut slowed = Found::default();
        let shortened = self.shortened();
        for (index, class) in shortened.classes.iter().enumerate() {
            shortened.check_class(&mut slowed, index, class);
        }
        for FieldError { at, what } in slowed.0 {
            found.says(AT, &format!("makes {at} too much: it {what}"));
        }
        let in_ms =
            |what| matches!(what, What::LatencyMeanMs | What::LatencyP50Ms | What::LatencyP99Ms);
        let absolute = self.expectations.iter().find(|expected| {
            let is_slowed = expected.of != "priority:critical";
            in_ms(expected.what) && expected.against.is_none() && is_slowed
        });
        if let Some(expected) = absolute {
            let text = format!(
                "makes {} longer, and what is expected of it is in milliseconds: say against what, or \
                 leave it out",
                expected.what
            );
            found.says(AT, &text);
        }
    }

    fn check_world(&self, found: &mut Found) {
        let worlds = [self.upstreams.is_some(), self.pipeline.is_some(), self.executors.is_some()];
        let count = worlds.into_iter().filter(|there| *there).count();
        found.unless(
            count == 1,
            "upstreams",
            "exactly one of upstreams, pipeline and executors must be there",
        );
        found.unless(
            self.gateway.is_none() || self.upstreams.is_some(),
            "gateway",
            "a gateway needs upstreams: write [upstreams]",
        );
        match self.world() {
            Some(World::Gateway(upstreams)) => {
                found.within("upstreams.count", f64::from(upstreams.count), 1.0, 1000.0);
                found.within("upstreams.slots", f64::from(upstreams.slots), 1.0, 4096.0);
                found.within("upstreams.queue", f64::from(upstreams.queue), 0.0, 65_536.0);
                let above = f64::from(upstreams.thrash_above.unwrap_or(1));
                found.within("upstreams.thrash_above", above, 1.0, 65_536.0);
                found.within(
                    "upstreams.kv_blocks",
                    f64::from(upstreams.kv_blocks),
                    1.0,
                    1_048_576.0,
                );
                found.unless(!self.classes.is_empty(), "class", "say who asks: write [[class]]");
                found.unless(self.classes.len() <= CLASSES_MAX, "class", "at most 32");
                self.check_tenants(found);
            }
            Some(World::Pipeline(pipeline)) => {
                found.within("pipeline.store_per_s", pipeline.store_per_s, 1.0, 1e9);
                found.within("pipeline.share", pipeline.share, 0.0, 100.0);
                found.within("pipeline.senders", f64::from(pipeline.senders), 1.0, 1000.0);
                found.within(
                    "pipeline.batch_records",
                    f64::from(pipeline.batch_records),
                    1.0,
                    500.0,
                );
            }
            Some(World::Executors(executors)) => {
                found.within("executors.executors", f64::from(executors.executors), 1.0, 1000.0);
                found.within("executors.managers", f64::from(executors.managers), 1.0, 1000.0);
                found.within("executors.task_ms", executors.task_ms, 0.1, 3_600_000.0);
                found.within("executors.share", executors.share, 0.0, 10.0);
                found.within("executors.hop_ms", executors.hop_ms, 0.001, 60_000.0);
                found.within("executors.drill_slower", executors.drill_slower, 1.0, 1000.0);
                found.unless(
                    !executors.placements.is_empty(),
                    "executors.placements",
                    "at least one",
                );
            }
            None => {}
        }
        let is_gateway = self.upstreams.is_some();
        found.unless(
            is_gateway || self.classes.is_empty(),
            "class",
            "classes ask a gateway; a pipeline and executors have a share of their own",
        );
    }

    fn check_tenants(&self, found: &mut Found) {
        let gateway = self.gateway();
        let mut names = BTreeSet::new();
        for tenant in &gateway.tenants {
            let at = format!("gateway.tenant.{}", tenant.name);
            found.unless(names.insert(&tenant.name), &at, "is there twice");
            found.unless(
                tenant.max_priority != MessagePriority::Critical,
                &format!("{at}.max_priority"),
                "critical is for the control plane alone",
            );
            if let Some(share) = tenant.share {
                found.within(&format!("{at}.share"), share, 0.001, 1.0);
            }
        }
        if let Some(share) = gateway.upstream_share {
            found.within("gateway.upstream_share", share, 0.001, 1.0);
        }
        if let Some(share) = gateway.active_decode_blocks {
            found.within("gateway.active_decode_blocks", share, 0.0, 1.0);
        }
        if let Some(UpstreamLimit::Fixed(limit)) = gateway.limit {
            found.within("gateway.limit", f64::from(limit), 1.0, 65_536.0);
        }
        if let Some(queue) = gateway.queue {
            found.within("gateway.queue", queue as f64, 0.0, 1_000_000.0);
        }
        for (key, us) in [("request_us", gateway.request_us), ("refusal_us", gateway.refusal_us)] {
            found.within(&format!("gateway.{key}"), us.unwrap_or(0.0), 0.0, 1_000_000.0);
        }
        if let Some(ms) = gateway.wait_max_ms {
            found.within("gateway.wait_max_ms", ms, 1.0, 3_600_000.0);
        }
    }

    fn check_load(&self, found: &mut Found) {
        found.unless(self.phases.len() <= PHASES_MAX, "phase", "at most 64");
        let cells = self.phases.len() * self.classes.len();
        found.unless(
            cells <= CELLS_MAX,
            "phase",
            &format!("phases times classes are {cells}, allowed are {CELLS_MAX}"),
        );
        let mut names = BTreeSet::new();
        for phase in &self.phases {
            let at = format!("phase.{}", phase.name);
            found.unless(names.insert(&phase.name), &at, "is there twice");
            found.within(&format!("{at}.part"), phase.part, 0.001, 1000.0);
            found.within(&format!("{at}.load"), phase.load, 0.0, 1000.0);
        }
        let Some(wave) = self.wave else { return };
        let (low, high, period_s) = match wave {
            Wave::Square { high, low, period_s } => (low, high, period_s),
            Wave::Sawtooth { peak, period_s } => (0.0, peak, period_s),
            Wave::Bursts { high, low, mean_s } => (low, high, mean_s),
        };
        found.within("wave", low, 0.0, 1000.0);
        found.within("wave", high, 0.001, 1000.0);
        found.within("wave", period_s, 0.01, DURATION_MAX_S);
    }

    fn check_class(&self, found: &mut Found, index: usize, class: &Class) {
        let at = |key: &str| format!("class.{}.{key}", class.name);
        let is_first = self.classes.iter().take(index).all(|other| other.name != class.name);
        found.unless(is_first, &at("name"), "is there twice");
        let reserved = ["all", "healthy"].contains(&&*class.name) || class.name.contains(':');
        found.unless(
            !reserved && !class.name.is_empty(),
            &at("name"),
            "is a name that reports use",
        );
        match (class.share, class.per_s) {
            (Some(share), None) => found.within(&at("share"), share, 0.0, 1000.0),
            (None, Some(per_s)) => found.within(&at("per_s"), per_s, 0.0, 1e6),
            _ => found.says(&at("share"), "say how many there are: either share or per_s"),
        }
        for (phase, load) in &class.loads {
            found.unless(
                self.has_phase(phase),
                &at("loads"),
                &format!("there is no phase {phase:?}"),
            );
            found.within(&at("loads"), *load, 0.0, 1000.0);
        }
        found.within(&at("body_bytes"), f64::from(class.body_bytes), 0.0, 16_777_216.0);
        if let Some(deadline_ms) = class.deadline_ms {
            found.within(&at("deadline_ms"), deadline_ms, 1.0, 3_600_000.0);
        }
        if let Some(RetryPlan { times, base_ms, .. }) = class.retry {
            found.within(&at("retry.times"), f64::from(times), 1.0, 100.0);
            found.within(&at("retry.base_ms"), base_ms, 1.0, 3_600_000.0);
        }
        check_service(found, &at("service"), class.service);
        let gateway = self.gateway();
        let tenant = class
            .tenant
            .as_ref()
            .map(|name| (name, gateway.tenants.iter().find(|tenant| tenant.name == *name)));
        match tenant {
            Some((name, None)) => {
                found.says(&at("tenant"), &format!("there is no [[gateway.tenant]] {name:?}"));
            }
            Some((_, Some(tenant))) => found.unless(
                class.priority >= tenant.max_priority,
                &at("priority"),
                "is more urgent than its tenant may claim",
            ),
            None => {}
        }
    }

    fn check_fault(&self, found: &mut Found, index: usize, fault: &Fault) {
        use FaultKind::{Blocked, Capacity, Cut, Dead, Delay, Fails, Loss, ManagerDead, Slow};
        let at = |key: &str| format!("fault.{index}.{key}");
        found.within(&at("from_s"), fault.from_s, 0.0, self.duration_s);
        found.within(&at("until_s"), fault.until_s, fault.from_s, self.duration_s);
        let kinds: &[FaultKind] = match self.world() {
            Some(World::Gateway(_)) => &[Slow, Dead, Fails, Capacity, Cut],
            Some(World::Pipeline(_)) => &[Slow, Blocked],
            Some(World::Executors(_)) => &[Dead, Loss, Delay, ManagerDead],
            None => return,
        };
        let names: Vec<_> = kinds.iter().map(ToString::to_string).collect();
        let allowed = format!("can't be here: there are {}", names.join(", "));
        found.unless(kinds.contains(&fault.kind), &at("kind"), &allowed);
        let mut needs =
            |key: &str, value: Option<f64>, needed: bool, min: f64, max: f64| match value {
                Some(value) if needed => found.within(&at(key), value, min, max),
                Some(_) => found.says(&at(key), "means nothing for this kind of fault"),
                None if needed => found.says(&at(key), "is needed for this kind of fault"),
                None => {}
            };
        needs("factor", fault.factor, fault.kind == Slow, 0.01, 10_000.0);
        needs("share", fault.share, matches!(fault.kind, Fails | Capacity | Loss), 0.0, 1.0);
        needs("added_ms", fault.added_ms, fault.kind == Delay, 0.0, 60_000.0);
        let stage_needed = matches!(self.world(), Some(World::Pipeline(_)));
        found.unless(
            fault.stage.is_some() == stage_needed,
            &at("stage"),
            "is needed for a fault of the pipeline, and means nothing elsewhere",
        );
        let count = match (self.world(), fault.kind) {
            (Some(World::Gateway(upstreams)), _) => u32::from(upstreams.count),
            (Some(World::Executors(world)), ManagerDead) => world.managers,
            (Some(World::Executors(world)), _) => world.executors,
            _ => 0,
        };
        let all_exist = fault.at.iter().all(|number| u32::from(*number) < count);
        found.unless(all_exist, &at("at"), &format!("are counted from 0, and there are {count}"));
    }

    fn check_expectations(&self, found: &mut Found) {
        for (index, expected) in self.expectations.iter().enumerate() {
            let at = |key: &str| format!("expect.{index}.{key}");
            let has_range = expected.min.is_some() || expected.max.is_some();
            found.unless(has_range, &at("min"), "say at least one of min and max");
            let has_ratio = expected.floor.is_none() || expected.against.is_some();
            found.unless(has_ratio, &at("floor"), "is of a ratio: say against what");
            for phase in [&expected.phase, &expected.against].into_iter().flatten() {
                let text = format!("there is no phase {phase:?}");
                found.unless(self.has_phase(phase), &at("phase"), &text);
            }
            found.unless(
                self.has_group(&expected.of),
                &at("of"),
                &format!("nobody is called {:?}", expected.of),
            );
            found.unless(
                self.has_figure(expected.what),
                &at("what"),
                &format!("{} is no figure of such a scenario", expected.what),
            );
            let needs_fault = matches!(expected.what, What::RecoveryS | What::WindowsLeastS);
            found.unless(
                !needs_fault || !self.faults.is_empty(),
                &at("what"),
                &format!("without a [[fault]] there is no {}", expected.what),
            );
        }
    }

    /// Checks that an expectation refers to a phase with judged time.
    fn check_judged(&self, found: &mut Found, key: &str) {
        let judged = self.expectations.iter().filter(|one| one.what.is_of_judged_time());
        let phases: BTreeSet<Option<&str>> = judged
            .flat_map(|one| {
                let against = one.against.as_deref().map(Some);
                [Some(one.phase.as_deref()), against].into_iter().flatten()
            })
            .collect();
        for phase in phases {
            let known = phase.is_none_or(|name| self.has_phase(name));
            if known && self.judged_s(phase) <= 0.0 {
                let of = phase.map_or("it".to_owned(), |name| format!("{name:?}"));
                let s = self.settle_s;
                let text = format!(
                    "is {s}, and {of} lasts no longer: nothing of what is expected there is judged"
                );
                found.says(key, &text);
            }
        }
    }

    fn has_phase(&self, name: &str) -> bool {
        self.phases.iter().any(|phase| phase.name == name)
    }

    fn has_group(&self, of: &str) -> bool {
        match self.world() {
            Some(World::Gateway(_)) => {
                let by_name = |class: &Class| class.name == of;
                let by_priority = |class: &Class| of == format!("priority:{}", class.priority);
                let by_tenant = |class: &Class| {
                    class.tenant.as_ref().is_some_and(|name| of == format!("tenant:{name}"))
                };
                let known =
                    |class: &Class| by_name(class) || by_priority(class) || by_tenant(class);
                ["all", "healthy"].contains(&of) || self.classes.iter().any(known)
            }
            Some(World::Pipeline(_)) => of == "all",
            Some(World::Executors(world)) => {
                world.placements.iter().any(|name| name.to_string() == of)
            }
            None => true,
        }
    }

    fn has_figure(&self, what: What) -> bool {
        use What::*;
        match self.world() {
            Some(World::Gateway(_)) => matches!(
                what,
                GoodputOfCapacity
                    | GoodputOfOffered
                    | RefusedShare
                    | FailedShare
                    | LatencyMeanMs
                    | LatencyP50Ms
                    | LatencyP99Ms
                    | Inversions
                    | RecoveryS
                    | ScheduleErrorP99Ms
            ),
            Some(World::Pipeline(_)) => matches!(
                what,
                StoredOfOffered
                    | StoredOfCapacity
                    | StoredOfPossible
                    | Lost
                    | Twice
                    | LagP99Ms
                    | HeldOfBudget
                    | WindowsLeastS
                    | RecoveryS
            ),
            Some(World::Executors(_)) => matches!(
                what,
                GoodputOfOffered
                    | WaitMeanMs
                    | WaitP99Ms
                    | WastedPerTask
                    | MessagesPerTask
                    | Used
                    | Lost
                    | Twice
            ),
            None => true,
        }
    }
}

fn check_service(found: &mut Found, at: &str, service: Service) {
    const MS_MAX: f64 = 60_000.0;
    match service {
        Service::Fixed { ms } | Service::Exponential { ms } => found.within(at, ms, 0.001, MS_MAX),
        Service::Bimodal { ms, slow_ms, slow_share } => {
            found.within(at, ms, 0.001, MS_MAX);
            found.within(at, slow_ms, 0.001, MS_MAX);
            found.within(at, slow_share, 0.0, 1.0);
        }
        Service::Kv {
            prompt_tokens,
            output_tokens,
            prefill_tokens_per_s,
            decode_ms_per_token,
            block_tokens,
        } => {
            found.within(at, prompt_tokens, 1.0, 1e6);
            found.within(at, output_tokens, 1.0, 1e6);
            found.within(at, prefill_tokens_per_s, 1.0, 1e9);
            found.within(at, decode_ms_per_token, 0.001, 10_000.0);
            found.within(at, block_tokens, 1.0, 4096.0);
        }
    }
}

// === impl Found ===

impl Found {
    fn says(&mut self, at: &str, what: &str) {
        self.0.push(FieldError { at: at.to_owned(), what: what.to_owned() });
    }

    fn unless(&mut self, holds: bool, at: &str, what: &str) {
        if !holds {
            self.says(at, what);
        }
    }

    fn within(&mut self, at: &str, value: f64, min: f64, max: f64) {
        let holds = (min..=max).contains(&value);
        self.unless(holds, at, &format!("is {value}, allowed are {min} … {max}"));
    }
}

use super::{Lanes, MessagePriority, Reason};
use serde::{Deserialize, Serialize};

/// In-flight limits by priority.
///
/// `0` for a priority means that only the global limit applies. Critical has no limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PriorityLimits {
    /// Limit of High, 0 … 65,535.
    pub high: u16,
    /// Limit of Normal, 0 … 65,535.
    pub normal: u16,
    /// Limit of Low, 0 … 65,535.
    pub low: u16,
    /// Limit of all together, 0 … 65,535. At 0 only Critical is admitted.
    pub global_limit: u16,
    /// Maximum of Critical messages that count toward the global limit. Without it, enough Critical work in flight
    /// would keep everything else out.
    pub critical_reserve: u16,
}

/// Role of a node, each with suitable limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// In front of clients and across datacentres.
    Gate,
    /// Between gates and workers. Has the highest limits, because every worker reports to it.
    Manager,
    /// Executes tasks; keeps its capacity for that.
    Worker,
}

/// Policy for a priority at its own limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Each priority is limited to its own limit.
    #[default]
    Strict,
    /// At its own limit Normal may use idle capacity of High while neither High nor Critical is under pressure,
    /// and High is refused only at the global limit. Low never borrows.
    Borrow,
}

/// Divisor of the global limit: a lower priority leaves 1/20 of it to each higher one. Without this headroom, at a
/// limit shared by all, early arrivals would win over important ones. Limits below 20 have no headroom.
const ROOM_PART: u32 = 20;

/// Share of its limit from which High counts as under pressure, in percent.
pub(super) const HIGH_ALERT_PERCENT: u32 = 90;

/// Limits and policy, prepared for the decision. Pure: the same lanes give the same answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Effective limit by priority: `0` is resolved to the global limit.
    own: [u32; 4],
    global: u32,
    reserve: u32,
    /// In-flight count from which High is under pressure, and no other priority borrows from it.
    high_pressure: u32,
    /// Headroom of the global limit for each higher priority that is below its own limit.
    room: u32,
    sharing: Sharing,
}

// === impl PriorityLimits ===

impl PriorityLimits {
    /// Creates limits with a Critical reserve of a tenth of the global limit.
    #[must_use]
    pub const fn new(global_limit: u16, high: u16, normal: u16, low: u16) -> Self {
        Self { high, normal, low, global_limit, critical_reserve: global_limit / 10 }
    }

    /// Effective limit of a priority: `0` becomes the global limit, and none exceeds it.
    ///
    /// For Critical, which has no limit, this is its reserve.
    #[must_use]
    pub const fn of(&self, priority: MessagePriority) -> u16 {
        let own = match priority {
            MessagePriority::Critical => return self.critical_reserve,
            MessagePriority::High => self.high,
            MessagePriority::Normal => self.normal,
            MessagePriority::Low => self.low,
        };
        if own == 0 || own > self.global_limit { self.global_limit } else { own }
    }

    /// Limits for one client that may use at most `share` (0 … 1) of each limit, rounded up so that a positive
    /// limit never becomes 0. A priority without a limit of its own stays without one.
    ///
    /// The Critical reserve is 0, because no limit refuses Critical.
    ///
    /// ```
    /// use tidegate_core::admission::PriorityLimits;
    ///
    /// let part = PriorityLimits::new(1000, 500, 0, 1).part(0.25);
    /// assert_eq!((part.global_limit, part.high, part.normal, part.low), (250, 125, 0, 1));
    /// ```
    #[must_use]
    pub fn part(&self, share: f64) -> Self {
        // A binary fraction slightly above the intended decimal one must not round up.
        const NOISE: f64 = 1e-6;
        let part = |limit: u16| match limit {
            0 => 0,
            limit => ((f64::from(limit) * share - NOISE).ceil() as u16).clamp(1, limit),
        };
        Self {
            high: part(self.high),
            normal: part(self.normal),
            low: part(self.low),
            global_limit: part(self.global_limit),
            critical_reserve: 0,
        }
    }
}

impl Default for PriorityLimits {
    fn default() -> Self {
        Self::new(1000, 500, 300, 200)
    }
}

// === impl Role ===

impl Role {
    /// Recommended limits of this role.
    #[must_use]
    pub const fn limits(self) -> PriorityLimits {
        match self {
            Self::Gate => PriorityLimits::new(2000, 1000, 600, 400),
            Self::Manager => PriorityLimits::new(5000, 2500, 1500, 1000),
            Self::Worker => PriorityLimits::new(500, 250, 150, 100),
        }
    }

    /// Recommended queue size per destination.
    #[must_use]
    pub const fn outgoing_queue_size(self) -> usize {
        match self {
            Self::Gate => 1000,
            Self::Manager => 500,
            Self::Worker => 250,
        }
    }
}

// === impl Rules ===

impl Rules {
    pub(super) fn new(limits: PriorityLimits, sharing: Sharing) -> Self {
        let high = u32::from(limits.of(MessagePriority::High));
        Self {
            own: MessagePriority::ALL.map(|priority| u32::from(limits.of(priority))),
            global: u32::from(limits.global_limit),
            reserve: u32::from(limits.critical_reserve),
            // Rounded up, so that a limit of 1 is never under pressure while nothing is in flight.
            room: u32::from(limits.global_limit) / ROOM_PART,
            high_pressure: (high * HIGH_ALERT_PERCENT).div_ceil(100),
            sharing,
        }
    }

    /// Decides if one more message of `priority` is admitted to what is in flight.
    ///
    /// The order of the checks is part of the contract: Critical bypasses, then the global limit, then the
    /// priority's own.
    #[inline]
    pub(super) fn admit(&self, lanes: Lanes, priority: MessagePriority) -> Result<(), Reason> {
        if priority == MessagePriority::Critical {
            return Ok(());
        }
        if self.counted(lanes) + self.room_above(lanes, priority) >= self.global {
            return Err(Reason::GlobalLimit);
        }
        let within_own = lanes.of(priority) < self.own[priority.index()];
        if within_own || (self.sharing == Sharing::Borrow && self.may_borrow(lanes, priority)) {
            Ok(())
        } else {
            Err(Reason::PriorityLimit)
        }
    }

    /// In-flight count toward the global limit: everything, with Critical capped at its reserve.
    #[inline]
    pub(super) fn counted(&self, lanes: Lanes) -> u32 {
        let critical = lanes.of(MessagePriority::Critical).min(self.reserve);
        critical
            + lanes.of(MessagePriority::High)
            + lanes.of(MessagePriority::Normal)
            + lanes.of(MessagePriority::Low)
    }

    /// Headroom this priority leaves of the global limit: at most the unused limits of higher priorities.
    #[inline]
    fn room_above(&self, lanes: Lanes, priority: MessagePriority) -> u32 {
        let unused = |above: MessagePriority| {
            let most = match (self.sharing, above) {
                (Sharing::Borrow, MessagePriority::High) => self.global,
                _ => self.own[above.index()],
            };
            most.saturating_sub(lanes.of(above)).min(self.room)
        };
        match priority {
            MessagePriority::Critical | MessagePriority::High => 0,
            MessagePriority::Normal => unused(MessagePriority::High),
            MessagePriority::Low => unused(MessagePriority::High) + unused(MessagePriority::Normal),
        }
    }

    #[inline]
    fn may_borrow(&self, lanes: Lanes, priority: MessagePriority) -> bool {
        match priority {
            MessagePriority::Critical | MessagePriority::High => true,
            MessagePriority::Normal => {
                let normal_own = self.own[MessagePriority::Normal.index()];
                let borrowed = lanes.of(MessagePriority::Normal).saturating_sub(normal_own);
                lanes.of(MessagePriority::High) + borrowed < self.high_pressure
                    && lanes.of(MessagePriority::Critical) < self.reserve.max(1)
            }
            MessagePriority::Low => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessagePriority::{Critical, High, Low, Normal};

    fn lanes(critical: u16, high: u16, normal: u16, low: u16) -> Lanes {
        Lanes::from_counts([critical, high, normal, low])
    }

    #[test]
    fn presets_are_the_recommended_table() {
        let table = [
            (Role::Gate, 2000, 1000, 600, 400),
            (Role::Manager, 5000, 2500, 1500, 1000),
            (Role::Worker, 500, 250, 150, 100),
        ];
        for (role, global, high, normal, low) in table {
            let limits = role.limits();
            assert_eq!(
                (limits.global_limit, limits.high, limits.normal, limits.low),
                (global, high, normal, low)
            );
            assert_eq!(limits.critical_reserve, global / 10);
        }
    }

    #[test]
    fn zero_leaves_a_priority_to_the_global_limit() {
        let rules = Rules::new(
            PriorityLimits { low: 0, ..PriorityLimits::new(10, 5, 3, 0) },
            Sharing::Strict,
        );
        assert_eq!(rules.admit(lanes(0, 0, 0, 9), Low), Ok(()));
        assert_eq!(rules.admit(lanes(0, 0, 0, 10), Low), Err(Reason::GlobalLimit));
    }

    #[test]
    fn critical_counts_toward_the_global_limit_up_to_its_reserve_only() {
        let rules = Rules::new(PriorityLimits::new(100, 50, 30, 20), Sharing::Strict);
        assert_eq!(rules.counted(lanes(7, 1, 1, 1)), 10);
        assert_eq!(rules.counted(lanes(u16::MAX, 1, 1, 1)), 13);
        assert_eq!(
            rules.admit(lanes(u16::MAX, 0, 0, 0), High),
            Ok(()),
            "Critical alone never blocks the rest"
        );
    }

    #[test]
    fn the_global_limit_is_checked_before_the_priority_s_own() {
        let rules = Rules::new(PriorityLimits::new(10, 5, 3, 2), Sharing::Strict);
        assert_eq!(rules.admit(lanes(0, 5, 3, 2), Low), Err(Reason::GlobalLimit));
        assert_eq!(rules.admit(lanes(0, 0, 0, 2), Low), Err(Reason::PriorityLimit));
    }

    #[test]
    fn at_the_global_limit_the_lower_one_is_refused_first() {
        // Critical work takes a tenth: there is not room for all that each may have.
        let rules = Rules::new(PriorityLimits::new(1000, 500, 300, 200), Sharing::Strict);
        let (before, full) = (lanes(100, 400, 300, 100), lanes(100, 450, 300, 100));
        assert_eq!(rules.admit(before, Low), Ok(()));
        assert_eq!(rules.admit(full, Low), Err(Reason::GlobalLimit), "50 are left for High");
        assert_eq!(rules.admit(full, High), Ok(()));
        let without_high = lanes(100, 500, 200, 149);
        assert_eq!(rules.admit(without_high, Low), Ok(()), "High can't use more");
        assert_eq!(rules.admit(lanes(100, 500, 200, 150), Low), Err(Reason::GlobalLimit));
        assert_eq!(rules.admit(lanes(100, 500, 200, 150), Normal), Ok(()));
    }

    #[test]
    fn whoever_is_let_in_leaves_room_for_all_above() {
        for sharing in [Sharing::Strict, Sharing::Borrow] {
            let rules = Rules::new(PriorityLimits::new(60, 0, 30, 0), sharing);
            for high in 0..=60 {
                for normal in 0..=60 {
                    let now = lanes(3, high, normal, 10);
                    let refused = |priority| rules.admit(now, priority) == Err(Reason::GlobalLimit);
                    assert!(!refused(High) || refused(Normal), "{now:?}");
                    assert!(!refused(Normal) || refused(Low), "{now:?}");
                }
            }
        }
    }

    #[test]
    fn without_critical_the_recommended_limits_are_used_to_the_last_place() {
        for role in [Role::Gate, Role::Manager, Role::Worker] {
            let limits = role.limits();
            let rules = Rules::new(limits, Sharing::Strict);
            let (high, normal, low) = (limits.high, limits.normal, limits.low);
            assert_eq!(rules.admit(lanes(0, high, normal, low - 1), Low), Ok(()));
            assert_eq!(rules.admit(lanes(0, 0, 0, low - 1), Low), Ok(()));
            assert_eq!(rules.admit(lanes(0, 0, normal - 1, low), Normal), Ok(()));
        }
    }

    #[test]
    fn strict_gives_nobody_more_than_its_own() {
        let rules = Rules::new(PriorityLimits::new(1000, 500, 300, 200), Sharing::Strict);
        assert_eq!(rules.admit(lanes(0, 500, 0, 0), High), Err(Reason::PriorityLimit));
        assert_eq!(rules.admit(lanes(0, 0, 300, 0), Normal), Err(Reason::PriorityLimit));
        assert_eq!(rules.admit(lanes(0, 0, 0, 200), Low), Err(Reason::PriorityLimit));
    }

    #[test]
    fn borrow_lets_normal_use_idle_places_of_high_until_high_is_under_pressure() {
        let rules = Rules::new(PriorityLimits::new(1000, 500, 300, 200), Sharing::Borrow);
        assert_eq!(rules.admit(lanes(0, 0, 300, 0), Normal), Ok(()));
        assert_eq!(
            rules.admit(lanes(0, 0, 749, 0), Normal),
            Ok(()),
            "449 borrowed, below 90 % of 500"
        );
        assert_eq!(rules.admit(lanes(0, 0, 750, 0), Normal), Err(Reason::PriorityLimit));
        assert_eq!(
            rules.admit(lanes(0, 450, 300, 0), Normal),
            Err(Reason::PriorityLimit),
            "High is under pressure"
        );
        assert_eq!(
            rules.admit(lanes(100, 0, 300, 0), Normal),
            Err(Reason::PriorityLimit),
            "Critical is under pressure"
        );
        assert_eq!(rules.admit(lanes(99, 0, 300, 0), Normal), Ok(()));
    }

    #[test]
    fn borrow_refuses_high_only_at_the_global_limit_and_never_lends_to_low() {
        let rules = Rules::new(PriorityLimits::new(1000, 500, 300, 200), Sharing::Borrow);
        assert_eq!(rules.admit(lanes(0, 999, 0, 0), High), Ok(()));
        assert_eq!(rules.admit(lanes(0, 1000, 0, 0), High), Err(Reason::GlobalLimit));
        assert_eq!(rules.admit(lanes(0, 0, 0, 200), Low), Err(Reason::PriorityLimit));
    }

    #[test]
    fn a_part_is_rounded_up_and_never_nothing_nor_more_than_the_whole() {
        let limits = PriorityLimits::new(100, 50, 3, 0);
        let of = |share| {
            let part = limits.part(share);
            [part.global_limit, part.high, part.normal, part.low]
        };
        assert_eq!(of(0.5), [50, 25, 2, 0]);
        assert_eq!(of(1.0), [100, 50, 3, 0]);
        assert_eq!(of(0.0), [1, 1, 1, 0]);
        // 0.07 · 100 is 7.000000000000001 in binary.
        assert_eq!(of(0.07), [7, 4, 1, 0]);
        // What nobody checked is no reason to panic or to give more.
        assert_eq!([of(f64::NAN), of(-1.0), of(9.0)], [of(0.0), of(0.0), of(1.0)]);
        assert_eq!(limits.part(0.5).critical_reserve, 0);
        assert_eq!(PriorityLimits::new(0, 0, 0, 0).part(0.5).global_limit, 0);
        for limit in 1..=u16::MAX {
            let part = PriorityLimits::new(limit, 0, 0, 0).part(0.5).global_limit;
            assert_eq!(part, limit.div_ceil(2));
        }
    }

    #[test]
    fn critical_is_admitted_whatever_the_lanes_hold() {
        for sharing in [Sharing::Strict, Sharing::Borrow] {
            let rules = Rules::new(PriorityLimits::new(0, 0, 0, 0), sharing);
            assert_eq!(
                rules.admit(lanes(u16::MAX, u16::MAX, u16::MAX, u16::MAX), Critical),
                Ok(())
            );
        }
    }
}

use tidegate_core::admission::MessagePriority::{self, Critical, High, Low, Normal};
use tidegate_core::admission::{InFlightTracker, Permit, Refusal, Sharing};

/// The permits that are held, and a count of them that is not the tracker's own: what the tracker promises
/// is checked against it at every step.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    tracker: &'a InFlightTracker,
    sharing: Sharing,
    held: Vec<Option<Permit<&'a InFlightTracker>>>,
    free: Vec<u32>,
    in_flight: [u32; 4],
    in_flight_max: [u32; 4],
}

// === impl Places ===

impl<'a> Places<'a> {
    pub(crate) fn new(tracker: &'a InFlightTracker, sharing: Sharing) -> Self {
        Self {
            tracker,
            sharing,
            held: Vec::new(),
            free: Vec::new(),
            in_flight: [0; 4],
            in_flight_max: [0; 4],
        }
    }

    /// Asks the tracker, and holds the permit if there is one.
    pub(crate) fn take(&mut self, priority: MessagePriority) -> Result<u32, Refusal> {
        let permit = match self.tracker.try_admit(priority) {
            Ok(permit) => permit,
            Err(refusal) => {
                assert!(priority != Critical, "Critical was refused: {refusal}");
                return Err(refusal);
            }
        };
        let lane = priority.index();
        self.in_flight[lane] += 1;
        self.in_flight_max[lane] = self.in_flight_max[lane].max(self.in_flight[lane]);
        self.check(priority);
        Ok(self.keep(permit))
    }

    /// The work is done.
    pub(crate) fn end(&mut self, place: u32) -> MessagePriority {
        let permit = self.held[place as usize].take().expect("a place ends once");
        let priority = permit.priority();
        permit.success();
        self.in_flight[priority.index()] -= 1;
        self.free.push(place);
        self.check_count(priority);
        priority
    }

    pub(crate) fn in_flight_max(&self, priority: MessagePriority) -> u32 {
        self.in_flight_max[priority.index()]
    }

    /// Every permit has ended, and the tracker knows it.
    pub(crate) fn check_all_ended(&self) {
        let stats = self.tracker.stats();
        assert_eq!(self.in_flight, [0; 4], "a permit has not ended");
        assert_eq!(stats.total_in_flight, 0, "the tracker holds a place that nobody has");
        for priority in MessagePriority::ALL {
            let ended = stats.finished[priority.index()].total();
            assert_eq!(stats.acquired(priority), ended, "{priority}: admitted and ended differ");
        }
    }

    fn keep(&mut self, permit: Permit<&'a InFlightTracker>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.held[place as usize] = Some(permit);
            return place;
        }
        self.held.push(Some(permit));
        u32::try_from(self.held.len() - 1).expect("no scenario has four thousand million in flight")
    }

    /// The limits, after one of this priority was admitted.
    fn check(&self, priority: MessagePriority) {
        self.check_count(priority);
        if priority == Critical {
            return;
        }
        let limits = self.tracker.limits();
        let [critical, high, normal, low] = self.in_flight;
        let counted = critical.min(u32::from(limits.critical_reserve)) + high + normal + low;
        assert!(counted <= u32::from(limits.global_limit), "{counted} beyond the global limit");
        let own = |priority| u32::from(limits.of(priority));
        let most = match (self.sharing, priority) {
            (Sharing::Borrow, High) => u32::from(limits.global_limit),
            (Sharing::Borrow, Normal) => own(Normal) + own(High),
            (Sharing::Strict, _) | (Sharing::Borrow, Critical | Low) => own(priority),
        };
        let count = self.in_flight[priority.index()];
        assert!(count <= most, "{count} of {priority} in flight, at most {most} may be");
    }

    fn check_count(&self, priority: MessagePriority) {
        let count = self.in_flight[priority.index()];
        // The lane of Critical stops at 65,535.
        assert_eq!(self.tracker.lanes().of(priority), count.min(65_535), "{priority}");
    }
}

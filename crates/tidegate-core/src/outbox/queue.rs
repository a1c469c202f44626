use super::class_rings::{ClassRings, Ring};
use super::gauge::Gauge;
use super::{Put, QueueConfig, QueueConfigError, QueueState, QueueStats, Refused, RefusedReason};
use crate::admission::MessageClass;
use std::collections::VecDeque;

/// Queue of messages for one destination, in order of arrival.
///
/// Never holds more than `primary_size + overflow_size` messages and `control_size` control messages, and never
/// loses one: each is taken out or returned to a caller.
///
/// Allocates only while its buffers grow. Dispatch, data and telemetry have one buffer each, and each can grow to
/// the bound: a queue filled by one class after the other keeps capacity for three times the bound.
///
/// ```
/// use tidegate_core::admission::MessageClass::{Control, Data};
/// use tidegate_core::outbox::{QueueConfig, RobustQueue};
///
/// let mut queue = RobustQueue::new(QueueConfig::default())?;
/// let put = queue.put(Data, "progress").expect("it is empty");
/// assert!(put.delay.is_zero(), "and asks for nothing");
/// let _ = queue.put(Control, "cancel").expect("it has a lane of its own");
///
/// assert_eq!(queue.get(), Some("cancel"), "and is served first");
/// let failed = queue.get().expect("one is left");
/// // The destination did not answer: back to the head of the queue.
/// let _ = queue.put_back(Data, failed).expect("there is room");
/// assert_eq!(queue.get(), Some("progress"));
/// # Ok::<(), tidegate_core::outbox::QueueConfigError>(())
/// ```
#[derive(Debug)]
pub struct RobustQueue<T> {
    config: QueueConfig,
    control: VecDeque<T>,
    rings: ClassRings<T>,
    gauge: Gauge,
    totals: Totals,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    enqueued: u64,
    put_back: u64,
    data_dropped: u64,
    telemetry_dropped: u64,
    refused: u64,
}

/// Origin of a control message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    New,
    PutBack,
}

// === impl RobustQueue ===

impl<T> RobustQueue<T> {
    /// Creates an empty queue.
    ///
    /// # Errors
    ///
    /// If the configuration is not [valid](QueueConfig::validate).
    pub fn new(config: QueueConfig) -> Result<Self, QueueConfigError> {
        config.validate()?;
        Ok(Self {
            control: VecDeque::new(),
            rings: ClassRings::new(config.bound()),
            gauge: Gauge::new(&config),
            totals: Totals::default(),
            config,
        })
    }

    /// Appends a message.
    ///
    /// At the bound, data and telemetry replace an older message, which is returned in [`Put::dropped`].
    ///
    /// # Errors
    ///
    /// Returns the message if its class has no room.
    #[inline]
    pub fn put(&mut self, class: MessageClass, value: T) -> Result<Put<T>, Refused<T>> {
        let Some(ring) = ring_of(class) else { return self.put_control(value, Origin::New) };
        let mut dropped = None;
        if self.rings.is_full() {
            match self.make_room(class) {
                Some(oldest) => dropped = Some(oldest),
                None => {
                    let reason = match class {
                        MessageClass::Dispatch => RefusedReason::QueueFull,
                        _ => RefusedReason::NothingToDrop,
                    };
                    return Err(self.refuse(class, value, reason));
                }
            }
        }
        self.rings.push_back(ring, value);
        self.totals.enqueued += 1;
        Ok(self.put_done(dropped))
    }

    /// Puts a message that could not be sent back at the head of the queue. Of several, the last one taken goes
    /// back first, so that their order stays.
    ///
    /// If newer messages have filled the queue meanwhile, this message is the oldest of its class and is subject
    /// to the same policy: dispatch, which was accepted before, replaces telemetry and data; data replaces
    /// telemetry.
    ///
    /// # Errors
    ///
    /// Returns the message if its class has no room.
    pub fn put_back(&mut self, class: MessageClass, value: T) -> Result<Put<T>, Refused<T>> {
        let Some(ring) = ring_of(class) else { return self.put_control(value, Origin::PutBack) };
        let mut dropped = None;
        if self.rings.is_full() {
            match self.make_room_for_old(class) {
                Some(oldest) => dropped = Some(oldest),
                None => return Err(self.refuse(class, value, RefusedReason::NewerFilledQueue)),
            }
        }
        self.rings.push_front(ring, value);
        self.totals.put_back += 1;
        Ok(self.put_done(dropped))
    }

    /// Removes the next message: control first, then the oldest.
    #[inline]
    pub fn get(&mut self) -> Option<T> {
        if let Some(control) = self.control.pop_front() {
            return Some(control);
        }
        let value = self.rings.pop()?;
        self.gauge.observe(self.rings.length());
        Some(value)
    }

    /// Removes at most `max` messages, appends them to `batch`, and returns their number.
    pub fn get_batch(&mut self, max: usize, batch: &mut Vec<T>) -> usize {
        let before = batch.len();
        batch.extend(std::iter::from_fn(|| self.get()).take(max));
        batch.len() - before
    }

    /// Removes messages for which `keep` is false: telemetry first, then data, dispatch and control, each from the
    /// oldest on. They count as taken, not as dropped.
    ///
    /// ```
    /// use tidegate_core::admission::MessageClass;
    /// use tidegate_core::outbox::{QueueConfig, RobustQueue};
    ///
    /// let mut queue = RobustQueue::new(QueueConfig::default())?;
    /// for number in 0..5 {
    ///     queue.put(MessageClass::Data, number).expect("it is empty");
    /// }
    /// queue.retain(|number| number % 2 == 0);
    /// assert_eq!((queue.len(), queue.get(), queue.get()), (3, Some(0), Some(2)));
    /// # Ok::<(), tidegate_core::outbox::QueueConfigError>(())
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.rings.retain(&mut keep);
        self.control.retain(&mut keep);
        self.gauge.observe(self.rings.length());
    }

    /// Queued messages, including control.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.rings.length() + self.control.len()
    }

    /// Queued control messages.
    #[must_use]
    #[inline]
    pub fn control_len(&self) -> usize {
        self.control.len()
    }

    /// True if nothing is queued.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fill of the queue.
    #[must_use]
    #[inline]
    pub fn state(&self) -> QueueState {
        self.gauge.state()
    }

    /// Configuration of the queue.
    #[must_use]
    pub fn config(&self) -> &QueueConfig {
        &self.config
    }

    /// Snapshot of its content and totals.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let length = self.rings.length();
        let primary_size = length.min(self.config.primary_size);
        let state = self.state();
        let Totals { enqueued, put_back, data_dropped, telemetry_dropped, refused } = self.totals;
        QueueStats {
            primary_size,
            overflow_size: length - primary_size,
            control_size: self.control.len(),
            state,
            backpressure_level: state.level(),
            total_enqueued: enqueued,
            total_put_back: put_back,
            total_dropped: data_dropped + telemetry_dropped,
            data_dropped,
            telemetry_dropped,
            total_refused: refused,
        }
    }

    #[inline]
    fn put_done(&mut self, dropped: Option<T>) -> Put<T> {
        self.gauge.observe(self.rings.length());
        let state = self.state();
        Put { state, level: state.level(), delay: self.config.delays.of(state), dropped }
    }

    fn put_control(&mut self, value: T, origin: Origin) -> Result<Put<T>, Refused<T>> {
        if self.control.len() >= self.config.control_size {
            return Err(self.refuse(MessageClass::Control, value, RefusedReason::ControlLaneFull));
        }
        match origin {
            Origin::New => {
                self.control.push_back(value);
                self.totals.enqueued += 1;
            }
            Origin::PutBack => {
                self.control.push_front(value);
                self.totals.put_back += 1;
            }
        }
        Ok(self.put_done(None))
    }

    /// Drops the oldest message that a new one of this class may replace.
    fn make_room(&mut self, class: MessageClass) -> Option<T> {
        match class {
            MessageClass::Control | MessageClass::Dispatch => None,
            MessageClass::Data => self.drop_telemetry().or_else(|| self.drop_data()),
            MessageClass::Telemetry => self.drop_telemetry(),
        }
    }

    /// The same for a message older than all others: it can't replace its own class.
    fn make_room_for_old(&mut self, class: MessageClass) -> Option<T> {
        match class {
            MessageClass::Control | MessageClass::Telemetry => None,
            MessageClass::Dispatch => self.drop_telemetry().or_else(|| self.drop_data()),
            MessageClass::Data => self.drop_telemetry(),
        }
    }

    fn drop_telemetry(&mut self) -> Option<T> {
        let oldest = self.rings.pop_from(Ring::Telemetry)?;
        self.totals.telemetry_dropped += 1;
        Some(oldest)
    }

    fn drop_data(&mut self) -> Option<T> {
        let oldest = self.rings.pop_from(Ring::Data)?;
        self.totals.data_dropped += 1;
        Some(oldest)
    }

    #[cold]
    fn refuse(&mut self, class: MessageClass, value: T, reason: RefusedReason) -> Refused<T> {
        self.totals.refused += 1;
        let state = self.state();
        Refused { value, class, reason, state, delay: self.config.delays.of(state) }
    }
}

/// Ring of a class; control has a lane of its own.
#[inline]
fn ring_of(class: MessageClass) -> Option<Ring> {
    match class {
        MessageClass::Control => None,
        MessageClass::Dispatch => Some(Ring::Dispatch),
        MessageClass::Data => Some(Ring::Data),
        MessageClass::Telemetry => Some(Ring::Telemetry),
    }
}

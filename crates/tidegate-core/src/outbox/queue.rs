use super::lines::{Line, Lines};
use super::state::Gauge;
use super::{Put, QueueConfig, QueueConfigError, QueueState, QueueStats, Refused, RefusedReason};
use crate::admission::MessageClass;
use std::collections::VecDeque;

/// The messages for one destination, in the order in which they came.
///
/// It never holds more than `primary_size + overflow_size` messages and `control_size` control messages, and it
/// never loses one: each was taken, or given back to somebody who can say what becomes of it.
///
/// It allocates as it fills, and nothing once its buffers have grown. Dispatch, data and telemetry have a
/// buffer each, and each can grow to the bound: a queue that was filled by one after the other keeps room for
/// three times that.
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
/// // The destination did not answer: back to the head of the line.
/// let _ = queue.put_back(Data, failed).expect("there is room");
/// assert_eq!(queue.get(), Some("progress"));
/// # Ok::<(), tidegate_core::outbox::QueueConfigError>(())
/// ```
#[derive(Debug)]
pub struct RobustQueue<T> {
    config: QueueConfig,
    control: VecDeque<T>,
    lines: Lines<T>,
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

/// Whether a message is new, or was in the queue before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coming {
    New,
    Back,
}

// === impl RobustQueue ===

impl<T> RobustQueue<T> {
    /// An empty queue.
    ///
    /// # Errors
    ///
    /// When the configuration is not [valid](QueueConfig::validate).
    pub fn new(config: QueueConfig) -> Result<Self, QueueConfigError> {
        config.validate()?;
        Ok(Self {
            control: VecDeque::new(),
            lines: Lines::new(config.bound()),
            gauge: Gauge::new(&config),
            totals: Totals::default(),
            config,
        })
    }

    /// Adds a message behind all others, or tells why not.
    ///
    /// Data and telemetry make room for themselves at the bound: the message that had to go for it comes back in
    /// [`Put::dropped`].
    ///
    /// # Errors
    ///
    /// Hands the message back when there is no room that its class may take.
    #[inline]
    pub fn put(&mut self, class: MessageClass, value: T) -> Result<Put<T>, Refused<T>> {
        let Some(line) = line_of(class) else { return self.put_control(value, Coming::New) };
        let mut dropped = None;
        if self.lines.is_full() {
            match self.make_room(class) {
                Some(victim) => dropped = Some(victim),
                None => {
                    let reason = match class {
                        MessageClass::Dispatch => RefusedReason::QueueFull,
                        _ => RefusedReason::NothingToDrop,
                    };
                    return Err(self.refuse(class, value, reason));
                }
            }
        }
        self.lines.push_back(line, value);
        self.totals.enqueued += 1;
        Ok(self.put_done(dropped))
    }

    /// Puts a message that was taken and could not be sent at the head of the line. Of several, the one that was
    /// taken last goes back first, so that their order stays.
    ///
    /// If newer messages have meanwhile filled the queue, it is the oldest of its class and meets the same policy:
    /// dispatch, which was accepted, makes room for itself among telemetry and data; data among telemetry.
    ///
    /// # Errors
    ///
    /// Hands the message back when there is no room that its class may take.
    pub fn put_back(&mut self, class: MessageClass, value: T) -> Result<Put<T>, Refused<T>> {
        let Some(line) = line_of(class) else { return self.put_control(value, Coming::Back) };
        let mut dropped = None;
        if self.lines.is_full() {
            match self.make_room_for_old(class) {
                Some(victim) => dropped = Some(victim),
                None => return Err(self.refuse(class, value, RefusedReason::NewerFilledQueue)),
            }
        }
        self.lines.push_front(line, value);
        self.totals.put_back += 1;
        Ok(self.put_done(dropped))
    }

    /// Takes the next message: control first, then the oldest.
    #[inline]
    pub fn get(&mut self) -> Option<T> {
        if let Some(control) = self.control.pop_front() {
            return Some(control);
        }
        let value = self.lines.pop()?;
        self.gauge.observe(self.lines.length());
        Some(value)
    }

    /// Takes the next messages, `max` at the most, and appends them to `batch`. Tells how many.
    pub fn get_batch(&mut self, max: usize, batch: &mut Vec<T>) -> usize {
        let before = batch.len();
        batch.extend(std::iter::from_fn(|| self.get()).take(max));
        batch.len() - before
    }

    /// Takes out what is no longer wanted: those of each class from the oldest on, telemetry first, then data,
    /// dispatch and control. They count as taken, not as dropped.
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
        self.lines.retain(&mut keep);
        self.control.retain(&mut keep);
        self.gauge.observe(self.lines.length());
    }

    /// Messages that wait, control included.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.lines.length() + self.control.len()
    }

    /// Control messages that wait.
    #[must_use]
    #[inline]
    pub fn control_len(&self) -> usize {
        self.control.len()
    }

    /// Whether nothing waits.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How full it is.
    #[must_use]
    #[inline]
    pub fn state(&self) -> QueueState {
        self.gauge.state()
    }

    /// What it was made with.
    #[must_use]
    pub fn config(&self) -> &QueueConfig {
        &self.config
    }

    /// What it holds and what it has done.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let length = self.lines.length();
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
        self.gauge.observe(self.lines.length());
        let state = self.state();
        Put { state, level: state.level(), delay: self.config.delays.of(state), dropped }
    }

    fn put_control(&mut self, value: T, coming: Coming) -> Result<Put<T>, Refused<T>> {
        if self.control.len() >= self.config.control_size {
            return Err(self.refuse(MessageClass::Control, value, RefusedReason::ControlLaneFull));
        }
        match coming {
            Coming::New => {
                self.control.push_back(value);
                self.totals.enqueued += 1;
            }
            Coming::Back => {
                self.control.push_front(value);
                self.totals.put_back += 1;
            }
        }
        Ok(self.put_done(None))
    }

    /// Drops the oldest message that a new one of this class may push out.
    fn make_room(&mut self, class: MessageClass) -> Option<T> {
        match class {
            MessageClass::Control | MessageClass::Dispatch => None,
            MessageClass::Data => self.drop_telemetry().or_else(|| self.drop_data()),
            MessageClass::Telemetry => self.drop_telemetry(),
        }
    }

    /// The same for a message that is older than all others: it can't push out its own kind.
    fn make_room_for_old(&mut self, class: MessageClass) -> Option<T> {
        match class {
            MessageClass::Control | MessageClass::Telemetry => None,
            MessageClass::Dispatch => self.drop_telemetry().or_else(|| self.drop_data()),
            MessageClass::Data => self.drop_telemetry(),
        }
    }

    fn drop_telemetry(&mut self) -> Option<T> {
        let victim = self.lines.pop_from(Line::Telemetry)?;
        self.totals.telemetry_dropped += 1;
        Some(victim)
    }

    fn drop_data(&mut self) -> Option<T> {
        let victim = self.lines.pop_from(Line::Data)?;
        self.totals.data_dropped += 1;
        Some(victim)
    }

    #[cold]
    fn refuse(&mut self, class: MessageClass, value: T, reason: RefusedReason) -> Refused<T> {
        self.totals.refused += 1;
        let state = self.state();
        Refused { value, class, reason, state, delay: self.config.delays.of(state) }
    }
}

/// The part of the line that a class uses; control has a lane of its own.
#[inline]
fn line_of(class: MessageClass) -> Option<Line> {
    match class {
        MessageClass::Control => None,
        MessageClass::Dispatch => Some(Line::Dispatch),
        MessageClass::Data => Some(Line::Data),
        MessageClass::Telemetry => Some(Line::Telemetry),
    }
}

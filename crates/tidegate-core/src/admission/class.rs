use super::MessagePriority;
use serde::Serialize;

/// What a message is for. The class decides its priority and, at a full queue, what happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageClass {
    /// Keeps the system itself alive: probes, cancellation, health, the operator's view.
    Control,
    /// Starts work: submissions, commands, state sync.
    Dispatch,
    /// The work itself and its progress.
    Data,
    /// What is nice to know.
    Telemetry,
}

/// Every kind of message that some handler or frame carries.
///
/// An enum and not a string, so that a new kind cannot be added without a row in [`MessageKind::class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Is the process alive, is it ready.
    HealthProbe,
    /// A scrape of the metrics. Control, not Telemetry: an operator needs it most when all else is refused.
    MetricsScrape,
    /// A read of the typed snapshots.
    StatsRead,
    /// A read or a change of a busy threshold: it must get through when workers are busiest.
    ThresholdChange,
    /// A recording of what is decided. Control, because what is decided under overload is what is asked about.
    DecisionsRead,
    /// A read of sums of usage.
    UsageRead,
    /// A task that is handed in. It starts work; the client's own priority says how much it matters.
    TaskSubmit,
    /// A task that is to stop. It must get through when everything is full: it makes room.
    TaskCancel,
    /// A look at tasks. Data, because clients poll, and a herd of them must not crowd out the work itself; what an
    /// operator asks on a port of its own is the operator's view, and Control as that is.
    TaskRead,
    /// A client's request on its way to an upstream, before its own priority is known.
    ProxiedRequest,
    /// The first frame of a connection to the ingestion, in either direction.
    HelloFrame,
    /// Records of usage on their way in. Their sender may call them telemetry; it can't call them more.
    BatchFrame,
    /// Which batches are durable. Control, like the refusal: a sender that waits for it sends again.
    AckFrame,
    /// Which batch was not taken, and why.
    RejectFrame,
}

// === impl MessageClass ===

impl MessageClass {
    /// Every class, the one to be served first first.
    pub const ALL: [Self; 4] = [Self::Control, Self::Dispatch, Self::Data, Self::Telemetry];

    /// The name used in labels, answers and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Dispatch => "dispatch",
            Self::Data => "data",
            Self::Telemetry => "telemetry",
        }
    }

    /// This class's place in an array, and its number on the wire.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The priority of a message of this class that says nothing else about itself.
    #[must_use]
    pub const fn priority(self) -> MessagePriority {
        match self {
            Self::Control => MessagePriority::Critical,
            Self::Dispatch => MessagePriority::High,
            Self::Data => MessagePriority::Normal,
            Self::Telemetry => MessagePriority::Low,
        }
    }
}

// === impl MessageKind ===

impl MessageKind {
    /// The one table of classification.
    #[must_use]
    pub const fn class(self) -> MessageClass {
        match self {
            Self::HealthProbe | Self::MetricsScrape | Self::StatsRead | Self::UsageRead => {
                MessageClass::Control
            }
            Self::ThresholdChange | Self::TaskCancel | Self::DecisionsRead => MessageClass::Control,
            Self::TaskSubmit => MessageClass::Dispatch,
            Self::HelloFrame | Self::AckFrame | Self::RejectFrame => MessageClass::Control,
            Self::ProxiedRequest | Self::BatchFrame | Self::TaskRead => MessageClass::Data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_the_priority_of_the_design() {
        assert_eq!(MessageClass::Control.priority(), MessagePriority::Critical);
        assert_eq!(MessageClass::Dispatch.priority(), MessagePriority::High);
        assert_eq!(MessageClass::Data.priority(), MessagePriority::Normal);
        assert_eq!(MessageClass::Telemetry.priority(), MessagePriority::Low);
    }

    #[test]
    fn names_and_places_follow_the_order() {
        let names = MessageClass::ALL.map(MessageClass::name);
        assert_eq!(names, ["control", "dispatch", "data", "telemetry"]);
        for (place, class) in MessageClass::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), place);
        }
    }

    #[test]
    fn to_stop_a_task_is_control_to_start_one_is_dispatch_and_to_look_is_data() {
        assert_eq!(MessageKind::TaskCancel.class(), MessageClass::Control);
        assert_eq!(MessageKind::TaskSubmit.class(), MessageClass::Dispatch);
        assert_eq!(MessageKind::TaskRead.class(), MessageClass::Data);
    }

    #[test]
    fn frames_that_answer_are_control_and_records_are_data() {
        for kind in [MessageKind::HelloFrame, MessageKind::AckFrame, MessageKind::RejectFrame] {
            assert_eq!(kind.class(), MessageClass::Control, "{kind:?}");
        }
        assert_eq!(MessageKind::BatchFrame.class(), MessageClass::Data);
    }
}

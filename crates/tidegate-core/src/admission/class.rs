use super::MessagePriority;
use serde::Serialize;

/// Purpose of a message. The class decides its priority and its treatment at a full queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageClass {
    /// Keeps the system itself alive: probes, cancellation, health, the operator's view.
    Control,
    /// Starts work: submissions, commands, state sync.
    Dispatch,
    /// Work itself and its progress.
    Data,
    /// Optional information.
    Telemetry,
}

/// Kind of a message, for every handler and frame.
///
/// An enum and not a string, so that a new kind can't be added without a row in [`MessageKind::class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Liveness or readiness probe.
    HealthProbe,
    /// Scrape of the metrics. Control, not Telemetry: an operator needs it most when everything else is refused.
    MetricsScrape,
    /// Read of the typed snapshots.
    StatsRead,
    /// Read or change of a busy threshold: it must get through when upstreams are busiest.
    ThresholdChange,
    /// Recording of decisions. Control, because decisions under overload are the ones worth recording.
    DecisionsRead,
    /// Read of usage totals.
    UsageRead,
    /// Submission of a task. It starts work; the client's own priority decides its weight.
    TaskSubmit,
    /// Cancellation of a task. It must get through under overload, because it frees capacity.
    TaskCancel,
    /// Read of tasks. Data, because clients poll, and many of them must not crowd out the work itself. Reads on
    /// the operator's port are Control.
    TaskRead,
    /// Client's request on its way to an upstream, before its own priority is known.
    ProxiedRequest,
    /// First frame of an ingestion connection, in either direction.
    HelloFrame,
    /// Usage records on their way in. The sender may lower them to Telemetry, never raise them.
    BatchFrame,
    /// Acknowledgement of durable batches. Control, like the rejection: a sender without an answer sends again.
    AckFrame,
    /// Rejection of a batch, with its reason.
    RejectFrame,
    /// Begin or end of a node's membership: a worker that joins a manager, and the manager's welcome.
    Membership,
    /// Cancellation of an execution at a worker.
    ExecutionCancel,
    /// Renewal of leases, and hand-over of what a leaving node owned.
    HandOver,
    /// Start of an execution at a worker, or the reservation of its slot.
    ExecutionDispatch,
    /// State of a worker: its slots, and its answers to dispatches.
    StateSync,
    /// Progress, output and end of executions.
    ProgressUpdate,
    /// Acknowledgement of progress, with the manager's backpressure signal.
    ProgressAck,
    /// Statistics of a worker: slots, CPU, memory.
    StatsUpdate,
    /// Detailed metrics for debugging: the sizes of a worker's buffers, and its counters.
    DebugMetrics,
}

// === impl MessageClass ===

impl MessageClass {
    /// Every class, the most urgent first.
    pub const ALL: [Self; 4] = [Self::Control, Self::Dispatch, Self::Data, Self::Telemetry];

    /// Name in labels, responses and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Dispatch => "dispatch",
            Self::Data => "data",
            Self::Telemetry => "telemetry",
        }
    }

    /// Index into arrays over all classes, and number on the wire.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Default priority of messages of this class.
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
    /// Classification table of all kinds.
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
            Self::Membership | Self::ExecutionCancel | Self::HandOver | Self::ProgressAck => {
                MessageClass::Control
            }
            Self::ExecutionDispatch | Self::StateSync => MessageClass::Dispatch,
            Self::ProgressUpdate | Self::StatsUpdate => MessageClass::Data,
            Self::DebugMetrics => MessageClass::Telemetry,
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

    /// The rows of the message classes of AD-37.
    #[test]
    fn ad37_message_classes() {
        use MessageKind::{
            DebugMetrics, ExecutionCancel, ExecutionDispatch, HandOver, Membership, ProgressAck,
            ProgressUpdate, StateSync, StatsUpdate,
        };
        let rows = [
            (MessageClass::Control, vec![Membership, ExecutionCancel, HandOver, ProgressAck]),
            (MessageClass::Dispatch, vec![ExecutionDispatch, StateSync]),
            (MessageClass::Data, vec![ProgressUpdate, StatsUpdate]),
            (MessageClass::Telemetry, vec![DebugMetrics]),
        ];
        for (class, kinds) in rows {
            for kind in kinds {
                assert_eq!(kind.class(), class, "{kind:?}");
            }
        }
    }

    #[test]
    fn frames_that_answer_are_control_and_records_are_data() {
        for kind in [MessageKind::HelloFrame, MessageKind::AckFrame, MessageKind::RejectFrame] {
            assert_eq!(kind.class(), MessageClass::Control, "{kind:?}");
        }
        assert_eq!(MessageKind::BatchFrame.class(), MessageClass::Data);
    }
}

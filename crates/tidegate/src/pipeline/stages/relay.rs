use crate::channel::{Weigh, WindowedReceiver, WindowedSender};
use crate::pipeline::measure::meter::StageMeter;
use std::sync::Arc;
use tokio::time::Instant;

/// Messages that a stage takes at once. Few wake-ups for many messages, and a stage still hands on what it has
/// made before it takes so much that the next one runs dry.
const AT_ONCE: usize = 64;

/// Work of a stage that only transforms messages.
pub(crate) trait Work {
    /// Input message.
    type In: Weigh;
    /// Output message.
    type Out: Weigh;

    /// Appends the outputs of a message, if any.
    fn work(&mut self, message: Self::In, made: &mut Vec<Self::Out>);
}

/// Runs a transforming stage between two channels.
pub(crate) struct Relay<W: Work> {
    work: W,
    input: WindowedReceiver<W::In>,
    output: WindowedSender<W::Out>,
    meter: Arc<StageMeter>,
    next: Arc<StageMeter>,
}

// === impl Relay ===

impl<W: Work> Relay<W> {
    pub(crate) fn new(
        work: W,
        input: WindowedReceiver<W::In>,
        output: WindowedSender<W::Out>,
        (meter, next): (Arc<StageMeter>, Arc<StageMeter>),
    ) -> Self {
        Self { work, input, output, meter, next }
    }

    /// Runs until all senders are gone, or the next stage is.
    pub(crate) async fn run(mut self) {
        let (mut taken, mut made) = (Vec::new(), Vec::new());
        // The credits of what is taken return once it is handed on: until then this stage holds it.
        while let Some(lease) = self.input.lease_many(&mut taken, AT_ONCE).await {
            let started = Instant::now();
            for message in taken.drain(..) {
                self.work.work(message, &mut made);
            }
            self.meter.record(lease.load().items, started.elapsed());
            if self.next.waiting(self.output.send_batch(&mut made)).await.is_err() {
                return;
            }
            drop(lease);
        }
    }
}

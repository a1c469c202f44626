use super::Work;
use crate::pipeline::counters::PipelineCounters;
use crate::pipeline::item::Chunk;
use std::sync::Arc;

/// Takes bytes from connections, in the order in which they found room, and lets those of dead ones go.
///
/// Every connection waits for room in the one window of this stage, in turn: whoever sends a hundred times as
/// much as the others has a hundred times as long a queue, in the kernel's memory and its own.
#[derive(Debug)]
pub(crate) struct Accept {
    pub counters: Arc<PipelineCounters>,
}

// === impl Accept ===

impl Work for Accept {
    type In = Chunk;
    type Out = Chunk;

    fn work(&mut self, chunk: Chunk, made: &mut Vec<Chunk>) {
        if let Some(bytes) = &chunk.bytes {
            PipelineCounters::add(&self.counters.bytes, bytes.len() as u64);
            if chunk.connection.is_cut() {
                return;
            }
        }
        made.push(chunk);
    }
}

use std::time::Duration;
use tidegate_core::capacity::{ExecuteRefused, ExecutorId, ExecutorSlots, ReserveRefused};
use tidegate_core::task::{ExecutionKey, TaskId};

/// How many executions an executor remembers here: each is asked about once and at once.
const PAST_MAX: usize = 8;
const RESERVED_FOR: Duration = Duration::from_secs(30);

/// The executors: the slots that ship, one each.
#[derive(Debug)]
pub(super) struct SlotTable {
    slots: Vec<ExecutorSlots>,
}

// === impl SlotTable ===

impl SlotTable {
    pub(super) fn new(executors: u32) -> Self {
        let one = || ExecutorSlots::new(1, 0).remembering(PAST_MAX);
        Self { slots: (0..executors).map(|_| one()).collect() }
    }

    /// The fence of the slot that it got.
    pub(super) fn execute(
        &mut self,
        at: ExecutorId,
        task: u64,
        now: Duration,
    ) -> Result<u64, ExecuteRefused> {
        let slots = self.slots.get_mut(at.0 as usize).ok_or(ExecuteRefused::Gone)?;
        let key = key(task).ok_or(ExecuteRefused::Conflict)?;
        slots.execute(&key, 0, None, None, now).map(|granted| granted.fence)
    }

    pub(super) fn reserve(
        &mut self,
        at: ExecutorId,
        task: u64,
        now: Duration,
    ) -> Result<(), ReserveRefused> {
        let slots = self.slots.get_mut(at.0 as usize).ok_or(ReserveRefused::Full)?;
        let key = key(task).ok_or(ReserveRefused::Full)?;
        slots.reserve(&key, RESERVED_FOR, now).map(|_| ())
    }

    pub(super) fn finish(&mut self, at: ExecutorId, task: u64, fence: u64) {
        if let (Some(slots), Some(key)) = (self.slots.get_mut(at.0 as usize), key(task)) {
            let held = slots.finish(&key, fence);
            debug_assert!(held, "task {task} ended without a slot");
        }
    }
}

fn key(task: u64) -> Option<ExecutionKey> {
    let id: TaskId = task.to_string().parse().ok()?;
    Some(id.attempt(1))
}

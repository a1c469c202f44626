//! Implementation: a channel that is always ready must not keep its task from giving others a turn.

use std::cell::Cell;
use std::task::{Context, Poll};
use tokio::task::coop::{RestoreOnPending, poll_proceed};

/// Number of messages that cost one unit of the runtime's cooperative budget, which is 128 for each poll of a
/// task. One unit a message would cost too much: a task switch takes as long as a hundred messages.
const MESSAGES_PER_UNIT: u32 = 8;

thread_local! {
    static MESSAGES: Cell<u32> = const { Cell::new(0) };
}

/// Budget spent in one poll. Counts only if the poll made progress.
pub(super) struct Turn(Option<RestoreOnPending>);

/// Ready if the task may process many messages at once, for a whole unit; else it is woken later.
pub(super) fn poll_whole_turn(cx: &mut Context<'_>) -> Poll<Turn> {
    poll_proceed(cx).map(|restore| Turn(Some(restore)))
}

/// Ready if the task may process one message; else it is woken later.
pub(super) fn poll_turn(cx: &mut Context<'_>) -> Poll<Turn> {
    let messages = MESSAGES.get().wrapping_add(1);
    MESSAGES.set(messages);
    if !messages.is_multiple_of(MESSAGES_PER_UNIT) {
        return Poll::Ready(Turn(None));
    }
    let turn = poll_whole_turn(cx);
    if turn.is_pending() {
        // The next attempt is for the same message.
        MESSAGES.set(messages.wrapping_sub(1));
    }
    turn
}

// === impl Turn ===

impl Turn {
    pub(super) fn made_progress(self) {
        if let Some(restore) = self.0 {
            restore.made_progress();
        }
    }
}

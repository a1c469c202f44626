//! Implementation: a channel that is always ready must not keep its task from giving others a turn.

use std::cell::Cell;
use std::task::{Context, Poll};
use tokio::task::coop::{RestoreOnPending, poll_proceed};

/// How many messages cost one unit of the runtime's budget, which has 128 for each turn of a task. One by one they
/// would be too dear: a turn takes microseconds to change hands, as much as a hundred messages.
const MESSAGES_PER_UNIT: u32 = 8;

thread_local! {
    static MESSAGES: Cell<u32> = const { Cell::new(0) };
}

/// What a turn has cost. It counts only if something came of it.
pub(super) struct Turn(Option<RestoreOnPending>);

/// Whether the task may go on with many messages at once, for a whole unit; if not, it is woken when it may.
pub(super) fn poll_whole_turn(cx: &mut Context<'_>) -> Poll<Turn> {
    poll_proceed(cx).map(|restore| Turn(Some(restore)))
}

/// Whether the task may go on with one message; if not, it is woken when it may.
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

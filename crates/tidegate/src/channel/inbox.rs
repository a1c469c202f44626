//! Implementation: what was sent and not received, as an unbounded list of blocks. What bounds it is the credits
//! that every message in it has taken.
//!
//! A sender appends under a short lock; the receiver takes the whole list at once, and then has no lock to take
//! until it has received all of it. A batch is a block as it is, and buffers go round: from the receiver, once
//! empty, to the next who sends. So no message is copied more often than it must be, and a channel at work
//! allocates nothing.

use super::block::{BLOCK_MESSAGES, Block};
use super::credit::credits::Credits;
use super::credit::gate::Gate;
use super::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::mem;
use std::task::Waker;

/// Number of spare buffers: enough to hold the smallest window twice.
const SPARE_MAX: usize = 32;

pub(super) struct Inbox<T> {
    tail: Mutex<Tail<T>>,
}

struct Tail<T> {
    blocks: VecDeque<Block<T>>,
    spare: Vec<VecDeque<T>>,
    /// The receiver, when it found nothing.
    sleeper: Option<Waker>,
    senders: usize,
    /// True if the receiver was dropped.
    gone: bool,
}

/// Blocks that the receiver took and has not handed out.
pub(super) struct Taken<T> {
    pub(super) blocks: VecDeque<Block<T>>,
    emptied: Vec<VecDeque<T>>,
}

/// State of the inbox as the receiver found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Some,
    Nothing,
    /// Nothing, and all senders are gone.
    End,
}

// === impl Inbox ===

impl<T> Inbox<T> {
    /// With one sender.
    pub(super) fn new() -> Self {
        Self {
            tail: Mutex::new(Tail {
                blocks: VecDeque::new(),
                spare: Vec::new(),
                sleeper: None,
                senders: 1,
                gone: false,
            }),
        }
    }

    /// Appends a message, unless there is no receiver.
    pub(super) fn push(&self, message: T, charge: Credits, gate: &Gate) -> Result<(), T> {
        let mut tail = lock(&self.tail);
        if tail.gone {
            return Err(message);
        }
        gate.count_arrived(charge);
        let Tail { blocks, spare, sleeper, .. } = &mut *tail;
        match blocks.back_mut() {
            Some(block) if block.has_room() => block.push(message, charge),
            _ => {
                let buffer = spare.pop().unwrap_or_else(new_buffer);
                let mut block = Block::new(buffer, Credits::NONE);
                block.push(message, charge);
                blocks.push_back(block);
            }
        }
        let sleeper = sleeper.take();
        drop(tail);
        wake(sleeper);
        Ok(())
    }

    /// Appends a block, unless there is no receiver. A spare buffer in exchange, if there is one.
    pub(super) fn push_block(
        &self,
        block: Block<T>,
        gate: &Gate,
    ) -> Result<Option<VecDeque<T>>, Block<T>> {
        let mut tail = lock(&self.tail);
        if tail.gone {
            return Err(block);
        }
        gate.count_arrived(block.credits());
        tail.blocks.push_back(block);
        let spare = tail.spare.pop();
        let sleeper = tail.sleeper.take();
        drop(tail);
        wake(sleeper);
        Ok(spare)
    }

    /// Everything there is. When that is nothing, `waker` is woken as soon as there is something, or the last
    /// sender goes.
    pub(super) fn take(&self, taken: &mut Taken<T>, waker: Option<&Waker>) -> Found {
        let mut tail = lock(&self.tail);
        while tail.spare.len() < SPARE_MAX
            && let Some(buffer) = taken.emptied.pop()
        {
            tail.spare.push(buffer);
        }
        let (found, stale) = if !tail.blocks.is_empty() {
            mem::swap(&mut tail.blocks, &mut taken.blocks);
            (Found::Some, tail.sleeper.take())
        } else if tail.senders == 0 {
            (Found::End, tail.sleeper.take())
        } else {
            (Found::Nothing, tail.sleep(waker))
        };
        drop(tail);
        // It may hold the last reference to a task, so it goes without the lock.
        drop(stale);
        taken.emptied.clear();
        found
    }

    /// No receiver from now on. What nobody will receive.
    pub(super) fn abandon(&self) -> VecDeque<Block<T>> {
        let mut tail = lock(&self.tail);
        tail.gone = true;
        let (stale, spare) = (tail.sleeper.take(), mem::take(&mut tail.spare));
        let blocks = mem::take(&mut tail.blocks);
        drop(tail);
        drop((stale, spare));
        blocks
    }

    pub(super) fn add_sender(&self) {
        lock(&self.tail).senders += 1;
    }

    pub(super) fn drop_sender(&self) {
        let mut tail = lock(&self.tail);
        tail.senders -= 1;
        let sleeper = if tail.senders == 0 { tail.sleeper.take() } else { None };
        drop(tail);
        wake(sleeper);
    }
}

fn new_buffer<T>() -> VecDeque<T> {
    VecDeque::with_capacity(BLOCK_MESSAGES)
}

fn wake(sleeper: Option<Waker>) {
    if let Some(sleeper) = sleeper {
        sleeper.wake();
    }
}

// === impl Tail ===

impl<T> Tail<T> {
    /// Remembers whom to wake. The waker that is no longer needed.
    fn sleep(&mut self, waker: Option<&Waker>) -> Option<Waker> {
        match (&self.sleeper, waker) {
            (Some(known), Some(waker)) if known.will_wake(waker) => None,
            (_, Some(waker)) => self.sleeper.replace(waker.clone()),
            (_, None) => None,
        }
    }
}

// === impl Taken ===

impl<T> Taken<T> {
    pub(super) fn new() -> Self {
        Self { blocks: VecDeque::new(), emptied: Vec::new() }
    }

    /// A buffer to be used again, unless it is an odd one or there are enough.
    pub(super) fn recycle(&mut self, buffer: VecDeque<T>) {
        let fits = (BLOCK_MESSAGES..=4 * BLOCK_MESSAGES).contains(&buffer.capacity());
        if fits && self.emptied.len() < SPARE_MAX {
            self.emptied.push(buffer);
        }
    }
}

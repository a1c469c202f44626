//! Implementation: waiting for credits, for the close, and for the task's turn.

use super::credits::Credits;
use super::gate::{Gate, NotTaken};
use super::wait_queue::Enrolled;
use super::waiters::{Answer, Ask, Ticket};
use crate::channel::error::Closed;
use crate::channel::turn::poll_turn;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Resolves to the credits it took. Dropped before that, it leaves the line, and what it was handed meanwhile
/// goes to the next.
#[must_use]
pub(in crate::channel) struct Acquire<'a> {
    gate: &'a Gate,
    ask: Ask,
    ticket: Option<Ticket>,
}

/// Resolves when the channel takes no more messages.
#[must_use]
pub(in crate::channel) struct AwaitClose<'a> {
    gate: &'a Gate,
    ticket: Option<Ticket>,
}

// === impl Acquire ===

impl<'a> Acquire<'a> {
    pub(in crate::channel) fn new(gate: &'a Gate, ask: Ask) -> Self {
        Self { gate, ask, ticket: None }
    }

    pub(in crate::channel) fn of(gate: &'a Gate, charge: Credits) -> Self {
        Self::new(gate, Ask { least: charge, most: charge })
    }

    fn begin(&mut self, cx: &Context<'_>) -> Poll<Result<Credits, Closed>> {
        match self.gate.try_take(self.ask.most) {
            Ok(()) => Poll::Ready(Ok(self.ask.most)),
            Err(NotTaken::Closed) => Poll::Ready(Err(Closed)),
            Err(NotTaken::Full) => match self.gate.enroll(self.ask, cx.waker()) {
                Enrolled::Taken(credits) => Poll::Ready(Ok(credits)),
                Enrolled::Closed => Poll::Ready(Err(Closed)),
                Enrolled::Waiting(ticket) => {
                    self.ticket = Some(ticket);
                    Poll::Pending
                }
            },
        }
    }

    fn look(&mut self, ticket: Ticket, cx: &Context<'_>) -> Poll<Result<Credits, Closed>> {
        match self.gate.look(&ticket, cx.waker()) {
            Answer::Granted(credits) => Poll::Ready(Ok(credits)),
            Answer::Refused => Poll::Ready(Err(Closed)),
            Answer::Waiting => {
                self.ticket = Some(ticket);
                Poll::Pending
            }
        }
    }
}

impl Future for Acquire<'_> {
    type Output = Result<Credits, Closed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let turn = ready!(poll_turn(cx));
        let answer = match self.ticket.take() {
            None => self.begin(cx),
            Some(ticket) => self.look(ticket, cx),
        };
        if answer.is_ready() {
            turn.made_progress();
        }
        answer
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.gate.leave(&ticket);
        }
    }
}

// === impl AwaitClose ===

impl<'a> AwaitClose<'a> {
    pub(in crate::channel) fn new(gate: &'a Gate) -> Self {
        Self { gate, ticket: None }
    }
}

impl Future for AwaitClose<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.ticket.take() {
            None => self.ticket = self.gate.await_close(cx.waker()),
            Some(ticket) => {
                if let Answer::Waiting = self.gate.look_for_close(&ticket, cx.waker()) {
                    self.ticket = Some(ticket);
                }
            }
        }
        if self.ticket.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for AwaitClose<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.gate.leave_closing(&ticket);
        }
    }
}

use super::count;
use super::hints;
use super::request::{Reply, Request};
use super::step::{self, Step};
use super::submit::{self, NewRow};
use super::transaction::{TransactionError, Work};
use crate::storage::StoreError;
use crate::storage::postgres::Settings;
use crate::tasks::{ChangeOutcome, Submission};
use std::collections::HashSet;
use tokio_postgres::Transaction;

/// Limits of a group that is written in one transaction: requests and bytes.
const GROUP_MAX: usize = 1_024;
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Submissions and steps that share a transaction: no two are about the same task or key, because one statement
/// decides all of them at once.
#[derive(Default)]
pub(super) struct Group {
    pub(super) news: Vec<NewRow>,
    pub(super) steps: Vec<Step>,
    new_replies: Vec<Reply<Submission>>,
    step_replies: Vec<Reply<ChangeOutcome>>,
    ids: HashSet<String>,
    keys: HashSet<String>,
    bytes: usize,
}

/// Results of a group, in its order.
pub(super) struct Outcomes {
    pub(super) news: Vec<Result<Submission, StoreError>>,
    pub(super) steps: Vec<Result<ChangeOutcome, StoreError>>,
}

// === impl Group ===

impl Group {
    pub(super) fn is_full(&self) -> bool {
        self.news.len() + self.steps.len() >= GROUP_MAX || self.bytes >= GROUP_BYTES_MAX
    }

    /// Takes a request in, or gives it back when it must wait for this group to be done.
    pub(super) fn add(&mut self, request: Request) -> Option<Request> {
        match request {
            Request::Submit(new, reply) => {
                let taken = new.key.as_ref().is_some_and(|key| self.keys.contains(key));
                if taken || self.ids.contains(new.id.as_str()) {
                    return Some(Request::Submit(new, reply));
                }
                self.ids.insert(new.id.to_string());
                self.keys.extend(new.key.clone());
                self.bytes += new.spec.len() + new.state.len();
                self.news.push(*new);
                self.new_replies.push(reply);
                None
            }
            Request::Persist(step, reply) => {
                if !self.ids.insert(step.id.to_string()) {
                    return Some(Request::Persist(step, reply));
                }
                self.bytes += step.state.len() + step.output.as_ref().map_or(0, Vec::len);
                self.steps.push(*step);
                self.step_replies.push(reply);
                None
            }
            other => Some(other),
        }
    }

    pub(super) fn answer(self, result: Result<Outcomes, StoreError>) {
        match result {
            Ok(Outcomes { news, steps }) => {
                answer(self.new_replies, news.into_iter());
                answer(self.step_replies, steps.into_iter());
            }
            Err(error) => {
                answer(self.new_replies, std::iter::repeat_with(|| Err(error.clone())));
                answer(self.step_replies, std::iter::repeat_with(|| Err(error.clone())));
            }
        }
    }
}

impl Work for Group {
    type Done = Outcomes;

    async fn run(
        &self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        life: i64,
    ) -> Result<Outcomes, TransactionError> {
        let (news, submitted) = submit::submit(transaction, settings, life, &self.news).await?;
        let (steps, kept) = step::persist(transaction, settings, &self.steps).await?;
        let unowned = self.news.iter().any(NewRow::is_unowned);
        if unowned || self.steps.iter().any(Step::is_unowned) {
            // Sent together: no round trip of its own.
            let counted = count::add(transaction, settings, life, submitted.plus(&kept));
            tokio::try_join!(counted, hints::notify(transaction, settings, hints::QUEUED))?;
        } else {
            count::add(transaction, settings, life, submitted.plus(&kept)).await?;
        }
        Ok(Outcomes { news, steps })
    }
}

fn answer<T>(replies: Vec<Reply<T>>, results: impl Iterator<Item = Result<T, StoreError>>) {
    for (reply, result) in replies.into_iter().zip(results) {
        // An asker that has left doesn't need it.
        let _ = reply.send(result);
    }
}

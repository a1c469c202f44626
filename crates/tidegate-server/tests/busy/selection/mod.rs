//! The selection of an upstream: by the head of a request, by its model, or by its body where the head names none.

mod from_the_head;
mod models;
mod peeking;

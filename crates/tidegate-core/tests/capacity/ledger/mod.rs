//! A ledger of slots: random sequences beside a plain one, and each way in which such a ledger is known to fail,
//! by its name.

mod asking;
mod failures;
mod plain;
mod properties;

use crate::config::choice::Choice;
use crate::config::field::{Fallback, Field, Kind};

pub(super) const fn integer(
    key: &'static str,
    (min, max): (u64, u64),
    default: &'static str,
    doc: &'static str,
) -> Field {
    Field::new(key, Kind::Integer { min, max }, Fallback::Is(default), doc)
}

pub(super) const fn millis(
    key: &'static str,
    range: (u64, u64),
    default: &'static str,
    doc: &'static str,
) -> Field {
    integer(key, range, default, doc).unit("ms")
}

pub(super) const fn limit(
    key: &'static str,
    min: u64,
    fallback: Fallback,
    doc: &'static str,
) -> Field {
    Field::new(key, Kind::Integer { min, max: u16::MAX as u64 }, fallback, doc).unit("messages")
}

pub(super) const fn word<C: Choice>(
    key: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Field {
    Field::new(key, Kind::Word(C::NAMES), Fallback::Is(default), doc)
}

pub(super) const fn text(
    key: &'static str,
    shape: &'static str,
    check: fn(&str) -> bool,
    doc: &'static str,
) -> Field {
    Field::new(key, Kind::Text { shape, check }, Fallback::Unset, doc)
}

pub(super) const fn unset(key: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field::new(key, kind, Fallback::Unset, doc)
}

pub(super) const fn switch(key: &'static str, doc: &'static str) -> Field {
    Field::new(key, Kind::Switch, Fallback::Is("false"), doc)
}

pub(super) const fn share(key: &'static str, default: &'static str, doc: &'static str) -> Field {
    Field::new(key, Kind::Ratio { min: 0.0, max: 1.0 }, Fallback::Is(default), doc)
}

pub(super) const fn word_unset<C: Choice>(key: &'static str, doc: &'static str) -> Field {
    Field::new(key, Kind::Word(C::NAMES), Fallback::Unset, doc)
}

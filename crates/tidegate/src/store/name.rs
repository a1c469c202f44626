use super::{PricedBatch, Refused};
use std::borrow::Cow;

/// How many bytes a sender's, a tenant's or a meter's name may have.
///
/// Names are keys. Twice as many (a name of control characters only, escaped) and once more for the meter still
/// fit into a third of a page, which is the longest key that PostgreSQL's indexes take.
pub const NAME_BYTES_MAX: usize = 512;

/// A name without the byte 0, which ends a name in our keys and can't be in a PostgreSQL text. Names sort the
/// same before and after.
pub(crate) fn escape(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|byte| byte <= 1) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        match letter {
            '\0' => escaped.push_str("\u{1}0"),
            '\u{1}' => escaped.push_str("\u{1}1"),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// What [`escape`] was given.
pub(crate) fn unescape(escaped: &str) -> Cow<'_, str> {
    if !escaped.contains('\u{1}') {
        return Cow::Borrowed(escaped);
    }
    let mut name = String::with_capacity(escaped.len());
    let mut letters = escaped.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1}' => name.push(if letters.next() == Some('0') { '\0' } else { '\u{1}' }),
            other => name.push(other),
        }
    }
    Cow::Owned(name)
}

/// Whether all of a batch's names can be keys.
pub(crate) fn check(batch: &PricedBatch) -> Result<(), Refused> {
    let too_long = |name: &str| name.len() > NAME_BYTES_MAX;
    let sender = batch.origin.as_ref().is_some_and(|origin| too_long(&origin.sender));
    let inside = |record: &tidegate_core::usage::UsageRecord| {
        too_long(&record.tenant) || too_long(&record.meter)
    };
    if sender || batch.records.iter().any(|priced| inside(&priced.record)) {
        return Err(Refused::NameTooLong);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_survive_and_keep_their_order(a in "[\0\u{1}\u{2}a0é]{0,6}", b in "[\0\u{1}\u{2}a0é]{0,6}") {
            let (x, y) = (escape(&a).into_owned(), escape(&b).into_owned());
            prop_assert!(!x.contains('\0'));
            prop_assert_eq!(unescape(&x), a.as_str());
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        }
    }
}

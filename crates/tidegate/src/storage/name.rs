use std::borrow::Cow;

/// Returns a name without the byte 0, which ends a name in keys and which a PostgreSQL text can't hold. Names sort
/// the same before and after.
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

/// Reverses [`escape`].
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

use std::borrow::Cow;

/// The same text, with the password masked if it is a URL that has one: `postgres://user:***@host`.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return text.into() };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let Some((user, _)) = authority.rsplit_once('@') else { return text.into() };
    let Some((name, _)) = user.split_once(':') else { return text.into() };
    Cow::Owned(format!("{scheme}://{name}:***{}", &rest[user.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_is_masked() {
        let table = [
            ("tidegate-data", "tidegate-data"),
            ("a:b@c", "a:b@c"),
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://me@host/db?x=a:b@c", "postgres://me@host/db?x=a:b@c"),
            ("postgres://me:secret@host:5432/db", "postgres://me:***@host:5432/db"),
            ("postgres://me:s@cr:et@host/db", "postgres://me:***@host/db"),
        ];
        for (text, shown) in table {
            assert_eq!(masked(text), shown);
        }
    }
}

use std::borrow::Cow;

/// The path of a request in the one form that rules are compared with: RFC 3986's normal form, and single slashes.
///
/// Servers read `//admin`, `/%61dmin` and `/x/../admin` as `/admin`, and a rule must not be passed by writing a
/// path so. Percent-encoded unreserved characters are decoded, other escapes get capitals, adjacent slashes become
/// one, and dot segments are removed, in this order. The request itself is sent on as it came.
///
/// ```
/// use tidegate_server::config::NormalPath;
///
/// assert_eq!(NormalPath::of("/x/..//%61dmin/%2e/a%2fb").as_str(), "/admin/a%2Fb");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalPath<'a>(Cow<'a, str>);

// === impl NormalPath ===

impl<'a> NormalPath<'a> {
    /// The normal form of a path without its query. Allocates only if the path is not normal already.
    #[must_use]
    pub fn of(path: &'a str) -> Self {
        if is_plain(path) {
            return Self(Cow::Borrowed(path));
        }
        let normal = without_dots(&decoded(path));
        Self(if normal == path { Cow::Borrowed(path) } else { Cow::Owned(normal) })
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns true if a path has nothing that could be written otherwise: no escape, no empty segment, and none that
/// begins with a dot. Most paths are so.
fn is_plain(path: &str) -> bool {
    let mut after_slash = false;
    path.bytes().all(|byte| {
        let plain = byte != b'%' && !(after_slash && matches!(byte, b'/' | b'.'));
        after_slash = byte == b'/';
        plain
    })
}

/// The path with unreserved characters decoded and single slashes.
fn decoded(path: &str) -> String {
    let mut rest = path;
    let mut decoded = String::with_capacity(path.len());
    while let Some(first) = rest.chars().next() {
        let escaped = if first == '%' { escape(rest) } else { None };
        let (next, length) = match escaped {
            Some(byte) if is_unreserved(byte) && !completes_escape(&decoded, byte) => {
                (byte as char, 3)
            }
            Some(_) => {
                decoded.push_str(&rest[..3].to_ascii_uppercase());
                rest = &rest[3..];
                continue;
            }
            None => (first, first.len_utf8()),
        };
        rest = &rest[length..];
        if next != '/' || !decoded.ends_with('/') {
            decoded.push(next);
        }
    }
    decoded
}

/// Returns true if a byte would make an escape of a percent sign that begins none, as in `%%341`: the result would
/// be another path to the next reader, so what is written so stays as it is.
fn completes_escape(decoded: &str, byte: u8) -> bool {
    let begun = match decoded.as_bytes() {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    };
    begun && byte.is_ascii_hexdigit()
}

/// The byte of the escape (`%41`) that a text begins with.
fn escape(text: &str) -> Option<u8> {
    let digits = text.get(1..3)?;
    // `from_str_radix` would take a sign.
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
    u8::from_str_radix(digits, 16).ok()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Removes the segments `.` and `..`, the latter with the one before (RFC 3986, 5.2.4).
fn without_dots(path: &str) -> String {
    let Some(segments) = path.strip_prefix('/') else { return path.to_owned() };
    let mut kept: Vec<&str> = Vec::new();
    let mut ends_open = false;
    for segment in segments.split('/') {
        ends_open = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let mut normal = String::with_capacity(path.len());
    for segment in &kept {
        normal.push('/');
        normal.push_str(segment);
    }
    // A dot segment at the end names a folder.
    if normal.is_empty() || (ends_open && !normal.ends_with('/')) {
        normal.push('/');
    }
    normal
}

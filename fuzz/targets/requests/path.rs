use tidegate_server::config::NormalPath;

/// Normalises a path. The normal form is stable, has nothing left to normalise, and is that of every other way to
/// write the path.
pub fn run(input: &[u8]) -> bool {
    let path = String::from_utf8_lossy(input);
    let normal = NormalPath::of(&path);
    let once = normal.as_str();
    assert_eq!(NormalPath::of(once).as_str(), once, "{path:?}");
    assert!(once.len() <= path.len().max(1), "{path:?}");
    assert_eq!(once.starts_with('/'), path.starts_with('/'), "{path:?}");
    if !path.starts_with('/') {
        return false;
    }
    let ended = format!("{once}/");
    assert!(!once.contains("//") && !ended.contains("/./") && !ended.contains("/../"), "{once:?}");
    for written in [doubled(&path), escaped(&path), detoured(&path)] {
        assert_eq!(NormalPath::of(&written).as_str(), once, "{path:?} written as {written:?}");
    }
    once != path
}

fn doubled(path: &str) -> String {
    path.replace('/', "//")
}

fn detoured(path: &str) -> String {
    format!("/x/..{path}")
}

/// Every letter and mark that needs no escape as one, except in escapes, and after a percent sign that begins
/// none: there a decoded digit would make it one.
fn escaped(path: &str) -> String {
    let mut escaped = String::new();
    let mut bytes_of_escape = 0;
    for letter in path.chars() {
        bytes_of_escape = if letter == '%' { 2 } else { bytes_of_escape };
        let unreserved = letter.is_ascii_alphanumeric() || "-._~".contains(letter);
        if unreserved && bytes_of_escape == 0 {
            escaped.push_str(&format!("%{:02x}", u32::from(letter)));
        } else {
            escaped.push(letter);
            bytes_of_escape -= i32::from(letter != '%' && bytes_of_escape > 0);
        }
    }
    escaped
}

use http::request::Parts;

/// Writes the head of a request: its target as a path, its fields as they are, and further lines.
pub fn write(out: &mut Vec<u8>, parts: &Parts, lines: &[u8]) {
    let path = if parts.uri.path().is_empty() { "/" } else { parts.uri.path() };
    let (mark, query) = parts.uri.query().map_or(("", ""), |query| ("?", query));
    for part in [parts.method.as_str(), " ", path, mark, query, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in &parts.headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(lines);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn written(uri: &str) -> String {
        let request = Request::get(uri).header("host", "x").header("a", "1").header("a", "2");
        let mut out = Vec::new();
        write(&mut out, &request.body(()).unwrap().into_parts().0, b"b: 3\r\n");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_head_is_a_line_and_its_fields() {
        assert_eq!(written("/p?q"), "GET /p?q HTTP/1.1\r\nhost: x\r\na: 1\r\na: 2\r\nb: 3\r\n\r\n");
    }

    #[test]
    fn the_target_is_a_path_or_the_whole_server() {
        let line = |uri| written(uri).lines().next().unwrap_or_default().to_owned();
        assert_eq!(line("http://x/p"), "GET /p HTTP/1.1");
        assert_eq!(line("http://x?q"), "GET /?q HTTP/1.1");
        assert_eq!(line("*"), "GET * HTTP/1.1");
    }
}

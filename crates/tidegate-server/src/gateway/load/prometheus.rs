//! Prometheus' text format, read as leniently as it is written out there.

use std::borrow::Cow;

/// Iterates the samples of a page. It works in the page's own memory: it allocates nothing and keeps nothing, so a
/// page costs what reading it once costs, whatever is in it.
///
/// Comments, timestamps and the exemplars of OpenMetrics are passed over. A line that can't be read is passed over
/// too, and counted.
#[derive(Clone, Debug)]
pub struct Samples<'a> {
    rest: &'a str,
    skipped: usize,
}

/// One line: a name, its labels, a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The metric's name, with its suffix if it has one.
    pub name: &'a str,
    /// The value; may be NaN or infinite.
    pub value: f64,
    /// The text between the braces, already known to be well formed.
    labels: &'a str,
}

/// Iterates the labels of one sample, as they are written: values still have their escapes.
#[derive(Clone, Debug)]
struct Labels<'a> {
    rest: &'a str,
}

/// A line that is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Broken;

// === impl Samples ===

impl<'a> Samples<'a> {
    /// The samples of this page.
    #[must_use]
    pub fn new(page: &'a str) -> Self {
        Self { rest: page, skipped: 0 }
    }

    /// Lines that could not be read so far.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// The next sample with a name that is wanted. The others' lines are passed over without a look at what
    /// follows their name: most of a page is histograms, and few pages are read for those.
    pub fn next_named(&mut self, mut wanted: impl FnMut(&str) -> bool) -> Option<Sample<'a>> {
        while !self.rest.is_empty() {
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.rest = rest;
            let line = line.trim_start_matches(is_blank);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match split_name(line) {
                Ok((name, _)) if !wanted(name) => {}
                Ok((name, rest)) => match Sample::parse(name, rest) {
                    Ok(sample) => return Some(sample),
                    Err(Broken) => self.skipped += 1,
                },
                Err(Broken) => self.skipped += 1,
            }
        }
        None
    }
}

impl<'a> Iterator for Samples<'a> {
    type Item = Sample<'a>;

    fn next(&mut self) -> Option<Sample<'a>> {
        self.next_named(|_| true)
    }
}

// === impl Sample ===

impl<'a> Sample<'a> {
    /// The value of a label, without its escapes.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut labels = Labels { rest: self.labels };
        labels.find(|(label, _)| *label == name).map(|(_, value)| unescaped(value))
    }

    fn parse(name: &'a str, rest: &'a str) -> Result<Self, Broken> {
        let (labels, rest) = match rest.trim_start_matches(is_blank).strip_prefix('{') {
            Some(inside) => split_labels(inside)?,
            None => ("", rest),
        };
        Ok(Self { name, value: parse_value(rest)?, labels })
    }
}

/// A metric's name and what follows it.
fn split_name(line: &str) -> Result<(&str, &str), Broken> {
    let end = line.bytes().position(|byte| !is_name_byte(byte)).unwrap_or(line.len());
    match line.as_bytes()[0] {
        first if end == 0 || first.is_ascii_digit() => Err(Broken),
        _ => Ok(line.split_at(end)),
    }
}

/// Everything after the labels: a value, perhaps a timestamp, perhaps an exemplar.
fn parse_value(text: &str) -> Result<f64, Broken> {
    let text = text.trim_matches(is_blank);
    let (value, rest) = text.split_once(is_blank).unwrap_or((text, ""));
    let rest = rest.trim_start_matches(is_blank);
    let (timestamp, exemplar) = match rest.split_once('#') {
        Some((timestamp, exemplar)) => (timestamp.trim_end_matches(is_blank), Some(exemplar)),
        None => (rest, None),
    };
    // OpenMetrics writes seconds with a fraction, Prometheus whole milliseconds.
    if !timestamp.is_empty() && timestamp.parse::<f64>().is_err() {
        return Err(Broken);
    }
    if exemplar.is_some_and(|exemplar| !exemplar.trim_start_matches(is_blank).starts_with('{')) {
        return Err(Broken);
    }
    value.parse().map_err(|_| Broken)
}

/// The text inside the braces and the text that follows them, once every label inside is known to be well formed.
fn split_labels(inside: &str) -> Result<(&str, &str), Broken> {
    let mut labels = Labels { rest: inside };
    while labels.next().is_some() {}
    let rest = labels.rest.strip_prefix('}').ok_or(Broken)?;
    Ok((&inside[..inside.len() - labels.rest.len()], rest))
}

// === impl Labels ===

impl<'a> Iterator for Labels<'a> {
    type Item = (&'a str, &'a str);

    /// Stops before what is no label; a comma after the last one is allowed.
    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest.trim_start_matches(is_blank);
        self.rest = text;
        let (name, rest) = text.split_at(text.bytes().position(|byte| !is_name_byte(byte))?);
        let rest = rest.trim_start_matches(is_blank).strip_prefix('=')?;
        let rest = rest.trim_start_matches(is_blank).strip_prefix('"')?;
        let end = closing_quote(rest)?;
        let (value, rest) = (&rest[..end], rest[end + 1..].trim_start_matches(is_blank));
        if name.is_empty() || !(rest.starts_with([',', '}']) || rest.is_empty()) {
            return None;
        }
        self.rest = rest.strip_prefix(',').unwrap_or(rest).trim_start_matches(is_blank);
        Some((name, value))
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// An escape that the format does not know is left as it is written, which is what Prometheus does.
fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match (char, chars.as_str().chars().next()) {
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some(next @ ('\\' | '"'))) => text.push(next),
            _ => {
                text.push(char);
                continue;
            }
        }
        chars.next();
    }
    Cow::Owned(text)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':'
}

/// The carriage return of a CRLF counts as a blank at the end of its line.
fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Sample<'_> {
        let mut samples = Samples::new(line);
        let sample = samples.next().unwrap_or_else(|| panic!("{line:?} is a sample"));
        assert_eq!((samples.next(), samples.skipped()), (None, 0), "{line:?}");
        sample
    }

    #[test]
    fn every_form_of_a_line_is_read() {
        for (line, name, value) in [
            ("a 1", "a", 1.0),
            ("a{} 1", "a", 1.0),
            ("a:b_c{x=\"y\"} 1.5e3", "a:b_c", 1500.0),
            ("a{x=\"y\",} -2 1395066363000", "a", -2.0),
            ("  a { x = \"y\" , z = \"\" }  +3  \r\n", "a", 3.0),
            ("a{x=\"}\"}4", "a", 4.0),
            ("a\t+Inf", "a", f64::INFINITY),
            ("a -Inf 12.5", "a", f64::NEG_INFINITY),
            ("a_bucket{le=\"1\"} 5 # {trace_id=\"q # r\"} 0.67 1520879607.789", "a_bucket", 5.0),
            ("a_bucket{le=\"1\"} 5 1520879607.7 # {} 0.67", "a_bucket", 5.0),
        ] {
            let sample = one(line);
            assert_eq!((sample.name, sample.value), (name, value), "{line:?}");
        }
        assert!(one("a NaN").value.is_nan());
    }

    #[test]
    fn labels_lose_their_escapes_and_keep_what_looks_like_syntax() {
        let sample = one(r#"a{path="C:\\x\n\"y\"",model="a{b=\"c\"},d",odd="\t",end="\\"} 1"#);
        assert_eq!(sample.label("path").as_deref(), Some("C:\\x\n\"y\""));
        assert_eq!(sample.label("model").as_deref(), Some("a{b=\"c\"},d"));
        assert_eq!(sample.label("odd").as_deref(), Some("\\t"));
        assert_eq!(sample.label("end").as_deref(), Some("\\"));
        assert_eq!(sample.label("absent"), None);
    }

    #[test]
    fn comments_and_empty_lines_are_no_samples_and_not_broken() {
        let mut samples = Samples::new("# HELP a b\r\n\r\n# TYPE a gauge\n#\n  \na 1\n# EOF\n");
        assert_eq!(samples.next().map(|sample| sample.name), Some("a"));
        assert_eq!((samples.next(), samples.skipped()), (None, 0));
    }

    #[test]
    fn a_broken_line_is_skipped_and_counted_and_the_next_is_read() {
        for line in [
            "a",
            "a ",
            "a x",
            "1a 1",
            "{a=\"b\"} 1",
            "a{ 1",
            "a{x} 1",
            "a{x=} 1",
            "a{x=y} 1",
            "a{x=\"y} 1",
            "a{x=\"y\" z=\"w\"} 1",
            "a{x=\"y\"} ",
            "a 1 yesterday",
            "a 1 2 3",
            "a 1 # exemplar",
            "é 1",
        ] {
            let page = format!("{line}\nb 2\n");
            let mut samples = Samples::new(&page);
            assert_eq!(samples.next().map(|sample| sample.name), Some("b"), "{line:?}");
            assert_eq!((samples.next(), samples.skipped()), (None, 1), "{line:?}");
        }
    }
}

use super::LineFault;

const COMMA: u8 = 1;
const EQUALS: u8 = 2;
const SPACE: u8 = 4;
const BACKSLASH: u8 = 8;
const CONTROL: u8 = 16;

/// Class of each byte; most are nothing special.
const CLASSES: [u8; 256] = classes();

/// Bytes that end a measurement: `\,` and `\ ` are literal in it.
pub(super) const MEASUREMENT: u8 = COMMA | SPACE;

/// Bytes that end a key or the value of a tag: `\,`, `\=` and `\ ` are literal in it.
pub(super) const KEY: u8 = COMMA | EQUALS | SPACE;

/// Part of a line, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Contains an escape, so that its text differs from its value.
    pub(super) escaped: bool,
}

/// Line with a read position.
pub(super) struct Scanner<'l> {
    pub(super) line: &'l str,
    pub(super) at: usize,
}

/// Fault and its byte offset.
pub(super) type Fault = (LineFault, usize);

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b',' => COMMA,
            b'=' => EQUALS,
            b' ' => SPACE,
            b'\\' => BACKSLASH,
            0..=31 | 127 => CONTROL,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

// === impl Token ===

impl Token {
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Text as written.
    #[inline]
    pub(super) fn raw<'l>(&self, line: &'l str) -> &'l str {
        &line[self.start..self.end]
    }

    /// Unescaped text: a part of the line, or the content of `text`.
    #[inline]
    pub(super) fn meaning<'t>(&self, line: &'t str, special: u8, text: &'t mut String) -> &'t str {
        if !self.escaped {
            return self.raw(line);
        }
        text.clear();
        push_unescaped(self.raw(line), special, text);
        text
    }
}

/// Appends the unescaped form of a text: a backslash before a special byte is dropped, any other stays.
pub(super) fn push_unescaped(raw: &str, special: u8, text: &mut String) {
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.bytes().next() {
            // ASCII, so the next cut is between characters.
            Some(next) if CLASSES[usize::from(next)] & special != 0 => {
                text.push(char::from(next));
                rest = &rest[1..];
            }
            _ => text.push('\\'),
        }
    }
    text.push_str(rest);
}

/// Appends the escaped form of a text.
pub(super) fn push_escaped(text: &str, special: u8, out: &mut String) {
    for letter in text.chars() {
        if u8::try_from(letter).is_ok_and(|byte| CLASSES[usize::from(byte)] & special != 0) {
            out.push('\\');
        }
        out.push(letter);
    }
}

// === impl Scanner ===

impl Scanner<'_> {
    /// Next byte.
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    #[inline]
    pub(super) fn skip_spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Reads up to an unescaped special byte, or to the end of the line.
    #[inline]
    pub(super) fn token(&mut self, special: u8) -> Result<Token, Fault> {
        let bytes = self.line.as_bytes();
        let (start, mut at, mut escaped) = (self.at, self.at, false);
        let stop = special | BACKSLASH | CONTROL;
        loop {
            match bytes.get(at).map(|byte| CLASSES[usize::from(*byte)]) {
                Some(class) if class & stop == 0 => at += 1,
                Some(BACKSLASH) => {
                    let next = bytes.get(at + 1).map_or(0, |next| CLASSES[usize::from(*next)]);
                    let escape = next & special != 0;
                    escaped |= escape;
                    at += 1 + usize::from(escape);
                }
                Some(CONTROL) => return Err((LineFault::ControlCharacter, at)),
                _ => break,
            }
        }
        self.at = at;
        Ok(Token { start, end: at, escaped })
    }

    /// Reads up to a comma, a space or the end of the line; a backslash is literal here.
    #[inline]
    pub(super) fn plain(&mut self) -> &[u8] {
        let rest = &self.line.as_bytes()[self.at..];
        let ends = |byte: &u8| CLASSES[usize::from(*byte)] & (COMMA | SPACE) != 0;
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Reads an equals sign.
    #[inline]
    pub(super) fn equals(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b'=') {
            return Err((LineFault::MissingEquals, self.at));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a quoted string, from its first quote to after its last.
    pub(super) fn string(&mut self) -> Result<(), Fault> {
        let (bytes, start) = (self.line.as_bytes(), self.at);
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => return Err((LineFault::UnterminatedString, start)),
            }
        }
        self.at = at + 1;
        match self.peek() {
            None | Some(b',' | b' ') => Ok(()),
            Some(_) => Err((LineFault::TextAfterString, self.at)),
        }
    }
}

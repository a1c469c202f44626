//! One Rust file in three views of the same length: as it is, without comments and literals, and without tests.

use super::tree::name;
use std::fs;
use std::path::PathBuf;

/// A file, and its views. An offset or a line number means the same in each of them.
pub struct Source {
    pub name: String,
    pub text: String,
    /// Comments and the contents of literals are blank.
    pub code: String,
    /// Items under `#[cfg(test)]` are blank too; all of it is, when the file is such an item.
    pub shipped: String,
}

/// A function in [`Source::code`].
pub struct Function {
    pub name: String,
    pub offset: usize,
    pub lines: usize,
}

// === impl Source ===

impl Source {
    pub fn new(name: String, text: String) -> Self {
        let code = blank_prose(&text);
        let shipped = blank_tests(&code);
        Self { name, text, code, shipped }
    }

    /// Reads files that belong together: one may declare another to be a test.
    pub fn read_all(paths: &[PathBuf]) -> Vec<Self> {
        let read = |path: &PathBuf| Some(Self::new(name(path), fs::read_to_string(path).ok()?));
        let mut sources: Vec<_> = paths.iter().filter_map(read).collect();
        let test_files: Vec<_> = sources.iter().flat_map(Self::test_modules).collect();
        for source in &mut sources {
            if test_files.iter().any(|stem| is_module_file(&source.name, stem)) {
                source.shipped = blank(&source.code);
            }
        }
        sources
    }

    pub fn line_count(&self) -> usize {
        self.text.lines().count()
    }

    /// `file:line` of an offset.
    pub fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.name, line_of(&self.text, offset))
    }

    /// Where `needle` stands in a view.
    pub fn mentions(&self, view: &str, needle: &str) -> Vec<String> {
        let places = view.match_indices(needle).map(|(offset, _)| offset);
        places.map(|offset| format!("{}: {needle}", self.place(offset))).collect()
    }

    /// Where `word` stands in a view, and not as a part of a longer one.
    pub fn words(&self, view: &str, word: &str) -> Vec<String> {
        let whole = |offset: &usize| is_whole_word(view, *offset, word);
        let places = view.match_indices(word).map(|(offset, _)| offset).filter(whole);
        places.map(|offset| format!("{}: {word}", self.place(offset))).collect()
    }

    /// Line numbers of code and of prose that is too wide. What holds a literal or an address can't be broken.
    pub fn wide_lines(&self, code_columns_max: usize, prose_columns_max: usize) -> Vec<usize> {
        let too_wide = |(text, code): (&str, &str)| {
            let columns = text.chars().count();
            let prose = text.trim_start().starts_with("//") || code.trim().is_empty();
            let max = if prose { prose_columns_max } else { code_columns_max };
            columns > max && !text.contains("://") && !text.contains('"')
        };
        let lines = self.text.lines().zip(self.code.lines()).enumerate();
        lines.filter(|(_, line)| too_wide(*line)).map(|(index, _)| index + 1).collect()
    }

    pub fn functions(&self) -> impl Iterator<Item = Function> {
        let starts = self.code.match_indices("fn ").map(|(offset, _)| offset);
        starts.filter_map(|offset| self.function_at(offset))
    }

    fn function_at(&self, offset: usize) -> Option<Function> {
        if !is_whole_word(&self.code, offset, "fn ") {
            return None;
        }
        let end = item_end(&self.code, offset);
        let name: String =
            self.code[offset + 3..].chars().take_while(|char| is_word_char(*char)).collect();
        let lines = line_of(&self.code, end) - line_of(&self.code, offset) + 1;
        (!name.is_empty()).then_some(Function { name, offset, lines })
    }

    /// Paths, without extension, of the modules that are declared `#[cfg(test)] mod name;` here.
    fn test_modules(&self) -> Vec<String> {
        let items = test_items(&self.code).into_iter();
        let names = items.filter_map(|(start, end)| {
            let (_, declared) = self.code[start..end].split_once("mod ")?;
            declared.strip_suffix(';').map(str::trim)
        });
        names.map(|name| format!("{}/{name}", self.module_folder())).collect()
    }

    /// The folder in which the modules that this file declares are looked for.
    fn module_folder(&self) -> String {
        let (folder, file) = self.name.rsplit_once('/').unwrap_or(("", &self.name));
        match file {
            "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
            _ => format!("{folder}/{}", file.trim_end_matches(".rs")),
        }
    }
}

// === searching ===

fn is_module_file(name: &str, stem: &str) -> bool {
    name.strip_prefix(stem).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn is_word_char(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn is_whole_word(text: &str, offset: usize, word: &str) -> bool {
    let before = text[..offset].chars().next_back();
    let after = text[offset + word.len()..].chars().next();
    let ends_open = !word.ends_with(is_word_char);
    !before.is_some_and(is_word_char) && (ends_open || !after.is_some_and(is_word_char))
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The end of the item that starts at `start`: its closing brace, or its semicolon if it has no body.
fn item_end(code: &str, start: usize) -> usize {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (index, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b'{' => braces += 1,
            b'}' => braces = braces.saturating_sub(1),
            b';' => {}
            _ => continue,
        }
        if matches!(byte, b';' | b'}') && braces == 0 && brackets == 0 {
            return index + 1;
        }
    }
    code.len()
}

/// Where the items under a `cfg` that asks for tests start and end.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let attributes = code.match_indices("#[cfg(").map(|(offset, _)| offset);
    let is_for_tests = |offset: &usize| {
        let attribute = code[*offset..].split(']').next().unwrap_or_default();
        attribute.starts_with("#[cfg(test)") || attribute.starts_with("#[cfg(all(test")
    };
    attributes.filter(is_for_tests).map(|offset| (offset, item_end(code, offset))).collect()
}

fn blank_tests(code: &str) -> String {
    let mut shipped = code.to_owned();
    for (start, end) in test_items(code) {
        shipped.replace_range(start..end, &blank(&code[start..end]));
    }
    shipped
}

/// Spaces of the same length in bytes, so that offsets stay; line ends stay too.
fn blank(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

// === prose and literals ===

/// Blanks comments and literals; everything else stays where it is.
fn blank_prose(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let prose = prose_len(rest, code.chars().next_back());
        let (part, tail) = rest.split_at(if prose > 0 { prose } else { first.len_utf8() });
        if prose > 0 {
            code.push_str(&blank(part));
        } else {
            code.push_str(part);
        }
        rest = tail;
    }
    code
}

/// The length of the comment or literal that `rest` starts with; 0 when it starts with neither.
fn prose_len(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_len(rest);
    }
    let in_word = before.is_some_and(is_word_char);
    match rest.as_bytes()[0] {
        b'"' => quoted_len(rest, '"'),
        b'\'' => char_len(rest),
        b'r' if !in_word => raw_string_len(rest, 1),
        b'b' if !in_word && rest.starts_with("br") => raw_string_len(rest, 2),
        _ => 0,
    }
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0_usize;
    for index in 0..rest.len() {
        let here = &rest.as_bytes()[index..];
        if here.starts_with(b"/*") {
            depth += 1;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            if depth == 0 {
                return index + 2;
            }
        }
    }
    rest.len()
}

fn quoted_len(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, char) in rest.char_indices().skip(1) {
        if char == quote && !escaped {
            return index + 1;
        }
        escaped = char == '\\' && !escaped;
    }
    rest.len()
}

/// A char literal closes after one char or an escape; a lifetime never closes.
fn char_len(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), _) => quoted_len(rest, '\''),
        (_, Some((index, '\''))) => index + 1,
        _ => 0,
    }
}

/// `r`, any number of `#`, and a quote; `prefix` is the length of what stands before the `#`.
fn raw_string_len(rest: &str, prefix: usize) -> usize {
    let hashes = rest[prefix..].bytes().take_while(|byte| *byte == b'#').count();
    let open = prefix + hashes;
    if !rest[open..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let content = open + 1;
    rest[content..].find(&close).map_or(rest.len(), |found| content + found + close.len())
}

#[test]
fn comments_and_literals_are_blank() {
    let text =
        "a /* b /* c */ d */ e // f\n\"g \\\" h\" 'i' '\\'' r#\"j \" k\"# br\"l\" &'static str";
    let words: Vec<_> = blank_prose(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["a", "e", "&'static", "str"]);
    assert_eq!(blank_prose(text).len(), text.len());
}

#[test]
fn shipped_code_ends_where_tests_begin() {
    let text = "fn a() { b[0; 1]; }\n#[cfg(test)]\nmod tests { fn c() { d.unwrap() } }\nfn e() {}";
    let source = Source::new("x.rs".into(), text.into());
    assert!(source.words(&source.shipped, "c").is_empty());
    assert_eq!(source.words(&source.shipped, "e"), ["x.rs:4: e"]);
}

#[test]
fn a_file_that_is_declared_as_a_test_is_not_shipped() {
    let source = Source::new("src/a/mod.rs".into(), "#[cfg(test)]\nmod tests;\nmod b;".into());
    assert_eq!(source.test_modules(), ["src/a/tests"]);
    assert!(is_module_file("src/a/tests.rs", "src/a/tests"));
    assert!(is_module_file("src/a/tests/deep.rs", "src/a/tests"));
    assert!(!is_module_file("src/a/b.rs", "src/a/tests"));
}

#[test]
fn functions_are_measured_from_signature_to_closing_brace() {
    let text = "fn a(b: [u8; 2]) -> u8 {\n  if c { d }\n  e\n}\ntrait F { fn g(); }\n";
    let source = Source::new("x.rs".into(), text.into());
    let found: Vec<_> = source.functions().map(|found| (found.name, found.lines)).collect();
    assert_eq!(found, [("a".to_owned(), 4), ("g".to_owned(), 1)]);
}

#[test]
fn a_word_is_not_found_in_a_longer_one() {
    let source = Source::new("x.rs".into(), "operand::x; rand::y; tokio_like; tokio".into());
    assert_eq!(source.words(&source.code, "rand::").len(), 1);
    assert_eq!(source.words(&source.code, "tokio").len(), 1);
}

#[test]
fn wide_lines_are_found_but_not_addresses_and_literals() {
    let text = "let abcdefghij = 1;\n// abcdefghij klmnop\n// http://abcdefghijklmnop\nlet a = \"abcdefghij\";";
    let source = Source::new("x.rs".into(), text.into());
    assert_eq!(source.wide_lines(10, 30), [1]);
    assert_eq!(source.wide_lines(30, 10), [2]);
}

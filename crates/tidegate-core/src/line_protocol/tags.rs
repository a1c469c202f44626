use super::LineFault;
use super::token::{Fault, KEY, Scanner, Token};
use crate::frame::LABELS_BYTES_MAX;

/// Tags of a line, except the tenant's.
#[derive(Debug, Default)]
pub(super) struct Tags {
    tags: Vec<Tag>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) key: Token,
    pub(super) value: Token,
}

// === impl Tags ===

impl Tags {
    /// Reads all tags of a line. Returns the value of the tenant's tag, if there is one.
    #[inline]
    pub(super) fn read(
        &mut self,
        scanner: &mut Scanner<'_>,
        tenant_tag: &str,
    ) -> Result<Option<Token>, Fault> {
        self.tags.clear();
        self.bytes = 0;
        let mut tenant = None;
        while scanner.peek() == Some(b',') {
            scanner.at += 1;
            let tag = read_tag(scanner)?;
            // The tenant tag's name contains nothing that needs escaping.
            if tag.key.raw(scanner.line) != tenant_tag {
                self.add(tag)?;
            } else if tenant.replace(tag.value).is_some() {
                return Err((LineFault::DuplicateTag, tag.key.start));
            }
        }
        Ok(tenant)
    }

    /// Tags in the order of their keys, as written in the line, so that equal tags give equal text. Often the line
    /// has that order already; otherwise they are composed in `text`.
    #[inline]
    pub(super) fn labels<'t>(
        &mut self,
        line: &'t str,
        text: &'t mut String,
    ) -> Result<&'t str, Fault> {
        let (Some(first), Some(last)) = (self.tags.first(), self.tags.last()) else {
            return Ok("");
        };
        let follows = |a: &Tag, b: &Tag| a.value.end + 1 == b.key.start;
        if self.tags.is_sorted_by(|a, b| follows(a, b) && a.key.raw(line) < b.key.raw(line)) {
            return Ok(&line[first.key.start..last.value.end]);
        }
        self.tags.sort_by(|a, b| a.key.raw(line).cmp(b.key.raw(line)));
        let same = |pair: &&[Tag]| pair[0].key.raw(line) == pair[1].key.raw(line);
        if let Some(pair) = self.tags.windows(2).find(same) {
            return Err((LineFault::DuplicateTag, pair[1].key.start));
        }
        text.clear();
        for (place, tag) in self.tags.iter().enumerate() {
            text.push_str(if place == 0 { "" } else { "," });
            text.push_str(&line[tag.key.start..tag.value.end]);
        }
        Ok(text)
    }

    /// Adds a tag, at most as many as fit in the labels, which bounds the cost of sorting.
    fn add(&mut self, tag: Tag) -> Result<(), Fault> {
        let comma = usize::from(!self.tags.is_empty());
        self.bytes += comma + tag.value.end - tag.key.start;
        if self.bytes > LABELS_BYTES_MAX {
            return Err((LineFault::LabelsTooLong, tag.key.start));
        }
        self.tags.push(tag);
        Ok(())
    }
}

/// Reads a tag.
#[inline]
pub(super) fn read_tag(scanner: &mut Scanner<'_>) -> Result<Tag, Fault> {
    let key = scanner.token(KEY)?;
    if key.is_empty() {
        return Err((LineFault::MissingKey, key.start));
    }
    scanner.equals()?;
    let value = scanner.token(KEY)?;
    if scanner.peek() == Some(b'=') {
        return Err((LineFault::UnescapedEquals, scanner.at));
    }
    if value.is_empty() {
        return Err((LineFault::MissingValue, value.start));
    }
    Ok(Tag { key, value })
}

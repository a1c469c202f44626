use super::LineFault;
use super::token::{Fault, KEY, Scanner, Token};
use crate::frame::LABELS_BYTES_MAX;

/// The tags of a line, but for the tenant's.
#[derive(Debug, Default)]
pub(super) struct Tags {
    tags: Vec<Tag>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Tag {
    key: Token,
    value: Token,
}

// === impl Tags ===

impl Tags {
    /// Reads all tags of a line. Gives back the value of the one that names the tenant, if there is one.
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
            // What must be escaped can't be in the tenant tag's name.
            if tag.key.raw(scanner.line) != tenant_tag {
                self.add(tag)?;
            } else if tenant.replace(tag.value).is_some() {
                return Err((LineFault::DuplicateTag, tag.key.start));
            }
        }
        Ok(tenant)
    }

    /// Writes them in the order of their keys, as they are written in the line: so the same tags are always the
    /// same text.
    #[inline]
    pub(super) fn labels(&mut self, line: &str, labels: &mut String) -> Result<(), Fault> {
        labels.clear();
        let key = |tag: &Tag| tag.key.raw(line);
        if !self.tags.is_sorted_by(|a, b| key(a) < key(b)) {
            self.tags.sort_by(|a, b| key(a).cmp(key(b)));
            if let Some(twice) = self.tags.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
                return Err((LineFault::DuplicateTag, twice[1].key.start));
            }
        }
        for tag in &self.tags {
            if !labels.is_empty() {
                labels.push(',');
            }
            labels.push_str(&line[tag.key.start..tag.value.end]);
        }
        Ok(())
    }

    /// At most as many as fit in the labels, so that a line of nothing but tags costs no more to sort than that.
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

#[inline]
fn read_tag(scanner: &mut Scanner<'_>) -> Result<Tag, Fault> {
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

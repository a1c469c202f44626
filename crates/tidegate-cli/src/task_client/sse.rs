use crate::failure::Failure;

/// Limit of an event; a task's whole output fits into one.
const BYTES_MAX: usize = 64 << 20;

/// Server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    pub data: String,
}

/// Incremental parser of server-sent events.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    /// The last byte was a CR that ended a line; an LF after it belongs to the same line end.
    after_cr: bool,
    event: Event,
    has_data: bool,
    /// The `id` of the incomplete event.
    id: Option<String>,
    /// The `id` of the last complete event, with which the stream can be resumed.
    last_id: Option<String>,
}

// === impl SseParser ===

impl SseParser {
    /// The `id` of the last complete event.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Starts a new connection; drops an incomplete event.
    pub fn reconnect(&mut self) {
        let last_id = self.last_id.take();
        *self = Self { last_id, ..Self::default() };
    }

    /// Parses a piece; returns the events that it completes.
    ///
    /// # Errors
    ///
    /// When an event exceeds the limit.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Event>, Failure> {
        let mut events = Vec::new();
        for &byte in piece {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            if self.line.len() + self.event.data.len() > BYTES_MAX {
                return Err(Failure::Runtime("an event of the node is too large".to_owned()));
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            // Only now: the id of an incomplete event would skip it after a reconnect.
            if let Some(id) = self.id.take() {
                self.last_id = Some(id);
            }
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments have an empty field name; other fields are ignored.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\n\nevent: status\nid: 0.0.0\ndata: {\"a\":\"é€😀\"}\n\n\
        event: output\r\nid:1.5.0\r\ndata:one\r\ndata: two\r\n\r\n: still here\n\n\
        retry: 5\ndata\rid: 2\revent: x\r\rid: 9\n\ndata: unfinished\n";

    fn expected() -> Vec<Event> {
        let event = |name: &str, data: &str| Event { name: name.into(), data: data.into() };
        vec![event("status", "{\"a\":\"é€😀\"}"), event("output", "one\ntwo"), event("x", "")]
    }

    #[test]
    fn a_stream_means_the_same_wherever_it_is_cut() {
        let bytes = STREAM.as_bytes();
        for first in 0..=bytes.len() {
            let mut parser = SseParser::default();
            let mut events = parser.push(&bytes[..first]).unwrap();
            events.extend(parser.push(&bytes[first..]).unwrap());
            assert_eq!(events, expected(), "cut at {first}");
            assert_eq!(parser.last_id(), Some("9"));
        }
        for size in 1..12 {
            let mut parser = SseParser::default();
            let pieces = bytes.chunks(size).map(|piece| parser.push(piece).unwrap());
            assert_eq!(pieces.flatten().collect::<Vec<_>>(), expected(), "pieces of {size}");
        }
    }

    #[test]
    fn a_new_connection_drops_an_incomplete_event_and_keeps_the_id() {
        let mut parser = SseParser::default();
        parser
            .push(b"id: 1.5.0\nevent: output\ndata: x\n\nevent: status\nid: 1.9.0\ndata: ha")
            .unwrap();
        parser.reconnect();
        assert_eq!(parser.last_id(), Some("1.5.0"));
        let events = parser.push(b"data: y\n\n").unwrap();
        assert_eq!(events, [Event { name: String::new(), data: "y".into() }]);
    }

    #[test]
    fn an_endless_line_is_an_error() {
        let mut parser = SseParser::default();
        let piece = vec![b'x'; 1 << 20];
        let result = (0..80).try_for_each(|_| parser.push(&piece).map(drop));
        assert!(result.is_err());
    }
}

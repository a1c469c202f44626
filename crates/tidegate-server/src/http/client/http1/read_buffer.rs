use crate::http::wire::UPSTREAM_BUFFER_MAX;
use bytes::{Buf as _, Bytes, BytesMut};
use std::cell::RefCell;

/// Bytes that a buffer has room for.
const READ_BUFFER: usize = UPSTREAM_BUFFER_MAX;

/// Buffers that a thread keeps. A connection has one only while it reads: more are in use at once only when
/// connections have read what their clients do not take.
const SPARE_MAX: usize = 4;

/// Pieces below this length are copied out of their buffer: a piece that waits for its client must not hold all of
/// the buffer, and a copy costs no more than sharing it.
const COPIED_BELOW: usize = 4 * 1024;

thread_local! {
    static SPARE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// Takes an empty buffer of this thread, or a new one.
pub fn take() -> BytesMut {
    // A thread that ends has none left.
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
    if let Some(mut buffer) = spare
        && buffer.try_reclaim(READ_BUFFER)
    {
        return buffer;
    }
    // None, or one whose pieces still wait for a client: they free it when they are sent.
    BytesMut::with_capacity(READ_BUFFER)
}

/// Gives a buffer back that has nothing more to read. Pieces of it may still be in use.
pub fn give_back(buffer: &mut BytesMut) {
    let buffer = std::mem::take(buffer);
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(buffer);
        }
    });
}

/// Takes the first bytes out of a buffer.
pub fn piece(buffer: &mut BytesMut, len: usize) -> Bytes {
    if len >= COPIED_BELOW {
        return buffer.split_to(len).freeze();
    }
    let piece = Bytes::copy_from_slice(&buffer[..len]);
    if len == buffer.len() {
        buffer.clear();
    } else {
        buffer.advance(len);
    }
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_once_its_pieces_are_gone() {
        let mut buffer = take();
        buffer.extend_from_slice(&[7; READ_BUFFER]);
        let memory = buffer.as_ptr();
        let whole = piece(&mut buffer, READ_BUFFER);
        give_back(&mut buffer);
        let mut other = take();
        assert_ne!(other.as_ptr(), memory, "a piece is in use");
        give_back(&mut other);
        let memory = other_memory();
        drop(whole);
        assert_eq!(other_memory(), memory, "and it is the same each time");
    }

    fn other_memory() -> *const u8 {
        let mut buffer = take();
        buffer.extend_from_slice(&[7; READ_BUFFER]);
        let memory = buffer.as_ptr();
        drop(piece(&mut buffer, READ_BUFFER));
        give_back(&mut buffer);
        memory
    }

    #[test]
    fn a_small_piece_does_not_hold_its_buffer() {
        let mut buffer = take();
        buffer.extend_from_slice(b"headbody");
        let (head, body) = (piece(&mut buffer, 4), piece(&mut buffer, 4));
        assert!(buffer.is_empty() && buffer.try_reclaim(READ_BUFFER), "nothing shares it");
        assert_eq!((&head[..], &body[..]), (&b"head"[..], &b"body"[..]));
    }

    #[test]
    fn a_thread_keeps_few_buffers() {
        let mut buffers: Vec<_> = (0..2 * SPARE_MAX).map(|_| take()).collect();
        buffers.iter_mut().for_each(give_back);
        assert_eq!(SPARE.with(|spare| spare.borrow().len()), SPARE_MAX);
    }
}

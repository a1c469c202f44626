use super::error::SessionError;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::pin::Pin;
use tidegate::frame::{FrameKind, FrameLimits, RawFrame, Reassembler};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Longest frame of a session: the longest code of a task is 2 MiB.
const FRAME_BYTES_MAX: u32 = 4 << 20;
/// Longest frame of a peer that has not joined: a token and a list of runtimes take a few KiB.
const JOIN_BYTES_MAX: u32 = 16 << 10;
/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Most bytes of one read from a peer that has not joined.
const JOIN_READ_BYTES: usize = 4 << 10;

/// Connection of a session, with TLS or without.
pub trait SessionStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> SessionStream for S {}

/// Frames of a connection, as they arrive.
pub struct FrameReader {
    stream: Pin<Box<dyn AsyncRead + Send>>,
    frames: Reassembler,
    buffer: Vec<u8>,
}

/// Writing half of a connection.
pub struct FrameWriter {
    stream: Pin<Box<dyn AsyncWrite + Send>>,
}

/// Appends a frame with this body.
///
/// # Errors
///
/// When the body can't be written as CBOR; then nothing is appended.
pub fn encode<B: Serialize>(
    out: &mut Vec<u8>,
    kind: FrameKind,
    body: &B,
) -> Result<(), SessionError> {
    RawFrame::append(out, kind, |out| {
        let mut serializer = minicbor_serde::Serializer::new(out);
        body.serialize(&mut serializer).map(drop).map_err(|error| SessionError::body(kind, error))
    })
}

// === impl FrameReader ===

impl FrameReader {
    /// Reads frames from a connection whose peer has joined.
    pub fn new(stream: impl AsyncRead + Send + 'static) -> Self {
        Self::joining(stream).joined()
    }

    /// Reads frames from a connection whose peer has not joined: only short ones, into little memory.
    pub fn joining(stream: impl AsyncRead + Send + 'static) -> Self {
        Self {
            stream: Box::pin(stream),
            frames: Reassembler::new(limits(JOIN_BYTES_MAX)),
            buffer: vec![0; JOIN_READ_BYTES],
        }
    }

    /// Accepts long frames too: the peer has joined.
    #[must_use]
    pub fn joined(mut self) -> Self {
        self.frames.set_limits(limits(FRAME_BYTES_MAX));
        self.buffer.resize(READ_BYTES, 0);
        self
    }

    /// Next frame.
    ///
    /// # Errors
    ///
    /// When the connection ends or fails, or its bytes are no frame.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no bytes are lost.
    pub async fn next(&mut self) -> Result<RawFrame, SessionError> {
        loop {
            if let Some(frame) = self.frames.next()? {
                return Ok(frame);
            }
            let read = self.stream.read(&mut self.buffer).await?;
            if read == 0 {
                return Err(SessionError::Closed);
            }
            self.frames.push(Bytes::copy_from_slice(&self.buffer[..read]));
        }
    }

    /// Body of the next frame, which must be of this kind.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next), and when the frame is another or its body is invalid.
    pub async fn next_of<B: DeserializeOwned>(
        &mut self,
        kind: FrameKind,
    ) -> Result<B, SessionError> {
        let frame = self.next().await?;
        match frame.kind == kind {
            true => decode(&frame),
            false => Err(SessionError::Unexpected { given: frame.kind, expected: kind.name() }),
        }
    }
}

fn limits(frame_bytes_max: u32) -> FrameLimits {
    FrameLimits { frame_bytes_max, ..FrameLimits::default() }
}

/// Body of a frame.
///
/// # Errors
///
/// When the body is invalid.
pub fn decode<B: DeserializeOwned>(frame: &RawFrame) -> Result<B, SessionError> {
    minicbor_serde::from_slice(&frame.body).map_err(|error| SessionError::body(frame.kind, error))
}

// === impl FrameWriter ===

impl FrameWriter {
    /// Writes frames to a connection.
    pub fn new(stream: impl AsyncWrite + Send + 'static) -> Self {
        Self { stream: Box::pin(stream) }
    }

    /// Writes encoded frames.
    ///
    /// # Errors
    ///
    /// When the connection fails.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a part of a frame may have been written. Close the connection then.
    pub async fn write(&mut self, frames: &[u8]) -> Result<(), SessionError> {
        self.stream.write_all(frames).await?;
        self.stream.flush().await?;
        Ok(())
    }

    /// Writes one frame.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write), and when the body can't be encoded.
    pub async fn send<B: Serialize>(
        &mut self,
        kind: FrameKind,
        body: &B,
    ) -> Result<(), SessionError> {
        let mut frame = Vec::new();
        encode(&mut frame, kind, body)?;
        self.write(&frame).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::execution::ExecuteBody;
    use crate::tasks::session::{Dispatch, Join, Lane};

    fn join() -> Join {
        Join {
            version: 1,
            lane: Lane::Control,
            worker: "w".to_owned(),
            incarnation: 7,
            session: None,
            token: None,
            software: String::new(),
            capacity: None,
        }
    }

    #[tokio::test]
    async fn messages_survive_a_connection_that_splits_them_anywhere() {
        let (near, far) = tokio::io::duplex(11);
        let (mut writer, mut reader) = (FrameWriter::new(near), FrameReader::new(far));
        let body = ExecuteBody { code: "x".repeat(10_000), ..ExecuteBody::default() };
        let dispatch = Dispatch { executes: vec![body], reserves: Vec::new() };
        let sent = dispatch.clone();
        let writing = tokio::spawn(async move {
            writer.send(FrameKind::Join, &join()).await.unwrap();
            writer.send(FrameKind::Execute, &sent).await.unwrap();
        });
        assert_eq!(reader.next_of::<Join>(FrameKind::Join).await.unwrap(), join());
        assert_eq!(reader.next_of::<Dispatch>(FrameKind::Execute).await.unwrap(), dispatch);
        writing.await.unwrap();
        assert!(matches!(reader.next().await, Err(SessionError::Closed)));
    }

    #[tokio::test]
    async fn another_frame_and_another_body_are_errors() {
        let (near, far) = tokio::io::duplex(1_000);
        let (mut writer, mut reader) = (FrameWriter::new(near), FrameReader::new(far));
        writer.send(FrameKind::Join, &join()).await.unwrap();
        let other = reader.next_of::<Dispatch>(FrameKind::Execute).await;
        assert!(matches!(other, Err(SessionError::Unexpected { .. })));
        writer.send(FrameKind::Execute, &7).await.unwrap();
        let invalid = reader.next_of::<Dispatch>(FrameKind::Execute).await;
        assert!(matches!(invalid, Err(SessionError::Body { kind: FrameKind::Execute, .. })));
        writer.write(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        assert!(matches!(reader.next().await, Err(SessionError::Frame(_))));
    }

    #[tokio::test]
    async fn long_frames_are_read_from_the_join_on() {
        let body =
            ExecuteBody { code: "x".repeat(JOIN_BYTES_MAX as usize), ..ExecuteBody::default() };
        let dispatch = Dispatch { executes: vec![body], reserves: Vec::new() };
        let mut frames = Vec::new();
        encode(&mut frames, FrameKind::Join, &join()).unwrap();
        encode(&mut frames, FrameKind::Execute, &dispatch).unwrap();
        let mut joining = FrameReader::joining(std::io::Cursor::new(frames.clone()));
        joining.next_of::<Join>(FrameKind::Join).await.unwrap();
        let mut joined = joining.joined();
        assert_eq!(joined.next_of::<Dispatch>(FrameKind::Execute).await.unwrap(), dispatch);
        let mut never = FrameReader::joining(std::io::Cursor::new(frames));
        never.next_of::<Join>(FrameKind::Join).await.unwrap();
        assert!(matches!(never.next().await, Err(SessionError::Frame(_))));
    }

    #[test]
    fn a_lane_is_known_by_its_first_bytes() {
        for lane in [Lane::Control, Lane::Data] {
            assert_eq!(Lane::of_preamble(lane.preamble()), Some(lane));
        }
        assert_eq!(Lane::of_preamble(*b"GET "), None);
    }
}

use super::buffer::{NeverSent, Next};
use super::error::{ClientError, Trouble};
use super::shared::Shared;
use crate::rng::Rng;
use bytes::{Buf, Bytes, BytesMut};
use std::io;
use std::time::Duration;
use tidegate_core::frame::{
    Ack, FrameError, FrameKind, FrameLimits, RawFrame, Reassembler, Reject, RejectReason, Welcome,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, sleep_until};

/// Size of a read: many acks, or a part of a large one.
const READ_BYTES: usize = 8 * 1024;

/// One connection, from its hello to its end.
pub(super) struct Session<'a, Io> {
    shared: &'a Shared,
    server: &'a str,
    rng: &'a Rng,
    reader: ReadHalf<Io>,
    writer: WriteHalf<Io>,
    /// Bytes that are being written.
    writing: Bytes,
    reading: BytesMut,
    frames: Reassembler,
    /// Since when the server owes an answer that has not come.
    quiet_since: Option<Instant>,
    /// True if a batch became durable.
    progressed: bool,
    greeted: bool,
}

/// End of a connection.
#[derive(Debug)]
pub(super) enum End {
    /// The client wants no more.
    Stopped,
    /// A retry can't help.
    Final(ClientError),
    /// Another connection may do better.
    Trouble(Trouble),
}

// === impl Session ===

impl<'a, Io: AsyncRead + AsyncWrite> Session<'a, Io> {
    pub(super) fn new(
        shared: &'a Shared,
        server: &'a str,
        rng: &'a Rng,
        io: Io,
        hello: Bytes,
    ) -> Self {
        let (reader, writer) = tokio::io::split(io);
        Self {
            shared,
            server,
            rng,
            reader,
            writer,
            writing: hello,
            reading: BytesMut::new(),
            frames: Reassembler::new(FrameLimits::default()),
            quiet_since: Some(Instant::now()),
            progressed: false,
            greeted: false,
        }
    }

    /// Sends and listens until the connection ends. Tells whether a batch became durable meanwhile.
    pub(super) async fn run(mut self) -> (End, bool) {
        let mut stop = self.shared.stop.subscribe();
        let end = loop {
            let wake = self.next_frame();
            let deadline = self.deadline(wake);
            self.reading.reserve(READ_BYTES);
            let more = self.writing.has_remaining();
            let step = tokio::select! {
                read = self.reader.read_buf(&mut self.reading) => self.received(read),
                wrote = self.writer.write_buf(&mut self.writing), if more => self.wrote(wrote),
                () = self.shared.to_send.notified() => Ok(()),
                () = sleep_until(deadline) => self.silent(),
                _ = stop.wait_for(|stop| *stop) => Err(End::Stopped),
            };
            if let Err(end) = step {
                break end;
            }
        };
        if matches!(end, End::Stopped) {
            // The peer may be gone as well; then there is nobody to be polite to.
            let _ = self.writer.shutdown().await;
        }
        (end, self.progressed)
    }

    /// Takes the next frame when the last is written. Tells when to look again.
    fn next_frame(&mut self) -> Option<Duration> {
        if self.writing.has_remaining() || !self.greeted {
            return None;
        }
        match self.shared.next() {
            Next::Write(frame) => {
                self.writing = frame;
                self.quiet_since.get_or_insert_with(Instant::now);
                None
            }
            Next::Wait(until) => until,
        }
    }

    /// When to look again whatever happens.
    fn deadline(&self, wake: Option<Duration>) -> Instant {
        // A far time rather than none: one branch less in the loop, and a look an hour costs nothing.
        let far = Instant::now() + Duration::from_secs(3_600);
        let wake = wake.map_or(far, |wake| self.shared.at(wake));
        let patience = self.quiet_since.map_or(far, |since| since + self.answer_timeout());
        wake.min(patience).min(far)
    }

    fn answer_timeout(&self) -> Duration {
        self.shared.config.answer_timeout
    }

    /// The time has come to look: is the server silent for too long?
    fn silent(&self) -> Result<(), End> {
        let Some(since) = self.quiet_since else { return Ok(()) };
        let silence = since.elapsed();
        match silence >= self.answer_timeout() {
            true => Err(self.trouble(|server| Trouble::Silent { server, silence })),
            false => Ok(()),
        }
    }

    fn wrote(&self, wrote: io::Result<usize>) -> Result<(), End> {
        let error = match wrote {
            Ok(0) => io::Error::from(io::ErrorKind::WriteZero),
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        Err(self.trouble(|server| Trouble::Broken { server, error }))
    }

    fn received(&mut self, read: io::Result<usize>) -> Result<(), End> {
        match read {
            Ok(0) => {
                let within_frame = self.frames.is_within_frame();
                return Err(self.trouble(|server| Trouble::Ended { server, within_frame }));
            }
            Ok(_) => {}
            Err(error) => return Err(self.trouble(|server| Trouble::Broken { server, error })),
        }
        self.frames.push(self.reading.split().freeze());
        while let Some(frame) = self.frames.next().map_err(|error| self.bad_answer(error))? {
            self.answered(&frame)?;
        }
        let waits = self.shared.read(|buffer| buffer.in_flight() > 0);
        self.quiet_since = (waits || !self.greeted).then(Instant::now);
        Ok(())
    }

    fn answered(&mut self, frame: &RawFrame) -> Result<(), End> {
        match frame.kind {
            FrameKind::Hello if !self.greeted => {
                let welcome = Welcome::decode(frame).map_err(|error| self.bad_answer(error))?;
                self.shared.welcome(self.server, welcome).map_err(End::Final)?;
                self.greeted = true;
                Ok(())
            }
            FrameKind::Ack if self.greeted => self.acked(frame),
            FrameKind::Reject => self.rejected(frame),
            given => {
                let expected = if self.greeted { FrameKind::Ack } else { FrameKind::Hello };
                Err(self.bad_answer(FrameError::WrongKind { expected, given }))
            }
        }
    }

    fn acked(&mut self, frame: &RawFrame) -> Result<(), End> {
        let ack = Ack::decode(frame).map_err(|error| self.bad_answer(error))?;
        let now = self.shared.now();
        let acked = self.shared.change(|buffer| buffer.ack(&ack, now));
        self.progressed |= acked.map_err(|error| self.never_sent(&error))?;
        Ok(())
    }

    fn rejected(&mut self, frame: &RawFrame) -> Result<(), End> {
        let reject = Reject::decode(frame).map_err(|error| self.bad_answer(error))?;
        if reject.reason == RejectReason::UnknownVersion {
            let (server, message) = (self.server.to_owned(), reject.message);
            return Err(End::Final(ClientError::Version { server, message }));
        }
        if reject.reason == RejectReason::Unauthorized {
            let (server, message) = (self.server.to_owned(), reject.message);
            return Err(End::Final(ClientError::Unauthorized { server, message }));
        }
        if reject.reason == RejectReason::SenderOwned {
            return Err(End::Final(self.shared.name_taken(self.server)));
        }
        if reject.seq == 0 || !self.greeted {
            let reject = Box::new(reject);
            return Err(self.trouble(|server| Trouble::Refused { server, reject }));
        }
        let (now, chance) = (self.shared.now(), self.rng.fraction());
        let rejected = self.shared.change(|buffer| buffer.reject(&reject, now, chance));
        rejected.map_err(|error| self.never_sent(&error))
    }

    fn bad_answer(&self, error: FrameError) -> End {
        match error {
            FrameError::UnknownVersion { .. } => End::Final(ClientError::Version {
                server: self.server.to_owned(),
                message: error.to_string(),
            }),
            FrameError::TooLong { length, .. } if !self.greeted && is_tls_alert(length) => {
                End::Final(ClientError::SpeaksTls { server: self.server.to_owned() })
            }
            error => self.trouble(|server| Trouble::BadAnswer { server, error }),
        }
    }

    fn never_sent(&self, error: &NeverSent) -> End {
        let seq = error.0;
        self.trouble(|server| Trouble::UnknownBatch { server, seq })
    }

    fn trouble(&self, trouble: impl FnOnce(String) -> Trouble) -> End {
        End::Trouble(trouble(self.server.to_owned()))
    }
}

/// True if the length of a frame is the begin of a TLS alert: its type, 21, and the major version of TLS, 3.
fn is_tls_alert(length: u32) -> bool {
    length >> 16 == 0x1503
}

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Byte that carries a descriptor: the kernel attaches descriptors to data.
const CARRIER: u8 = b'd';

/// Sends a copy of a descriptor over a local socket, before any other bytes.
///
/// A descriptor that a child inherits would be inherited by every process that is started at that moment, and so
/// by another task.
pub(in crate::tasks::sandbox) fn send(socket: impl AsFd, descriptor: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    let sent = sendmsg(socket, &[IoSlice::new(&[CARRIER])], &mut control, SendFlags::NOSIGNAL)?;
    match sent {
        1 => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Receives the descriptor that was sent first. It closes on exec.
pub(super) fn receive(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut carrier = [0];
    let buffers = &mut [IoSliceMut::new(&mut carrier)];
    recvmsg(socket, buffers, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let first = descriptors.next().and_then(|mut all| all.next());
    first.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no descriptor"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _, pipe};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_descriptor_crosses_a_socket_and_the_bytes_after_it_stay() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let (mut reader, writer) = pipe().unwrap();
        let writer = OwnedFd::from(writer);
        send(&here, &writer).unwrap();
        drop(writer);
        here.write_all(b"plan").unwrap();
        let mut received = std::fs::File::from(receive(&there).unwrap());
        let mut plan = [0; 4];
        there.read_exact(&mut plan).unwrap();
        assert_eq!(&plan, b"plan");
        received.write_all(b"report").unwrap();
        drop(received);
        let mut report = String::new();
        reader.read_to_string(&mut report).unwrap();
        assert_eq!(report, "report", "and no other copy keeps the pipe open");
    }

    #[test]
    fn a_socket_without_a_descriptor_is_an_error() {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(b"{").unwrap();
        assert!(receive(&there).is_err());
        drop(here);
        assert!(receive(&there).is_err(), "the worker was gone before it sent anything");
    }
}

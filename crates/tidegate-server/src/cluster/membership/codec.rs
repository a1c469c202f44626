use super::counts::MembershipCounts;
use super::member_id::MemberId;
use bytes::{Buf, BufMut};
use foca::{Codec, Header, Member, Message, State};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;
use tidegate::membership::MemberRole;

/// Encoding of the gossip, and the meter of its probes: the one place that sees each message.
pub struct PacketCodec {
    counts: Arc<MembershipCounts>,
    /// Number and time of the probe that waits for its answer.
    probe: Option<(u8, Instant)>,
}

/// A message that can't be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The packet is full.
    #[error("the packet is full")]
    Full,
    /// The packet is not what was expected.
    #[error("malformed packet")]
    Malformed,
}

// === impl PacketCodec ===

impl PacketCodec {
    pub fn new(counts: Arc<MembershipCounts>) -> Self {
        Self { counts, probe: None }
    }
}

impl Codec<MemberId> for PacketCodec {
    type Error = CodecError;

    fn encode_header(
        &mut self,
        header: &Header<MemberId>,
        mut buf: impl BufMut,
    ) -> Result<(), CodecError> {
        if let Message::Ping(number) = header.message {
            self.probe = Some((number, Instant::now()));
            self.counts.probe_sent();
        }
        let mut bytes = Vec::with_capacity(256);
        put_id(&mut bytes, &header.src);
        bytes.put_u16(header.src_incarnation);
        put_id(&mut bytes, &header.dst);
        put_message(&mut bytes, &header.message);
        put_all(&mut buf, &bytes)
    }

    fn decode_header(&mut self, buf: impl Buf) -> Result<Header<MemberId>, CodecError> {
        let header = read_header(buf)?;
        if let (Message::Ack(number), Some((probe, sent))) = (&header.message, self.probe)
            && *number == probe
        {
            self.probe = None;
            self.counts.probe_answered(sent.elapsed());
        }
        Ok(header)
    }

    fn encode_member(
        &mut self,
        member: &Member<MemberId>,
        mut buf: impl BufMut,
    ) -> Result<(), CodecError> {
        let mut bytes = Vec::with_capacity(128);
        put_id(&mut bytes, member.id());
        bytes.put_u16(member.incarnation());
        bytes.put_u8(match member.state() {
            State::Alive => 0,
            State::Suspect => 1,
            State::Down => 2,
        });
        put_all(&mut buf, &bytes)
    }

    fn decode_member(&mut self, mut buf: impl Buf) -> Result<Member<MemberId>, CodecError> {
        let id = take_id(&mut buf)?;
        let incarnation = take_u16(&mut buf)?;
        let state = match take_u8(&mut buf)? {
            0 => State::Alive,
            1 => State::Suspect,
            2 => State::Down,
            _ => return Err(CodecError::Malformed),
        };
        Ok(Member::new(id, incarnation, state))
    }
}

/// The header of a payload.
pub fn read_header(mut buf: impl Buf) -> Result<Header<MemberId>, CodecError> {
    let src = take_id(&mut buf)?;
    let src_incarnation = take_u16(&mut buf)?;
    let dst = take_id(&mut buf)?;
    let message = take_message(&mut buf)?;
    Ok(Header { src, src_incarnation, dst, message })
}

/// All bytes, or none: a packet must not have a part of an item.
fn put_all(buf: &mut impl BufMut, bytes: &[u8]) -> Result<(), CodecError> {
    if buf.remaining_mut() < bytes.len() {
        return Err(CodecError::Full);
    }
    buf.put_slice(bytes);
    Ok(())
}

fn put_id(out: &mut Vec<u8>, id: &MemberId) {
    out.put_u64(id.generation);
    out.put_u8(id.role.code());
    match id.address.ip() {
        IpAddr::V4(ip) => {
            out.put_u8(4);
            out.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.put_u8(6);
            out.put_slice(&ip.octets());
        }
    }
    out.put_u16(id.address.port());
    for name in [&id.node, &id.cell] {
        // Names have at most 64 bytes.
        let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
        out.put_u8(name.len() as u8);
        out.put_slice(name);
    }
}

fn put_message(out: &mut Vec<u8>, message: &Message<MemberId>) {
    let (tag, number, id) = match message {
        Message::Ping(number) => (1, Some(number), None),
        Message::Ack(number) => (2, Some(number), None),
        Message::PingReq { target, probe_number } => (3, Some(probe_number), Some(target)),
        Message::IndirectPing { origin, probe_number } => (4, Some(probe_number), Some(origin)),
        Message::IndirectAck { target, probe_number } => (5, Some(probe_number), Some(target)),
        Message::ForwardedAck { origin, probe_number } => (6, Some(probe_number), Some(origin)),
        Message::Announce => (7, None, None),
        Message::Feed => (8, None, None),
        Message::Gossip => (9, None, None),
        Message::Broadcast => (10, None, None),
        Message::TurnUndead => (11, None, None),
    };
    out.put_u8(tag);
    out.extend(number);
    if let Some(id) = id {
        put_id(out, id);
    }
}

fn take_message(buf: &mut impl Buf) -> Result<Message<MemberId>, CodecError> {
    Ok(match take_u8(buf)? {
        1 => Message::Ping(take_u8(buf)?),
        2 => Message::Ack(take_u8(buf)?),
        3 => {
            let probe_number = take_u8(buf)?;
            Message::PingReq { target: take_id(buf)?, probe_number }
        }
        4 => {
            let probe_number = take_u8(buf)?;
            Message::IndirectPing { origin: take_id(buf)?, probe_number }
        }
        5 => {
            let probe_number = take_u8(buf)?;
            Message::IndirectAck { target: take_id(buf)?, probe_number }
        }
        6 => {
            let probe_number = take_u8(buf)?;
            Message::ForwardedAck { origin: take_id(buf)?, probe_number }
        }
        7 => Message::Announce,
        8 => Message::Feed,
        9 => Message::Gossip,
        10 => Message::Broadcast,
        11 => Message::TurnUndead,
        _ => return Err(CodecError::Malformed),
    })
}

fn take_id(buf: &mut impl Buf) -> Result<MemberId, CodecError> {
    let malformed = |_| CodecError::Malformed;
    let generation = buf.try_get_u64().map_err(malformed)?;
    let role = MemberRole::of_code(take_u8(buf)?).ok_or(CodecError::Malformed)?;
    let ip: IpAddr = match take_u8(buf)? {
        4 => buf.try_get_u32().map_err(malformed)?.to_be_bytes().into(),
        6 => buf.try_get_u128().map_err(malformed)?.to_be_bytes().into(),
        _ => return Err(CodecError::Malformed),
    };
    let address = SocketAddr::new(ip, take_u16(buf)?);
    let (node, cell) = (take_name(buf)?, take_name(buf)?);
    Ok(MemberId { node, cell, role, address, generation })
}

fn take_name(buf: &mut impl Buf) -> Result<Arc<str>, CodecError> {
    let mut name = vec![0; usize::from(take_u8(buf)?)];
    buf.try_copy_to_slice(&mut name).map_err(|_| CodecError::Malformed)?;
    String::from_utf8(name).map(Arc::from).map_err(|_| CodecError::Malformed)
}

fn take_u8(buf: &mut impl Buf) -> Result<u8, CodecError> {
    buf.try_get_u8().map_err(|_| CodecError::Malformed)
}

fn take_u16(buf: &mut impl Buf) -> Result<u16, CodecError> {
    buf.try_get_u16().map_err(|_| CodecError::Malformed)
}

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate::MessageClass;
use tidegate::frame::{
    Ack, BatchBuilder, FrameKind, FrameLimits, Hello, Reassembler, Reject, Welcome,
};
use tidegate::usage::UsageRecord;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// It only ends a test that has failed; none is judged by it.
const LONGEST: Duration = Duration::from_secs(30);

/// A sender of frames that does exactly what it is told.
pub struct Peer {
    pub tcp: TcpStream,
    reassembler: Reassembler,
    said: VecDeque<Said>,
}

/// What a receiver says.
#[derive(Debug)]
pub enum Said {
    Welcome(Welcome),
    Ack(Ack),
    Reject(Reject),
}

impl Peer {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    pub fn over(tcp: TcpStream) -> Self {
        let reassembler = Reassembler::new(FrameLimits::default());
        Self { tcp, reassembler, said: VecDeque::new() }
    }

    /// One that has said who it is, and was welcomed.
    pub async fn named(address: SocketAddr, name: &str) -> Self {
        let mut peer = Self::connect(address).await;
        peer.send(&hello(name)).await;
        peer.welcome().await;
        peer
    }

    /// One that has shown a token with its name, and was welcomed.
    pub async fn with_token(address: SocketAddr, name: &str, token: &str) -> Self {
        let mut peer = Self::connect(address).await;
        peer.send(&hello_with(name, token)).await;
        peer.welcome().await;
        peer
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.tcp.write_all(bytes).await.unwrap();
    }

    /// What the receiver says next; none when it closes.
    pub async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Some(said);
            }
            let mut chunk = BytesMut::with_capacity(4096);
            let read = timeout(LONGEST, self.tcp.read_buf(&mut chunk)).await;
            // A reset is an end too.
            match read.expect("it says nothing and does not close") {
                Ok(0) | Err(_) => return None,
                Ok(_) => self.reassembler.push(chunk.freeze()),
            }
            while let Some(frame) = self.reassembler.next().unwrap() {
                self.said.push_back(match frame.kind {
                    FrameKind::Hello => Said::Welcome(Welcome::decode(&frame).unwrap()),
                    FrameKind::Ack => Said::Ack(Ack::decode(&frame).unwrap()),
                    FrameKind::Reject => Said::Reject(Reject::decode(&frame).unwrap()),
                    kind => panic!("a receiver sends no {kind}"),
                });
            }
        }
    }

    pub async fn welcome(&mut self) -> Welcome {
        match self.next().await {
            Some(Said::Welcome(welcome)) => welcome,
            other => panic!("no welcome but {other:?}"),
        }
    }

    /// The next refusal. Signs of life may come before it, which tell of nothing.
    pub async fn reject(&mut self) -> Reject {
        loop {
            match self.next().await {
                Some(Said::Reject(reject)) => return reject,
                Some(Said::Ack(ack)) if ack.seqs.is_empty() => {}
                other => panic!("no reject but {other:?}"),
            }
        }
    }

    /// Reads acks until this number is among them.
    pub async fn acked(&mut self, seq: u64) -> Ack {
        loop {
            match self.next().await {
                Some(Said::Ack(ack)) if ack.seqs.contains(seq) => return ack,
                Some(Said::Ack(_)) => {}
                other => panic!("no ack of {seq} but {other:?}"),
            }
        }
    }

    pub async fn closed(&mut self) {
        let next = self.next().await;
        assert!(next.is_none(), "not closed but {next:?}");
    }
}

/// A connection for lines.
pub async fn lines_peer(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

pub fn hello(name: &str) -> Bytes {
    Hello::new(name.parse().unwrap(), "test").encode()
}

pub fn hello_with(name: &str, token: &str) -> Bytes {
    let hello = Hello::new(name.parse().unwrap(), "test");
    hello.with_token(Some(token.parse().unwrap())).encode()
}

pub fn record(tenant: &str, quantity: u64) -> UsageRecord {
    UsageRecord {
        tenant: tenant.into(),
        meter: "tokens".into(),
        quantity: quantity.into(),
        time_ns: 1_700_000_000_000_000_000,
        labels: "".into(),
    }
}

/// A batch of `count` records of a tenant, each of 1.
pub fn batch(tenant: &str, (seq, settled): (u64, u64), count: usize) -> Bytes {
    batch_of(MessageClass::Data, (seq, settled), &vec![record(tenant, 1); count])
}

pub fn batch_of(class: MessageClass, (seq, settled): (u64, u64), records: &[UsageRecord]) -> Bytes {
    let mut builder = BatchBuilder::new(FrameLimits::default());
    records.iter().for_each(|record| builder.push(record).unwrap());
    builder.finish(seq, settled, class)
}

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::Mutex as StdMutex;
use std::time::Duration;
use tidegate::outbox::{Delivery, Failure, Transport, Undelivered};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, watch};

/// A number and how many bytes follow it: what a frame starts with. The answer is the number.
const HEAD: usize = 12;

/// Real sockets: one connection a destination, one frame a message, one answer a frame.
pub struct TcpTransport {
    connections: StdMutex<HashMap<SocketAddr, Arc<Mutex<Option<TcpStream>>>>>,
}

/// A message with a body, and something that lives as long as it does, for tests that count the living.
pub struct Frame {
    pub number: u64,
    pub body: Vec<u8>,
    #[expect(dead_code, reason = "it is there to be alive, not to be read")]
    pub held: Option<Arc<()>>,
}

/// What a server does with each frame.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// Answers at once.
    Fast,
    /// Answers after so long, closes the connection instead of answering every so many, and swallows others.
    Lossy { delay: Duration, closes_each: u64, swallows_each: u64 },
    /// Reads nothing until it is told to do otherwise.
    Stalled,
}

/// A destination on loopback.
pub struct Server {
    pub address: SocketAddr,
    received: Arc<StdMutex<Vec<u64>>>,
    manner: watch::Sender<Manner>,
}

// === impl TcpTransport ===

impl TcpTransport {
    pub fn new() -> Self {
        Self { connections: StdMutex::default() }
    }

    fn connection(&self, destination: &SocketAddr) -> Arc<Mutex<Option<TcpStream>>> {
        let mut connections = self.connections.lock().expect("no test panics with it in hand");
        Arc::clone(connections.entry(*destination).or_default())
    }
}

impl Transport for TcpTransport {
    type Destination = SocketAddr;
    type Message = Frame;
    type Reply = u64;
    type Error = io::Error;

    async fn send(&self, destination: &SocketAddr, batch: &[Frame]) -> Delivery<u64, io::Error> {
        let connection = self.connection(destination);
        let mut connection = connection.lock().await;
        // Taken out: a send that is dropped half way leaves no half-written connection behind.
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => TcpStream::connect(destination)
                .await
                .map_err(|error| Undelivered::all(Failure::Unreachable, error))?,
        };
        let mut replies = Vec::new();
        for frame in batch {
            match exchange(&mut stream, frame).await {
                Ok(reply) => replies.push(reply),
                Err(error) => return Err(Undelivered { replies, failure: Failure::Lost, error }),
            }
        }
        *connection = Some(stream);
        Ok(replies)
    }

    fn forget(&self, destination: &SocketAddr) {
        self.connections.lock().expect("no test panics with it in hand").remove(destination);
    }
}

async fn exchange(stream: &mut TcpStream, frame: &Frame) -> io::Result<u64> {
    let mut bytes = Vec::with_capacity(HEAD + frame.body.len());
    bytes.extend(frame.number.to_be_bytes());
    bytes.extend((frame.body.len() as u32).to_be_bytes());
    bytes.extend(&frame.body);
    stream.write_all(&bytes).await?;
    stream.read_u64().await
}

// === impl Frame ===

impl Frame {
    pub fn new(number: u64) -> Self {
        Self::sized(number, 0)
    }

    pub fn sized(number: u64, bytes: usize) -> Self {
        Self { number, body: vec![0; bytes], held: None }
    }
}

// === impl Server ===

impl Server {
    pub async fn start(manner: Manner) -> Self {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let received = Arc::default();
        let (manner, watched) = watch::channel(manner);
        let seen = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, watched.clone(), Arc::clone(&seen)));
            }
        });
        Self { address, received, manner }
    }

    pub fn set(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }

    pub fn received(&self) -> Vec<u64> {
        self.received.lock().expect("no test panics with it in hand").clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    mut manner: watch::Receiver<Manner>,
    received: Arc<StdMutex<Vec<u64>>>,
) -> io::Result<()> {
    loop {
        // The test has ended when nobody can tell it otherwise.
        if manner.wait_for(|manner| !matches!(manner, Manner::Stalled)).await.is_err() {
            return Ok(());
        }
        let number = stream.read_u64().await?;
        let length = stream.read_u32().await?;
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body).await?;
        let how = *manner.borrow();
        let count = {
            let mut received = received.lock().expect("no test panics with it in hand");
            received.push(number);
            received.len() as u64
        };
        if let Manner::Lossy { delay, closes_each, swallows_each } = how {
            tokio::time::sleep(delay).await;
            if count % closes_each == 0 {
                return Ok(());
            }
            if count % swallows_each == 0 {
                continue;
            }
        }
        stream.write_u64(number).await?;
    }
}

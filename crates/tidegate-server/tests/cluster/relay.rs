//! Relays at the advertised UDP addresses of members, which a test cuts.

use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const HEARD_MAX: usize = 50;

/// Side of the network that each socket is on. Packets between two sides are lost.
#[derive(Clone, Default)]
pub struct Sides(Arc<Mutex<BTreeMap<SocketAddr, u32>>>);

/// Passes packets on to one member, from the members of its side.
pub struct Relay {
    pub advertised: SocketAddr,
    /// The last packets that it has passed on.
    heard: Arc<Mutex<VecDeque<Vec<u8>>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sides {
    pub fn set(&self, socket: SocketAddr, side: u32) {
        self.0.lock().unwrap().insert(socket, side);
    }

    fn is_cut(&self, one: SocketAddr, other: SocketAddr) -> bool {
        let sides = self.0.lock().unwrap();
        sides.get(&one) != sides.get(&other)
    }
}

impl Relay {
    pub fn start(to: SocketAddr, sides: Sides) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (advertised, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let heard: Arc<Mutex<VecDeque<Vec<u8>>>> = Arc::default();
        let hearing = Arc::clone(&heard);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((bytes, from)) = socket.recv_from(&mut buffer)
                    && !sides.is_cut(from, to)
                {
                    let _ = socket.send_to(&buffer[..bytes], to);
                    let mut heard = hearing.lock().unwrap();
                    heard.push_back(buffer[..bytes].to_vec());
                    if heard.len() > HEARD_MAX {
                        heard.pop_front();
                    }
                }
            }
        });
        Self { advertised, heard, stop, thread: Some(thread) }
    }

    pub fn heard(&self) -> Vec<Vec<u8>> {
        self.heard.lock().unwrap().iter().cloned().collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

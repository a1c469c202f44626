use super::draws::Draws;
use super::load::{Arrivals, Load};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::MessageClass;
use tidegate::frame::{
    Ack, BatchBuilder, FrameKind, FrameLimits, Hello, Reassembler, Reject, Welcome,
};
use tidegate::pipeline::{Connection, Entrance, Protocol};
use tidegate::usage::UsageRecord;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Batches that a sender has under way at the most: nearly as many as a receiver remembers.
const IN_FLIGHT_MAX: usize = 1_000;

/// How often it looks whether it has something to send.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// One that sends real frames, cut anywhere, and reads the answers.
#[derive(Clone)]
pub struct Sender {
    pub name: String,
    pub load: Load,
    /// Records in a batch, up to this many.
    pub batch_max: usize,
    pub seed: u64,
}

/// What it has sent, all of which was answered.
#[derive(Debug, Default)]
pub struct Sent {
    pub name: String,
    pub batches: u64,
    pub records: u64,
    /// What was refused instead of stored.
    pub rejects: Vec<Reject>,
}

#[derive(Default)]
struct Answers {
    unanswered: Mutex<BTreeSet<u64>>,
    rejects: Mutex<Vec<Reject>>,
    greeted: Notify,
    news: Notify,
}

impl Sender {
    /// Sends for a while, then waits until everything is answered.
    pub async fn run(self, entrance: Entrance, time: Duration) -> Sent {
        let peer = "127.0.0.1:7".parse().unwrap();
        let connection = entrance.connect(peer, Protocol::Frames);
        let answers = Arc::new(Answers::default());
        let reading = tokio::spawn(read(Arc::clone(&connection), Arc::clone(&answers)));
        let hello = Hello::new(self.name.parse().unwrap(), "test");
        entrance.push(&connection, hello.encode()).await.unwrap();
        answers.greeted.notified().await;
        let (batches, records) = self.send(&entrance, &connection, &answers, time).await;
        while !answers.is_done() {
            answers.news.notified().await;
        }
        entrance.end(&connection).await;
        reading.await.unwrap();
        let rejects = std::mem::take(&mut *answers.rejects.lock().unwrap());
        Sent { name: self.name, batches, records, rejects }
    }

    async fn send(
        &self,
        entrance: &Entrance,
        connection: &Arc<Connection>,
        answers: &Answers,
        time: Duration,
    ) -> (u64, u64) {
        let mut arrivals = Arrivals::new(self.load, self.seed);
        let mut draws = Draws::new(self.seed ^ 1);
        let mut builder = BatchBuilder::new(FrameLimits::default());
        let (start, mut looked, mut due) = (Instant::now(), Duration::ZERO, 0.0);
        let (mut seq, mut sent) = (0, 0);
        while start.elapsed() < time {
            let now = start.elapsed();
            due += arrivals.rate(now) * (now - looked).as_secs_f64();
            looked = now;
            let mut count = 2 + draws.below(self.batch_max - 1);
            while due >= count as f64 && start.elapsed() < time {
                answers.wait_for_room().await;
                seq += 1;
                let frame = self.frame(&mut builder, (seq, answers.begin(seq)), count);
                push_in_parts(entrance, connection, frame, &mut draws).await;
                due -= count as f64;
                sent += count as u64;
                count = 2 + draws.below(self.batch_max - 1);
            }
            sleep(LOOK_EVERY).await;
        }
        (seq, sent)
    }

    fn frame(&self, builder: &mut BatchBuilder, (seq, settled): (u64, u64), count: usize) -> Bytes {
        let record = UsageRecord {
            tenant: self.name.as_str().into(),
            meter: "tokens".into(),
            quantity: seq.into(),
            time_ns: 1_700_000_000_000_000_000 + seq as i64,
            labels: "".into(),
        };
        for _ in 0..count {
            builder.push(&record).unwrap();
        }
        builder.finish(seq, settled, MessageClass::Data)
    }
}

async fn push_in_parts(
    entrance: &Entrance,
    connection: &Arc<Connection>,
    frame: Bytes,
    draws: &mut Draws,
) {
    let at = draws.below(frame.len());
    for part in [frame.slice(..at), frame.slice(at..)] {
        if !part.is_empty() {
            entrance.push(connection, part).await.unwrap();
        }
    }
}

async fn read(connection: Arc<Connection>, answers: Arc<Answers>) {
    let mut reassembler = Reassembler::new(FrameLimits::default());
    while let Some(bytes) = connection.next_reply().await {
        reassembler.push(bytes);
        while let Some(frame) = reassembler.next().unwrap() {
            match frame.kind {
                FrameKind::Hello => {
                    Welcome::decode(&frame).unwrap();
                    answers.greeted.notify_one();
                }
                FrameKind::Ack => {
                    let ack = Ack::decode(&frame).unwrap();
                    ack.seqs.iter().for_each(|seq| answers.answer(seq));
                }
                FrameKind::Reject => {
                    let reject = Reject::decode(&frame).unwrap();
                    answers.answer(reject.seq);
                    answers.rejects.lock().unwrap().push(reject);
                }
                kind => panic!("a receiver sends no {kind}"),
            }
        }
    }
}

impl Answers {
    /// A batch is about to be sent; up to which number all is answered.
    fn begin(&self, seq: u64) -> u64 {
        let mut unanswered = self.unanswered.lock().unwrap();
        unanswered.insert(seq);
        unanswered.first().map_or(0, |first| first - 1)
    }

    fn answer(&self, seq: u64) {
        assert!(self.unanswered.lock().unwrap().remove(&seq), "{seq} was answered twice");
        self.news.notify_one();
    }

    fn is_done(&self) -> bool {
        self.unanswered.lock().unwrap().is_empty()
    }

    async fn wait_for_room(&self) {
        while self.unanswered.lock().unwrap().len() >= IN_FLIGHT_MAX {
            self.news.notified().await;
        }
    }
}

use crate::commands::until_signal::failed;
use crate::failure::Failure;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tidegate_server::worker::{ExecutorConfig, MockRunner, Runner, Worker, WorkerError};

/// How long a port may take to come free when its executor was killed.
const FREE_WITHIN: Duration = Duration::from_secs(5);

/// Executors of one slot each that let time go by, behind the contract over HTTP.
pub struct Crew {
    seats: Mutex<Vec<Seat>>,
    takes: Duration,
}

struct Seat {
    number: usize,
    address: SocketAddr,
    worker: Option<Worker>,
    /// What those did that were killed.
    past: Totals,
}

/// What executors have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub started: u64,
    pub ended: u64,
    /// Submissions and reservations that found no slot.
    pub refused: u64,
}

// === impl Crew ===

impl Crew {
    pub fn start(executors: u32, takes: Duration) -> Result<Self, Failure> {
        let seats = (0..executors as usize).map(|number| {
            let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let worker = start(number, free, takes).map_err(failed)?;
            let (address, worker) = (worker.address(), Some(worker));
            Ok::<_, Failure>(Seat { number, address, worker, past: Totals::default() })
        });
        Ok(Self { seats: Mutex::new(seats.collect::<Result<_, _>>()?), takes })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.lock().iter().map(|seat| seat.address).collect()
    }

    /// What they did, also those that were killed.
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for seat in self.lock().iter() {
            sum.add(seat.past);
            sum.add(seat.worker.as_ref().map(Totals::of).unwrap_or_default());
        }
        sum
    }

    /// Ends an executor with all that runs there.
    pub fn kill(&self, number: usize) {
        if let Some(seat) = self.lock().get_mut(number)
            && let Some(worker) = seat.worker.take()
        {
            seat.past.add(Totals::of(&worker));
            // Dropped, it ends at once, and what it ran with it.
            drop(worker);
        }
    }

    /// Starts it again where it was, with nothing.
    pub fn revive(&self, number: usize) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            let mut seats = self.lock();
            let Some(seat) = seats.get_mut(number).filter(|seat| seat.worker.is_none()) else {
                return Ok(());
            };
            match start(seat.number, seat.address, self.takes) {
                Ok(worker) => {
                    seat.worker = Some(worker);
                    return Ok(());
                }
                // The one before may not have let go of its port yet.
                Err(WorkerError::Bind { .. }) if began.elapsed() < FREE_WITHIN => {}
                Err(error) => return Err(failed(error)),
            }
            drop(seats);
            sleep(Duration::from_millis(10));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seat>> {
        // Nothing that holds it panics; if it did, each seat would still be whole.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(number: usize, at: SocketAddr, takes: Duration) -> Result<Worker, WorkerError> {
    let runner = Runner::Mock(MockRunner::new(takes, Vec::new()));
    Worker::start(at, ExecutorConfig::new(format!("executor-{number}"), 1), runner)
}

// === impl Totals ===

impl Totals {
    fn of(worker: &Worker) -> Self {
        let counts = worker.executor().counts();
        Self {
            started: counts.started,
            ended: counts.ended_total(),
            refused: counts.refused_full(),
        }
    }

    fn add(&mut self, other: Self) {
        self.started += other.started;
        self.ended += other.ended;
        self.refused += other.refused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_server::worker::ExecuteBody;

    #[test]
    fn who_was_killed_comes_back_at_the_same_place_and_what_it_did_still_counts() {
        let crew = Crew::start(2, Duration::from_secs(60)).unwrap();
        let addresses = crew.addresses();
        let execute = |name: &str| {
            let seats = crew.lock();
            let body = ExecuteBody {
                eval_id: name.to_owned(),
                code: "work".to_owned(),
                attempt: 1,
                ..ExecuteBody::default()
            };
            seats[0].worker.as_ref().unwrap().executor().execute(body).is_ok()
        };
        assert!(execute("one"));
        assert!(!execute("two"), "it has one slot");
        crew.kill(0);
        crew.kill(0);
        crew.revive(0).unwrap();
        assert!(execute("two"), "it is empty");
        assert_eq!(crew.totals(), Totals { started: 2, ended: 0, refused: 1 });
        assert_eq!(crew.addresses(), addresses);
    }
}

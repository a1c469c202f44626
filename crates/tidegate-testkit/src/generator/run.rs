use super::clock::Clock;
use super::config::{GeneratorConfig, Protocol, Template};
use super::connection::{Connector, Event, authority};
use super::driver::Driver;
use super::engine::{Engine, Limits};
use super::prepared::Prepared;
use super::stats::ScheduleStats;
use super::timer::Timer;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;

/// Tasks between two polls of sockets and schedule. Each takes about 10 µs: the runtime's default of 61 would
/// delay the schedule by most of a millisecond.
const TASKS_PER_POLL: u32 = 8;

/// Events that are handled between two polls of the schedule.
const EVENTS_PER_POLL: usize = 64;

/// Sends the driver's requests and returns the driver at the end. Blocks the calling thread; must not be called
/// within an asynchronous runtime.
///
/// # Errors
///
/// When the configuration is invalid, the target has no address, or the system has no timer. Failed requests are
/// reported to the driver.
pub fn run<D: Driver>(
    config: GeneratorConfig,
    templates: Vec<Template>,
    driver: D,
) -> io::Result<(D, ScheduleStats)> {
    let prepared = prepare(&config, templates)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(TASKS_PER_POLL)
        .build()?;
    runtime.block_on(generate(config, prepared, driver))
}

fn prepare(config: &GeneratorConfig, templates: Vec<Template>) -> io::Result<Vec<Prepared>> {
    let authority = authority(config)?;
    if config.connections_max == 0 || config.streams_max == 0 {
        let why = "connections_max and streams_max must be at least 1";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let prepare = |template| Prepared::new(template, &authority, config.protocol);
    templates.into_iter().map(prepare).collect()
}

async fn generate<D: Driver>(
    config: GeneratorConfig,
    templates: Vec<Prepared>,
    driver: D,
) -> io::Result<(D, ScheduleStats)> {
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut timer = Timer::new()?;
    let clock = Clock::start();
    let connector = Connector::new(&config, clock, sender)?;
    let limits = Limits {
        connections: config.connections_max,
        streams: match config.protocol {
            Protocol::Http1 => 1,
            Protocol::Http2 => config.streams_max,
        },
        grace: config.grace,
    };
    let mut engine = Engine::new(driver, templates, connector, limits)?;
    engine.start();
    let mut batch = Vec::with_capacity(EVENTS_PER_POLL);
    while let Some(wake_at) = engine.advance() {
        let now = clock.now();
        match wake_at.checked_sub(config.busy_wait) {
            Some(sleep_until) if sleep_until > now || config.busy_wait.is_zero() => {
                timer.arm(sleep_until, now)?;
                wait(&mut timer, &mut events, &mut batch).await?;
            }
            _ => busy_wait(clock, wake_at, &mut events, &mut batch).await,
        }
        for event in batch.drain(..) {
            engine.handle(event);
        }
        engine.serve();
    }
    // Events that have arrived count.
    while let Ok(event) = events.try_recv() {
        engine.handle(event);
    }
    Ok(engine.finish())
}

/// Busy-waits for a time or for events. Other tasks run and events are received at least once, even if the time
/// has passed: a late generator must still read responses.
async fn busy_wait(
    clock: Clock,
    until: Duration,
    events: &mut mpsc::UnboundedReceiver<Event>,
    batch: &mut Vec<Event>,
) {
    loop {
        tokio::task::yield_now().await;
        while batch.len() < EVENTS_PER_POLL
            && let Ok(event) = events.try_recv()
        {
            batch.push(event);
        }
        if !batch.is_empty() || clock.now() >= until {
            return;
        }
    }
}

/// Waits for the timer or for events.
async fn wait(
    timer: &mut Timer,
    events: &mut mpsc::UnboundedReceiver<Event>,
    batch: &mut Vec<Event>,
) -> io::Result<()> {
    poll_fn(|context| {
        let some = events.poll_recv_many(context, batch, EVENTS_PER_POLL).is_ready();
        match timer.poll(context) {
            Poll::Pending if some => Poll::Ready(Ok(())),
            timer => timer,
        }
    })
    .await
}

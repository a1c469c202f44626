use super::clock::Clock;
use super::config::{GeneratorConfig, Protocol, Template};
use super::connect::{Connector, authority};
use super::driver::Driver;
use super::engine::{Engine, Limits};
use super::event::Event;
use super::prepared::Prepared;
use super::stats::ScheduleStats;
use super::timer::Timer;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;

/// Tasks that run between two looks at the sockets and the schedule. Each takes some 10 µs: the runtime's own 61
/// would let the schedule wait for most of a millisecond.
const TASKS_BETWEEN_LOOKS: u32 = 8;

/// Events that are handled between two looks at the schedule.
const EVENTS_AT_ONCE: usize = 64;

/// Sends what the driver says, and gives it back when all has ended. Blocks the thread, which does all the
/// work, and must not be called from within an asynchronous runtime.
///
/// # Errors
///
/// When the configuration can't be used, the target has no address, or the system gives no timer. What happens to
/// requests is no error: the driver is told.
pub fn run<D: Driver>(
    config: GeneratorConfig,
    templates: Vec<Template>,
    driver: D,
) -> io::Result<(D, ScheduleStats)> {
    let prepared = prepare(&config, templates)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(TASKS_BETWEEN_LOOKS)
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
    let mut batch = Vec::with_capacity(EVENTS_AT_ONCE);
    while let Some(wake_at) = engine.advance() {
        let now = clock.now();
        match wake_at.checked_sub(config.awake_for) {
            Some(sleep_until) if sleep_until > now || config.awake_for.is_zero() => {
                timer.arm(sleep_until, now)?;
                wait(&mut timer, &mut events, &mut batch).await?;
            }
            _ => wait_awake(clock, wake_at, &mut events, &mut batch).await,
        }
        for event in batch.drain(..) {
            engine.handle(event);
        }
        engine.serve();
    }
    // What has come and was not looked at yet counts.
    while let Ok(event) = events.try_recv() {
        engine.handle(event);
    }
    Ok(engine.finish())
}

/// Waits for a moment or for events, and lets those run meanwhile who have something to do. Others run and answers
/// are taken once at least, also when the moment is past: who is behind must not only send.
async fn wait_awake(
    clock: Clock,
    until: Duration,
    events: &mut mpsc::UnboundedReceiver<Event>,
    batch: &mut Vec<Event>,
) {
    loop {
        tokio::task::yield_now().await;
        while batch.len() < EVENTS_AT_ONCE
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
        let some = events.poll_recv_many(context, batch, EVENTS_AT_ONCE).is_ready();
        match timer.poll(context) {
            Poll::Pending if some => Poll::Ready(Ok(())),
            timer => timer,
        }
    })
    .await
}

use super::notify::ServiceManager;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Variables with the time within which the service manager wants a sign of life, and the process that it means.
const INTERVAL: &str = "WATCHDOG_USEC";
const PROCESS: &str = "WATCHDOG_PID";

/// The shortest silence that counts as stuck. Threads give a sign of life at least once a second; a busy machine
/// may delay it.
const SILENCE_MIN: Duration = Duration::from_secs(2);

/// The watchdog of the service manager, which restarts a process that does not feed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    interval: Duration,
}

/// Marks that the process drains. Its threads end one by one then, and silence is no sign of a defect; the service
/// manager has another limit for that time.
#[derive(Clone, Debug, Default)]
pub struct Draining(Arc<AtomicBool>);

// === impl Watchdog ===

impl Watchdog {
    /// The watchdog that the environment asks for, if it means this process.
    pub fn from_env() -> Option<Self> {
        let text = |name| std::env::var(name).ok();
        Self::parse(text(INTERVAL)?.as_str(), text(PROCESS).as_deref(), std::process::id())
    }

    fn parse(interval_us: &str, process: Option<&str>, own: u32) -> Option<Self> {
        let interval_us: u64 = interval_us.parse().ok().filter(|us| *us > 0)?;
        let is_ours = process.is_none_or(|process| process.parse() == Ok(own));
        is_ours.then_some(Self { interval: Duration::from_micros(interval_us) })
    }

    /// Feeds it twice in each interval, while the threads of the process give signs of life; `silence` is the time
    /// since the last one. Ends with the process.
    pub fn start(
        self,
        manager: ServiceManager,
        silence: impl Fn() -> Duration + Send + 'static,
    ) -> std::io::Result<Draining> {
        let draining = Draining::default();
        let seen = draining.clone();
        let silence_max = self.silence_max();
        let feed = move || {
            let mut was_stuck = false;
            loop {
                let silence = silence();
                let is_stuck = silence > silence_max && !seen.is_set();
                if !is_stuck {
                    manager.alive();
                } else if !was_stuck {
                    let silent_ms = silence.as_millis();
                    tracing::error!(silent_ms, "a thread is stuck: the watchdog is not fed");
                }
                was_stuck = is_stuck;
                thread::sleep(self.interval / 2);
            }
        };
        thread::Builder::new().name("tidegate-watchdog".to_owned()).spawn(feed)?;
        Ok(draining)
    }

    /// The longest silence that does not count as stuck.
    fn silence_max(self) -> Duration {
        (self.interval / 2).max(SILENCE_MIN)
    }
}

// === impl Draining ===

impl Draining {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_time_for_this_process_starts_a_watchdog() {
        let watchdog = |ms| Some(Watchdog { interval: Duration::from_millis(ms) });
        assert_eq!(Watchdog::parse("30000000", None, 7), watchdog(30_000));
        assert_eq!(Watchdog::parse("1000000", Some("7"), 7), watchdog(1_000));
        for (interval, process) in [("1000000", Some("8")), ("0", None), ("soon", None), ("", None)]
        {
            assert_eq!(Watchdog::parse(interval, process, 7), None, "{interval} {process:?}");
        }
        let silence_max = |ms| watchdog(ms).map(Watchdog::silence_max);
        assert_eq!(silence_max(30_000), Some(Duration::from_secs(15)));
        assert_eq!(silence_max(10), Some(SILENCE_MIN));
    }
}

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Kernel timer with a precision of microseconds; the runtime's timers have milliseconds.
pub(super) struct Timer {
    fd: AsyncFd<OwnedFd>,
    armed_for: Option<Duration>,
}

// === impl Timer ===

impl Timer {
    #[expect(
        deprecated,
        reason = "its successor is unsafe; what it warns of needs a type that lies about its fd"
    )]
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { fd: AsyncFd::with_interest(fd, Interest::READABLE)?, armed_for: None })
    }

    /// Arms the timer for `at`; both are times of the run. A past time fires at once.
    pub fn arm(&mut self, at: Duration, now: Duration) -> io::Result<()> {
        if self.armed_for == Some(at) {
            return Ok(());
        }
        // Zero would disarm the timer.
        let wait = at.saturating_sub(now).max(Duration::from_nanos(1));
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let tv_sec = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
        let once = Timespec { tv_sec, tv_nsec: wait.subsec_nanos().into() };
        let setting = Itimerspec { it_interval: none, it_value: once };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &setting)?;
        self.armed_for = Some(at);
        Ok(())
    }

    /// Ready when the timer has fired; it must then be armed again. The count is not read: arming resets it.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = std::task::ready!(self.fd.poll_read_ready(context))?;
            guard.clear_ready();
            // Ignore readiness from an earlier setting.
            if self.armed_for.take().is_some() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

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

/// A timer of the kernel's, which is exact to some microseconds where the runtime's is to a millisecond.
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

    /// To go off at `at`; both are times of the run. What is past goes off at once.
    pub fn arm(&mut self, at: Duration, now: Duration) -> io::Result<()> {
        if self.armed_for == Some(at) {
            return Ok(());
        }
        // Nothing left to wait for would be zero, and zero disarms.
        let wait = at.saturating_sub(now).max(Duration::from_nanos(1));
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let tv_sec = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
        let once = Timespec { tv_sec, tv_nsec: wait.subsec_nanos().into() };
        let setting = Itimerspec { it_interval: none, it_value: once };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &setting)?;
        self.armed_for = Some(at);
        Ok(())
    }

    /// Ready when it went off; it must be armed anew then. Its count is not read: arming sets it back.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = std::task::ready!(self.fd.poll_read_ready(context))?;
            guard.clear_ready();
            // A readiness that stems from an earlier setting is of no interest.
            if self.armed_for.take().is_some() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

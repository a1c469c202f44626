use super::link::Link;
use super::scripts::{KEYS, Scripts};
use super::settings::Settings;
use crate::ledger::changes::Changes;
use crate::ledger::{
    Acquired, Ledger, LedgerError, LedgerRefused, SlotLease, SlotLedger, SlotRequest,
};
use redis::{Script, ScriptInvocation};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::task::ExecutionKey;

/// Longest sleep of a waiter, with change notifications and without.
const WAIT_MAX: Duration = Duration::from_secs(1);
const WAIT_MAX_UNHEARD: Duration = Duration::from_millis(250);

/// The slots of executors in a Redis (6 or later) or a Valkey, shared by all who give the same address and
/// namespace. Clones share its connection.
///
/// Time is the server's. Every operation is one script, so it happens in one step, and a call that is answered
/// late or never is an error within its time; the connection comes back by itself.
///
/// The server should be told to keep its data over a restart (`appendonly yes`) and never to drop keys when it is
/// short of memory (`maxmemory-policy noeviction`, its default). Without, leases are forgotten with it: [`Ledger`]
/// says what that means. Everything is in ten keys, which last two days after they were last written.
#[derive(Clone)]
pub struct RedisLedger {
    shared: Arc<Shared>,
    changes: Changes,
}

struct Shared {
    link: Link,
    scripts: Scripts,
    keys: [String; KEYS.len()],
    channel: String,
}

// === impl RedisLedger ===

impl RedisLedger {
    /// Connects to `redis://user:password@host:port/database`. Parameters: `namespace=` (`tidegate` by default)
    /// keeps installations apart that share a server, `timeout_ms=` (1000 by default) is how long a call may take.
    ///
    /// # Errors
    ///
    /// [`Unusable`](LedgerError::Unusable) when the address can't be read or the server does not let us in,
    /// [`Unavailable`](LedgerError::Unavailable) when it may work later.
    pub async fn connect(url: &str) -> Result<Self, LedgerError> {
        let settings = Settings::parse(url)?;
        let changes = Changes::new();
        let (channel, keys) = (settings.key("changed"), KEYS.map(|name| settings.key(name)));
        let link = Link::new(settings, channel.clone(), changes.clone());
        let shared = Shared { link, scripts: Scripts::new(), keys, channel };
        let ledger = Self { shared: Arc::new(shared), changes };
        // Whatever may be wrong with the server shows now, and not with the first task.
        ledger.latest_fence().await?;
        Ok(ledger)
    }

    /// A call of a script, with all keys and the first argument of all.
    fn call<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        let mut call = script.prepare_invoke();
        for key in &self.shared.keys {
            call.key(key);
        }
        call.arg(&self.shared.channel);
        call
    }

    fn unusable(&self, what: &str) -> LedgerError {
        let shown = &self.shared.link.settings().shown;
        LedgerError::Unusable(format!("{shown}: {what}"))
    }

    fn number(&self, text: &str) -> Result<u64, LedgerError> {
        text.parse().map_err(|_| {
            self.unusable("its content belongs to another program: give a namespace of its own")
        })
    }
}

impl fmt::Debug for RedisLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisLedger").field(self.shared.link.settings()).finish()
    }
}

impl Ledger for RedisLedger {
    async fn declare(&self, executor: &str, slots: u32) -> Result<(), LedgerError> {
        SlotLedger::check_declaration(executor, slots)?;
        let mut call = self.call(&self.shared.scripts.declare);
        call.arg(executor).arg(slots);
        call.arg(millis(SlotLedger::DECLARED_FOR)).arg(SlotLedger::EXECUTORS_MAX);
        let answer: Vec<String> = self.shared.link.run(&call).await?;
        match answer.first().map(String::as_str) {
            Some("done") => Ok(()),
            Some("full") => Err(LedgerRefused::TooManyExecutors.into()),
            _ => Err(self.unusable("its answer is not one")),
        }
    }

    async fn acquire(&self, request: &SlotRequest) -> Result<Acquired, LedgerError> {
        SlotLedger::check(request)?;
        let SlotRequest { holder, priority, executors, ttl } = request;
        let mut call = self.call(&self.shared.scripts.acquire);
        call.arg(holder.to_string()).arg(priority.index());
        call.arg(millis(SlotLedger::round_ttl(*ttl)));
        call.arg(SlotLedger::WAITERS_MAX).arg(SlotLedger::QUEUE_ENTRIES_MAX);
        for executor in executors {
            call.arg(&**executor);
        }
        let answer: Vec<String> = self.shared.link.run(&call).await?;
        let answer: Vec<&str> = answer.iter().map(String::as_str).collect();
        match answer[..] {
            ["granted", fence, executor] => {
                let (holder, fence) = (holder.clone(), self.number(fence)?);
                Ok(Acquired::Granted(SlotLease { holder, executor: executor.into(), fence }))
            }
            ["waiting", ahead] => Ok(Acquired::Waiting { ahead: self.number(ahead)? }),
            ["full"] => Err(LedgerRefused::QueueFull.into()),
            _ => Err(self.unusable("its answer is not one")),
        }
    }

    async fn renew(&self, lease: &SlotLease, ttl: Duration) -> Result<bool, LedgerError> {
        let mut call = self.call(&self.shared.scripts.renew);
        call.arg(lease.holder.to_string()).arg(lease.fence.to_string());
        call.arg(millis(SlotLedger::round_ttl(ttl)));
        self.shared.link.run(&call).await
    }

    async fn release(&self, lease: &SlotLease) -> Result<bool, LedgerError> {
        let mut call = self.call(&self.shared.scripts.release);
        call.arg(lease.holder.to_string()).arg(lease.fence.to_string());
        self.shared.link.run(&call).await
    }

    async fn withdraw(&self, holder: &ExecutionKey) -> Result<bool, LedgerError> {
        let mut call = self.call(&self.shared.scripts.withdraw);
        call.arg(holder.to_string());
        self.shared.link.run(&call).await
    }

    async fn reconcile(
        &self,
        executor: &str,
        running: &[ExecutionKey],
        asked_after: u64,
    ) -> Result<u64, LedgerError> {
        let mut call = self.call(&self.shared.scripts.reconcile);
        call.arg(executor).arg(asked_after.to_string());
        for holder in running {
            call.arg(holder.to_string());
        }
        self.shared.link.run(&call).await
    }

    async fn latest_fence(&self) -> Result<u64, LedgerError> {
        let call = self.call(&self.shared.scripts.latest_fence);
        let fence: String = self.shared.link.run(&call).await?;
        self.number(&fence)
    }

    async fn held(&self, executor: &str) -> Result<u32, LedgerError> {
        let mut call = self.call(&self.shared.scripts.held);
        call.arg(executor);
        self.shared.link.run(&call).await
    }

    async fn changed(&self) {
        let wait_max = if self.shared.link.is_up() { WAIT_MAX } else { WAIT_MAX_UNHEARD };
        self.changes.wait(wait_max).await;
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

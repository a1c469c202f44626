use super::checks;
use super::executors::{Executors, nth};
use super::ledger::LedgerModel;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::capacity::{
    Dispatcher, ExecutorAnswer, ExecutorId, ExecutorRuntimes, LeaseAnswer, Order, Placement,
    RuntimeId, Ticket,
};

/// Something that happens. Numbers choose among what is there.
#[derive(Clone, Debug)]
pub enum Op {
    Submit { priority: u8, runtime: u16 },
    Deliver(usize),
    LoseAnswer(usize),
    DoubleAnswer(usize),
    Finish(usize),
    Withdraw(usize),
    Down(usize),
    Crash(usize),
    Up { executor: usize, serves: u8 },
    AskReport(usize),
    Foreign(usize),
    Ledger { available: bool },
    LedgerChanged,
    Advance(u64),
}

/// Where an attempt is, by what the manager has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Waits,
    AsksLedger,
    InLedgerLine,
    Reserves(ExecutorId),
    Sent(ExecutorId),
    Runs(ExecutorId),
}

/// Messages in flight, unordered.
#[derive(Clone, Debug)]
enum Message {
    Request { order: Order, number: u64 },
    ExecutorAnswer { order: Order, number: u64, answer: ExecutorAnswer },
    Over(Ticket),
    Cancel(Ticket),
    Report { executor: ExecutorId, taken: u32, changes: u64 },
}

/// A manager around the dispatcher, with everything that it talks to.
pub struct Model {
    pub placement: Placement,
    pub dispatcher: Dispatcher,
    pub now: Duration,
    pub views: BTreeMap<Ticket, View>,
    pub wants: BTreeMap<Ticket, (MessagePriority, RuntimeId)>,
    pub executors: Executors,
    pub ledger: LedgerModel,
    pub ledger_paused_until: Duration,
    messages: Vec<Message>,
    /// The last order of each attempt: what was said to an earlier one is not listened to any more.
    numbers: BTreeMap<Ticket, u64>,
    number_next: u64,
    chance: u64,
}

// === impl Model ===

impl Model {
    pub fn new(placement: Placement, maxes: &[u32]) -> Self {
        let mut dispatcher = Dispatcher::new(placement);
        for (id, max) in (0..).zip(maxes) {
            dispatcher.executor_up(ExecutorId(id), *max, ExecutorRuntimes::All);
        }
        Self {
            placement,
            dispatcher,
            now: Duration::ZERO,
            views: BTreeMap::new(),
            wants: BTreeMap::new(),
            executors: Executors::new(maxes),
            ledger: LedgerModel::default(),
            ledger_paused_until: Duration::ZERO,
            messages: Vec::new(),
            numbers: BTreeMap::new(),
            number_next: 0,
            chance: 7,
        }
    }

    pub fn step(&mut self, op: &Op) {
        self.happens(op);
        self.place();
        checks::after_placing(self);
    }

    /// As the manager does after everything that happens.
    fn place(&mut self) {
        let before = self.dispatcher.clone();
        let mut chance = self.chance;
        let orders = self.dispatcher.orders(self.now, &mut || next(&mut chance));
        self.chance = chance;
        checks::orders(self, &before, &orders);
        self.obey_all(orders);
    }

    fn obey_all(&mut self, orders: Vec<Order>) {
        for order in orders {
            // Nobody is left whom it could have: it is in the manager's own line again.
            if let Order::Unlease { ticket } = order {
                self.views.insert(ticket, View::Waits);
            }
            self.obey(order);
        }
    }

    fn obey(&mut self, order: Order) {
        let (ticket, view) = match &order {
            Order::Execute { ticket, executor } => (*ticket, View::Sent(*executor)),
            Order::Reserve { ticket, executor } => (*ticket, View::Reserves(*executor)),
            Order::Lease { ticket, .. } => (*ticket, View::AsksLedger),
            Order::Unlease { .. } => return self.ledger.ask(order),
        };
        let old = self.views.insert(ticket, view).expect("an attempt that was submitted");
        let came_from = match &order {
            Order::Execute { executor, .. } => {
                matches!(old, View::Waits | View::AsksLedger | View::InLedgerLine)
                    || old == View::Reserves(*executor)
            }
            Order::Lease { .. } => matches!(old, View::Waits | View::InLedgerLine),
            _ => old == View::Waits,
        };
        assert!(came_from, "{order:?} of one that is {old:?}");
        if let Order::Lease { .. } = order {
            return self.ledger.ask(order);
        }
        self.request(order);
    }

    fn request(&mut self, order: Order) {
        self.number_next += 1;
        let number = self.number_next;
        self.numbers.insert(of(&order), number);
        self.messages.push(Message::Request { order, number });
    }

    /// True if this is the last order of an attempt, and is unanswered.
    fn awaits(&self, order: &Order, number: u64) -> bool {
        let ticket = of(order);
        self.numbers.get(&ticket) == Some(&number)
            && match (order, self.views.get(&ticket)) {
                (Order::Execute { executor, .. }, Some(View::Sent(at))) => at == executor,
                (Order::Reserve { executor, .. }, Some(View::Reserves(at))) => at == executor,
                _ => false,
            }
    }

    fn executor(&self, index: usize) -> ExecutorId {
        ExecutorId(u32::try_from(index % self.executors.maxes.len()).unwrap())
    }

    fn happens(&mut self, op: &Op) {
        match *op {
            Op::Submit { priority, runtime } => self.submit(priority, runtime),
            Op::Deliver(index) => {
                if let Some(at) = index.checked_rem(self.messages.len()) {
                    let message = self.messages.swap_remove(at);
                    self.deliver(message);
                }
            }
            Op::LoseAnswer(index) => {
                // Whoever misses an answer asks again with the same key, and hears no more of the first request.
                if let Some(at) = index.checked_rem(self.messages.len())
                    && let Message::ExecutorAnswer { order, number, .. } = self.messages[at].clone()
                {
                    self.messages.swap_remove(at);
                    if self.awaits(&order, number) {
                        self.request(order);
                    }
                }
            }
            Op::DoubleAnswer(index) => {
                if let Some(at) = index.checked_rem(self.messages.len())
                    && let Message::ExecutorAnswer { .. } = self.messages[at]
                {
                    self.messages.push(self.messages[at].clone());
                }
            }
            Op::Finish(index) => {
                let over = self.executors.finish(index).map(Message::Over);
                self.messages.extend(over);
            }
            Op::Withdraw(index) => self.withdraw(index),
            Op::Down(index) => {
                let executor = self.executor(index);
                self.executors.alive[executor.0 as usize] = false;
                self.dispatcher.executor_down(executor);
            }
            Op::Crash(index) => {
                let executor = self.executor(index);
                let lost = self.executors.crash(executor);
                self.messages.extend(lost.into_iter().map(Message::Over));
            }
            Op::Up { executor, serves } => self.up(self.executor(executor), serves),
            Op::AskReport(index) => {
                let executor = self.executor(index);
                let taken = self.executors.taken(executor, self.now);
                let changes = self.dispatcher.changes(executor);
                self.messages.push(Message::Report { executor, taken, changes });
            }
            Op::Foreign(index) => self.executors.foreign(self.executor(index), self.now),
            Op::Ledger { available } => self.ledger_speaks(available),
            Op::LedgerChanged => {
                let orders = self.dispatcher.ledger_changed(self.now);
                self.obey_all(orders);
            }
            Op::Advance(ms) => self.now += Duration::from_millis(ms),
        }
    }

    fn submit(&mut self, priority: u8, runtime: u16) {
        let ticket = Ticket(self.wants.len() as u64);
        let priority = MessagePriority::ALL[usize::from(priority)];
        let runtime = RuntimeId(runtime);
        self.wants.insert(ticket, (priority, runtime));
        self.views.insert(ticket, View::Waits);
        self.dispatcher.submit(ticket, priority, runtime);
        // Twice is once, wherever it is.
        self.dispatcher.submit(Ticket(ticket.0 / 2), priority, runtime);
        let gone = !self.views.contains_key(&Ticket(ticket.0 / 2));
        if gone {
            self.dispatcher.withdraw(Ticket(ticket.0 / 2));
        }
    }

    fn withdraw(&mut self, index: usize) {
        let Some((ticket, _)) = nth(&self.views, index) else { return };
        self.views.remove(&ticket);
        self.messages.push(Message::Cancel(ticket));
        if let Some(order) = self.dispatcher.withdraw(ticket) {
            self.obey(order);
        }
    }

    fn up(&mut self, executor: ExecutorId, serves: u8) {
        self.executors.alive[executor.0 as usize] = true;
        let max = self.executors.maxes[executor.0 as usize];
        let serves = match serves {
            0 => ExecutorRuntimes::All,
            other => ExecutorRuntimes::Only(vec![RuntimeId(u16::from(other) - 1)]),
        };
        self.dispatcher.executor_up(executor, max, serves);
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Request { order, number } => {
                if self.awaits(&order, number) {
                    let answer = self.executors.hear(&order, self.now);
                    self.messages.push(Message::ExecutorAnswer { order, number, answer });
                }
            }
            Message::ExecutorAnswer { order, number, answer } => {
                if self.numbers.get(&of(&order)) == Some(&number) {
                    self.answered(&order, answer);
                }
            }
            Message::Over(ticket) => {
                self.views.remove(&ticket);
                if let Some(order) = self.dispatcher.finished(ticket) {
                    self.obey(order);
                }
            }
            Message::Cancel(ticket) => self.executors.cancel(ticket),
            Message::Report { executor, taken, changes } => {
                self.dispatcher.reported(executor, taken, changes);
            }
        }
    }

    fn answered(&mut self, order: &Order, answer: ExecutorAnswer) {
        let ticket = of(order);
        let asked = self.awaits(order, self.numbers[&ticket]);
        let next = match order {
            Order::Execute { .. } => self.dispatcher.answered(ticket, answer, self.now),
            _ => self.dispatcher.reserved(ticket, answer, self.now),
        };
        if !asked {
            assert_eq!(next, None, "the second of two answers changes nothing");
            return;
        }
        match (order, answer) {
            (Order::Execute { executor, .. }, ExecutorAnswer::Accepted) => {
                self.views.insert(ticket, View::Runs(*executor));
            }
            (_, ExecutorAnswer::Accepted) => {}
            _ => {
                self.views.insert(ticket, View::Waits);
            }
        }
        if let Some(order) = next {
            self.obey(order);
        }
    }

    fn ledger_speaks(&mut self, available: bool) {
        let Some((ticket, answer)) = self.ledger.replies.pop_front() else {
            let maxes = self.executors.maxes.clone();
            return self.ledger.hear(&maxes, available);
        };
        let asks = matches!(self.views.get(&ticket), Some(View::AsksLedger | View::InLedgerLine));
        let next = self.dispatcher.leased(ticket, answer, self.now);
        if asks {
            match answer {
                LeaseAnswer::Granted(_) => {}
                LeaseAnswer::Waiting => {
                    let left = matches!(next, Some(Order::Unlease { .. }));
                    let view = if left { View::Waits } else { View::InLedgerLine };
                    self.views.insert(ticket, view);
                }
                LeaseAnswer::Unavailable => {
                    self.views.insert(ticket, View::InLedgerLine);
                    self.ledger_paused_until = self.now + Duration::from_millis(200);
                }
            }
        }
        if let Some(order) = next {
            self.obey(order);
        }
    }

    /// Everything becomes well, and everything ends.
    pub fn drain(&mut self) {
        for _ in 0..self.wants.len() * 4 + 40 {
            self.executors.foreign_all_gone(self.now);
            for index in 0..self.executors.maxes.len() {
                self.step(&Op::Up { executor: index, serves: 0 });
                self.step(&Op::AskReport(index));
            }
            while !self.messages.is_empty() || !self.ledger.is_quiet() {
                self.step(&Op::Deliver(0));
                self.step(&Op::Ledger { available: true });
            }
            while !self.executors.is_idle() {
                self.step(&Op::Finish(0));
            }
            self.step(&Op::Advance(1_500));
            self.step(&Op::LedgerChanged);
            if self.views.is_empty() && self.messages.is_empty() && self.ledger.is_quiet() {
                break;
            }
        }
        assert!(self.views.is_empty(), "{}: {:?} never ended", self.placement, self.views);
        assert!(self.dispatcher.queue().is_empty());
        assert!(self.ledger.is_empty(), "{:?} is not given back", self.ledger);
        assert!(self.dispatcher.fleet().iter().all(|(_, it)| it.own == 0));
    }
}

fn of(order: &Order) -> Ticket {
    match order {
        Order::Execute { ticket, .. }
        | Order::Reserve { ticket, .. }
        | Order::Lease { ticket, .. }
        | Order::Unlease { ticket } => *ticket,
    }
}

pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    *state >> 33
}

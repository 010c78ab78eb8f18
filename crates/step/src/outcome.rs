//! What a step came to: plain data, read off its timeline.

use pipestep_engine::{Bytes, Duration, Interval, Level, Peak, Time, Timeline};
use pipestep_schedule::{Orders, Rank};

/// The accounts of a rank's memory ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// Kept by forwards for backwards.
    Activations,
    /// Computed again during backwards.
    Workspace,
    /// Results on their way to another rank.
    SendBuffers,
    /// Messages that have arrived or are arriving.
    ReceiveBuffers,
    /// Weights, for the whole step.
    Weights,
    /// Gradients, for the whole step.
    Gradients,
    /// Optimizer state, for the whole step.
    Optimizer,
    /// Communication buckets and buffers of checkpoints on the device, for the whole step.
    Buckets,
}

/// How many accounts a ledger has.
pub const ACCOUNTS: usize = Account::ALL.len();

impl Account {
    /// All accounts, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Activations,
        Self::Workspace,
        Self::SendBuffers,
        Self::ReceiveBuffers,
        Self::Weights,
        Self::Gradients,
        Self::Optimizer,
        Self::Buckets,
    ];

    /// The name in CSV and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activations => "activations",
            Self::Workspace => "workspace",
            Self::SendBuffers => "send_buffers",
            Self::ReceiveBuffers => "receive_buffers",
            Self::Weights => "weights",
            Self::Gradients => "gradients",
            Self::Optimizer => "optimizer",
            Self::Buckets => "buckets",
        }
    }
}

/// One rank's share of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankOutcome {
    /// Sum of its F, B, I and W (no update).
    pub busy: Duration,
    /// Last gradient of all ranks - setup - busy.
    pub idle: Duration,
    /// Start of its first F, B, I or W.
    pub first_start: Time,
    /// End of its last F, B, I or W.
    pub last_end: Time,
    /// Its update `U`.
    pub update: Interval,
    /// The highest level of its ledger, when it is and what it consists of.
    pub peak: Peak<ACCOUNTS>,
}

impl RankOutcome {
    /// Last end - first start of its F, B, I and W.
    pub const fn span(&self) -> Duration {
        self.last_end.since(self.first_start)
    }
}

/// Messages of a whole step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Activations sent.
    pub forward: u64,
    /// Gradients sent.
    pub backward: u64,
    /// Bytes of both.
    pub bytes: Bytes,
}

/// The times of a step, without memory or record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// The end of everything, setup and updates included, counted from 0.
    pub makespan: Time,
    /// The end of the last F, B, I or W of all ranks.
    pub gradient_ready: Time,
    /// Time before anything else.
    pub setup: Duration,
    /// By rank: busy.
    pub busy: Vec<Duration>,
    /// By rank: from the first start to the last end of its F, B, I and W.
    pub active: Vec<Interval>,
    /// By rank: its update.
    pub updates: Vec<Interval>,
}

/// A step's summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The end of everything, setup and updates included, counted from 0.
    pub makespan: Time,
    /// The end of the last F, B, I or W of all ranks.
    pub gradient_ready: Time,
    /// Time before anything else.
    pub setup: Duration,
    /// The longest rank span (last end - first start of a rank's F, B, I and W).
    pub longest_span: Duration,
    /// The makespan of the same orders with every transfer of length zero.
    pub zero_transfer_makespan: Time,
    /// By rank.
    pub ranks: Vec<RankOutcome>,
    /// Messages sent.
    pub messages: Messages,
}

/// The three bubble rates that the field uses; see [`Summary::bubble`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bubble {
    /// (G - ideal) / G, where G = last gradient - setup and ideal is the busy time of the busiest rank.
    pub by_makespan: f64,
    /// (L - ideal) / L, where L is the longest rank span (the Zero Bubble paper's).
    pub by_longest_span: f64,
    /// (G - ideal) / ideal.
    pub over_ideal: f64,
}

impl Summary {
    /// The bubble rates. A rate whose divisor is zero (a step of no length) is zero.
    pub fn bubble(&self) -> Bubble {
        let ideal = self.ranks.iter().map(|rank| rank.busy).max().unwrap_or_default().as_nanos() as f64;
        let gradient = self.gradient_ready.since(Time::ZERO).as_nanos() - self.setup.as_nanos();
        let (gradient, longest) = (gradient as f64, self.longest_span.as_nanos() as f64);
        let rate = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Bubble {
            by_makespan: rate(gradient - ideal, gradient),
            by_longest_span: rate(longest - ideal, longest),
            over_ideal: rate(gradient - ideal, ideal),
        }
    }

    /// From the end of the setup to the last gradient: the time in which ranks are busy or idle.
    pub fn working_time(&self) -> Duration {
        Duration::from_nanos(self.gradient_ready.as_nanos().saturating_sub(self.setup.as_nanos()))
    }

    /// The busy time of all ranks as a share of ranks times working time; zero for a step of no length.
    pub fn utilisation(&self) -> f64 {
        let busy: u128 = self.ranks.iter().map(|rank| u128::from(rank.busy.as_nanos())).sum();
        let whole = self.working_time().as_nanos() as f64 * self.ranks.len() as f64;
        if whole > 0.0 { busy as f64 / whole } else { 0.0 }
    }

    /// The highest peak of all ranks, with its rank.
    pub fn highest_peak(&self) -> (Rank, Bytes) {
        let peaks = self.ranks.iter().map(|rank| rank.peak.bytes);
        // The first of equal ones.
        let best = peaks.enumerate().max_by_key(|&(rank, bytes)| (bytes, std::cmp::Reverse(rank)));
        best.map_or((Rank(0), Bytes::ZERO), |(rank, bytes)| (Rank(rank as u16), bytes))
    }
}

/// When everything ran. Operations are numbered by their place in [`Orders::all`]; the message of an operation
/// has the same number in `messages` ([`Interval::NEVER`] where it sends none).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The orders that ran.
    pub orders: Orders,
    /// F, B, I and W.
    pub ops: Timeline,
    /// Activations and gradients.
    pub messages: Timeline,
    /// By rank: the update.
    pub updates: Vec<Interval>,
}

/// The memory curve of one rank.
pub type MemoryCurve = Vec<Level<ACCOUNTS>>;

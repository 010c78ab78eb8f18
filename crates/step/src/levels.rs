//! How many bytes each rank holds in all: the curve, its peak and what that consists of, read off a run that is over.
//!
//! Little is needed for it: the messages of each pair of ranks, which a run tells of as it goes ([`flights`]), and the
//! instants at which inputs were there, since an operation starts when its input is there and its rank is free. A
//! rank's operations are in order of time, and so are the messages of each link. Woven together ([`weave`]) they give
//! all changes of its level, and none is stored.
//!
//! Only the sum of all accounts is kept; what it consists of at the peak follows from how far the rank had come by
//! then. [`crate::memory`] reads every account off a finished record, and a property test holds the two together.

mod flights;
mod lines;
mod weave;

use pipestep_engine::{Bytes, LARGEST_LEVEL, LedgerError, Peak, Time, TotalCurve};
use pipestep_schedule::{Op, Orders, Rank};

use self::flights::{Flights, Keeping};
use self::lines::Lines;
use self::weave::{Level, Reader, Top};
use crate::bytes::{StepBytes, held};
use crate::lengths::{Lengths, Scaled, Usual};
use crate::rows::Rows;
use crate::{ACCOUNTS, Account, Inputs, StepError};

/// The levels of all ranks, with their memory kept from one run to the next; `C` is what becomes of the curves.
#[derive(Clone, Debug, Default)]
pub struct Levels<C> {
    ranks: Vec<RankLevel<C>>,
    bytes: StepBytes,
    lines: Lines,
    flights: Flights,
}

/// One rank.
#[derive(Clone, Debug, Default)]
struct RankLevel<C> {
    top: Top,
    curve: C,
}

/// A run of fixed orders that is over.
pub(crate) struct Ended<'a, I> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) orders: &'a Orders,
    pub(crate) rows: &'a Rows,
    /// When the input of a slot was there, in ns from the origin that the run told of.
    pub(crate) there: I,
    pub(crate) origin: u64,
}

impl<C: TotalCurve + Default> Levels<C> {
    /// No levels yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A rank's curve in the last run.
    pub fn curve(&self, rank: Rank) -> &C {
        &self.ranks[rank.index()].curve
    }

    /// A rank's peak in the last run, which was that of `inputs` and `orders`.
    pub fn peak(&self, inputs: &Inputs, orders: &Orders, rank: Rank) -> Peak<ACCOUNTS> {
        let top = &self.ranks[rank.index()].top;
        let mut accounts = [0; ACCOUNTS];
        if top.level > 0 {
            accounts = self.accounts(inputs, orders.rank(rank), rank, top);
        }
        Peak { bytes: bytes(top.level), at: Time::from_nanos(top.at), accounts: accounts.map(bytes) }
    }

    /// What the highest level consists of.
    fn accounts(&self, inputs: &Inputs, list: &[Op], rank: Rank, top: &Top) -> [i64; ACCOUNTS] {
        let mut accounts = held(inputs, rank);
        let mut add = |account: Account, bytes: i64| accounts[account as usize] += bytes;
        for bytes in list[..top.starts].iter().map(|&op| self.bytes.of(inputs, op)) {
            add(Account::Activations, bytes.kept);
            add(Account::Workspace, bytes.used);
            add(Account::ReceiveBuffers, -bytes.consumed);
        }
        for bytes in list[..top.ends].iter().map(|&op| self.bytes.of(inputs, op)) {
            add(Account::Activations, -bytes.freed);
            add(Account::Workspace, -bytes.unused);
        }
        add(Account::ReceiveBuffers, top.received);
        // The rest is on its way out.
        accounts[Account::SendBuffers as usize] = top.level - accounts.iter().sum::<i64>();
        accounts
    }

    /// Keeps what reading needs of the run that is to come, and tells `other` of it too.
    ///
    /// # Errors
    /// [`StepError::Ledger`] for more bytes than a ledger can hold.
    pub(crate) fn observe<'a, O>(
        &'a mut self,
        inputs: &'a Inputs,
        orders: &'a Orders,
        rows: &Rows,
        other: O,
    ) -> Result<Keeping<'a, O>, StepError> {
        self.bytes.compile(inputs, rows);
        check(self.bytes.largest(inputs), 0)?;
        self.flights.reset(inputs.shape().ranks(), rows);
        Ok(Keeping { inputs, orders, bytes: &self.bytes, flights: &mut self.flights, other })
    }

    /// Reads the levels off a run that was observed.
    ///
    /// # Errors
    /// [`StepError::Ledger`] for more bytes than a ledger can hold.
    pub(crate) fn read<I: Fn(u32) -> u64 + Copy>(&mut self, run: &Ended<'_, I>) -> Result<(), StepError> {
        self.lines.compile(run.inputs, run.rows, &self.bytes);
        self.ranks.resize_with(run.inputs.shape().ranks(), RankLevel::default);
        if run.inputs.costs().micro_batch_scale.is_empty() {
            self.read_all(run, Usual)
        } else {
            self.read_all(run, Scaled(run.inputs.costs()))
        }
    }

    fn read_all<I: Fn(u32) -> u64 + Copy, L: Lengths>(
        &mut self,
        run: &Ended<'_, I>,
        lengths: L,
    ) -> Result<(), StepError> {
        let Self { ranks, bytes, lines, flights } = self;
        let reader = Reader { run, lengths, bytes, lines };
        for (rank, of_rank) in (0..).map(Rank).zip(ranks) {
            of_rank.curve.clear();
            let messages = flights.of(rank, run.inputs.links);
            let held = held(run.inputs, rank).iter().sum();
            let instants = [run.origin, run.origin + run.inputs.costs().setup.as_nanos()];
            let level = Level::new(held, instants, messages, &mut of_rank.curve);
            of_rank.top = reader.weave(run.orders.rank(rank), level);
            of_rank.top.at -= run.origin;
            check((of_rank.top.level, rank), of_rank.top.at)?;
        }
        Ok(())
    }
}

/// Refuses what a ledger can't hold.
fn check((level, rank): (i64, Rank), at: u64) -> Result<(), StepError> {
    if level > LARGEST_LEVEL {
        let source = LedgerError::TooLarge { at: Time::from_nanos(at) };
        return Err(StepError::Ledger { rank, source });
    }
    Ok(())
}

/// Levels never fall below zero: what is freed was held.
#[inline]
const fn bytes(level: i64) -> Bytes {
    Bytes::new(level.unsigned_abs())
}

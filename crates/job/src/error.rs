//! What can be wrong with the inputs of a job, and what can stop one.

use pipestep_engine::{Bytes, Duration, LedgerError, Overflow, Time};

use crate::Ratio;

/// Inputs that mean nothing, or contradict each other. Every message says what to write instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InputError {
    /// Nothing says when the job ends.
    #[error("the job has no end: give it `work` (useful time to do) or a `horizon` (when to stop)")]
    NoEnd,
    /// A length, rate or count that must be positive is zero.
    #[error("`{what}` is zero, expected more than zero")]
    Zero {
        /// The key, as design section 4 names it.
        what: &'static str,
    },
    /// A share or a probability outside 0..=1.
    #[error("`{what}` is {value}, expected a share between 0 and 1")]
    Share {
        /// The key.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// A distribution that cannot be.
    #[error("`{what}` is not a distribution of lengths: {reason}")]
    Distribution {
        /// The key.
        what: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A checkpoint that does not fit into one of its buffers.
    #[error("a checkpoint of {size} does not fit into a buffer of {buffer}")]
    Buffer {
        /// The checkpoint.
        size: Bytes,
        /// One buffer.
        buffer: Bytes,
    },
    /// Something that needs the size of a checkpoint, which is not known.
    #[error("`{what}` needs the size of a checkpoint: give `checkpoint.size` or a model")]
    NoSize {
        /// The key that needs it.
        what: &'static str,
    },
    /// Something that needs the length of a step, which is not known.
    #[error("`{what}` needs the length of a step: give `job.step` or a simulated step")]
    NoStep {
        /// The key that needs it.
        what: &'static str,
    },
    /// Something that needs checkpoints, and there are none.
    #[error("`{what}` needs a `[checkpoint]` table")]
    NoCheckpoint {
        /// The key that needs it.
        what: &'static str,
    },
    /// A slow window that ends before it starts.
    #[error("a slow window from {from} to {to} has no length")]
    EmptyWindow {
        /// Its start.
        from: Time,
        /// Its end.
        to: Time,
    },
    /// A factor below one: not a straggler.
    #[error("a factor of {factor} makes work faster, expected 1 or more")]
    FactorBelowOne {
        /// The factor.
        factor: Ratio,
    },
    /// Factors so fine that exact work would not fit into 128 bits.
    #[error(
        "the factors of the slow windows are too finely divided to be followed exactly: round them to three decimals"
    )]
    FactorsTooFine,
    /// More ranks taken away than there are.
    #[error("`{what}` takes away {taken} of {present} ranks, expected at most {most}", most = present.saturating_sub(1))]
    TooManyTaken {
        /// The key.
        what: &'static str,
        /// How many go.
        taken: u64,
        /// How many there are.
        present: u64,
    },
    /// More workers stopped than there are.
    #[error("`input.stops` stops {stopped} of {workers} workers, expected at most {workers}")]
    TooManyStopped {
        /// How many stop.
        stopped: u32,
        /// How many there are.
        workers: u32,
    },
    /// A checkpoint whose write never ends.
    #[error("`{what}` writes a checkpoint of {size} in more than the largest time, u64::MAX ns (584 years)")]
    NeverWritten {
        /// The key of the rate.
        what: &'static str,
        /// The size of a checkpoint.
        size: Bytes,
    },
    /// More replicas needed than there are.
    #[error(
        "`faults.spares.min_replicas` is {least} of {replicas} replicas, expected at most {replicas}: the fewest to go \
         on with"
    )]
    FewReplicas {
        /// The fewest to go on with.
        least: u32,
        /// How many there are.
        replicas: u32,
    },
    /// Something that needs the shared storage, and there is none.
    #[error("`{what}` goes to a shared storage that is not described: give `[storage]`")]
    NoStorage {
        /// The key.
        what: &'static str,
    },
    /// A buffer that never holds what a step takes.
    #[error(
        "a step takes {wanted} items and the buffer holds {prefetch}: give `input.prefetch` at least as many"
    )]
    Prefetch {
        /// What a step takes.
        wanted: u32,
        /// What the buffer holds.
        prefetch: u32,
    },
    /// Steps of two lengths.
    #[error("the input feeds steps of {input} and the ranks take {ranks} for one")]
    StepsDiffer {
        /// The step of the input.
        input: Duration,
        /// The step of the ranks.
        ranks: Duration,
    },
    /// More overhead than step.
    #[error("an overhead of {overhead} does not fit into a step of {step}")]
    Overhead {
        /// The part of a step in which nobody computes.
        overhead: Duration,
        /// The step.
        step: Duration,
    },
    /// A response to slow ranks that are never noticed.
    #[error(
        "nothing notices slow ranks: give `stragglers.threshold` and `stragglers.window`, or `wait` or `drop`"
    )]
    NoDetection,
    /// A sample that fits into no pack.
    #[error(
        "a sample of {tokens} tokens does not fit into a pack of {pack}: give the pack more, or split samples"
    )]
    SampleTooLong {
        /// The longest sample.
        tokens: u64,
        /// A pack.
        pack: u64,
    },
    /// A list that must not be empty.
    #[error("`{what}` is empty, expected at least one entry")]
    Empty {
        /// The key.
        what: &'static str,
    },
}

/// Why a job has no outcome.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JobError {
    /// The inputs are wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Training waits for requests that pile up faster than they are served, for good.
    #[error(
        "the job never ends: every save pauses training for at least as long as the clock takes to ask for \
         the next, so {waiting} requests wait at {at} after {useful} of useful work; save less often, skip \
         or replace, or count the interval in work"
    )]
    Starved {
        /// Requests in line.
        waiting: usize,
        /// When the simulation gave up.
        at: Time,
        /// Useful work by then.
        useful: Duration,
    },
    /// Failure after failure without a checkpoint further than the last.
    #[error(
        "the job never ends: {failures} failures in a row without a checkpoint further than {useful} of \
         useful work, by {at}; failures must be rarer, saves more frequent or recovery faster"
    )]
    NoProgress {
        /// How many failures in a row.
        failures: u64,
        /// When the simulation gave up.
        at: Time,
        /// The work that the last checkpoint holds.
        useful: Duration,
    },
    /// The input never delivers.
    #[error("the job never ends: training waits for input at {at} and nothing will deliver it")]
    NoInput {
        /// Since when.
        at: Time,
    },
    /// More events than a simulation of a job may take.
    #[error(
        "more than {limit} events by {at}, with {useful} of useful work done: the intervals are too short for this job"
    )]
    TooManyEvents {
        /// The limit.
        limit: u64,
        /// When it was reached.
        at: Time,
        /// Useful work by then.
        useful: Duration,
    },
    /// A time or an amount past 64 bits.
    #[error(transparent)]
    Overflow(#[from] Overflow),
    /// Buffers past 64 bits of bytes.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

//! `[stragglers]` as it is written: slow windows, scatter of ranks, slow ranks and what is done about them.

use pipestep_engine::Duration;

use crate::chance::Chance;
use crate::format::job::JobTime;
use crate::read::{AboveZero, Count, Real, Word, Words};
use crate::table::table;
use crate::units::Share;

table! {
    /// What slows useful work down. A step waits for the slowest of its ranks.
    Stragglers requires [] {
        /// Windows in which useful work takes longer; where several overlap, the largest factor counts.
        windows: Vec<Window> = r#"[{ from = "200 s", to = "400 s", factor = 1.25 }]"#,
        /// How many data-parallel ranks a step waits for; those of `[parallel]` if left out.
        ranks: Count = "64",
        /// The part of a step in which no rank computes, so that it neither scatters nor gets slower; none if
        /// left out.
        overhead: Duration = r#""0.5 s""#,
        /// How the computing time of a rank scatters from step to step; not at all if left out.
        jitter: StepJitter = "",
        /// Ranks that become slow and stay so; none if left out.
        slow: Slow = "",
        /// A rank is suspect in a step in which it computes longer than the mean by more than this share of
        /// it; with `window`.
        threshold: Real = "0.1",
        /// A rank is noticed after so many suspect steps in a row; with `threshold`.
        window: Count = "5",
        /// What is done: every step waits (wait, the default), a noticed rank's share is done by the others
        /// (redistribute), it is replaced and the job goes back to its newest checkpoint (evict), no step waits
        /// for its slowest ranks (drop), or no step waits for a noticed rank, whose gradients come late (stale).
        response: Word<ResponseWord> = r#""evict""#,
        /// How long training pauses to redistribute; none if left out.
        pause: Duration = r#""30 s""#,
        /// How many of the slowest ranks no step waits for; 1 if left out.
        drop: Count = "1",
        /// How many steps late a gradient may be; 1 if left out.
        staleness: Count = "2",
    }
}

table! {
    /// A window in which useful work takes longer.
    Window requires [from, to, factor] {
        /// Its first instant.
        from: Duration = r#""200 s""#,
        /// The first instant after it.
        to: Duration = r#""400 s""#,
        /// How many times as long work takes: a decimal or a fraction, kept exactly.
        factor: AboveZero = "1.25",
    }
}

table! {
    /// How the computing time of a healthy rank scatters, as a multiple of its usual time.
    StepJitter requires [distribution] {
        /// The family: normal with `deviation`, lognormal with `variation`, exponential (1 and a `tail`), or
        /// two-point (`factor` with a `probability`).
        distribution: Word<JitterWord> = r#""normal""#,
        /// The standard deviation of a normal one.
        deviation: Real = "0.05",
        /// Standard deviation over mean of a lognormal one.
        variation: Real = "0.1",
        /// The mean of an exponential tail.
        tail: Real = "0.05",
        /// How many times as long a slow step of a rank takes.
        factor: Real = "2",
        /// How likely a slow step of a rank is.
        probability: Share = "0.001",
    }
}

table! {
    /// Ranks that become slow and stay so.
    Slow requires [factor] {
        /// One rank becomes slow at each of these instants.
        at: Vec<Duration> = r#"["1 h"]"#,
        /// Until a healthy rank becomes slow, for each rank; a plain time is the mean of an exponential
        /// distribution; only at the fixed instants if left out.
        mtbf: Chance<JobTime> = r#""30 d""#,
        /// How many times as long a slow rank computes: a decimal or a fraction.
        factor: AboveZero = "1.5",
        /// How long it stays slow; until it is replaced if left out.
        lasts: Chance<JobTime> = r#""2 h""#,
    }
}

/// What is done about slow ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseWord {
    Wait,
    Redistribute,
    Evict,
    Drop,
    Stale,
}

impl Words for ResponseWord {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("wait", Self::Wait),
        ("redistribute", Self::Redistribute),
        ("evict", Self::Evict),
        ("drop", Self::Drop),
        ("stale", Self::Stale),
    ];
}

/// A family of scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JitterWord {
    Normal,
    Lognormal,
    Exponential,
    TwoPoint,
}

impl Words for JitterWord {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("normal", Self::Normal),
        ("lognormal", Self::Lognormal),
        ("exponential", Self::Exponential),
        ("two-point", Self::TwoPoint),
    ];
}

//! The books of a run: counts, integrals and rounds, and how they become the outcome.
//!
//! One idea: everything is counted from the start; the measured window is the difference between two readings.

use std::collections::VecDeque;

use pipestep_engine::{Duration, Time};

use crate::RlInputs;
use crate::histogram::Histogram;
use crate::inputs::Placement;
use crate::meter::States;
use crate::outcome::{Cost, Counts, RlOutcome, Round, Split, StageUse, Tail};
use crate::response::Sample;

/// What the trainer does or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    RolloutWait,
    ScoringWait,
    Handoff,
    Update,
    Sync,
    Switch,
    Turn,
    Down,
}

const PACES: usize = 8;

/// Integrals of busy servers, in nanoseconds times servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    pub(crate) engines: u128,
    pub(crate) slots: u128,
    pub(crate) pools: Vec<u128>,
    pub(crate) trainer: u128,
    pub(crate) sync: u128,
    pub(crate) switch: u128,
}

/// The samples of one update.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    samples: u64,
    tokens: u64,
    longest_tokens: u64,
    /// Nanoseconds from launch to end, summed, and of the one that took longest.
    response_time: u64,
    longest_response: u64,
}

/// The books.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    pub(crate) pace: States<PACES>,
    warmup: u32,
    /// Rounds ended.
    ended: u32,
    last_end: Time,
    last_spent: [u64; PACES],
    /// How long the rollouts took whose rounds have not ended.
    generations: VecDeque<Duration>,
    /// What the last update trained on.
    batch: Batch,
    rounds: Vec<Round>,
    staleness: Vec<u64>,
    lengths: Histogram,
    /// Readings at the end of the warm-up.
    window: Option<(Time, Counts, Levels)>,
    /// All rounds to measure have ended.
    is_over: bool,
    /// Readings at that instant.
    last: (Counts, Levels),
}

impl Tally {
    pub(crate) fn new(warmup: u32) -> Self {
        Self {
            counts: Counts::default(),
            pace: States::new(Pace::RolloutWait as usize),
            warmup,
            ended: 0,
            last_end: Time::ZERO,
            last_spent: [0; PACES],
            generations: VecDeque::new(),
            batch: Batch::default(),
            rounds: Vec::new(),
            staleness: Vec::new(),
            lengths: Histogram::default(),
            window: None,
            is_over: false,
            last: (Counts::default(), Levels::default()),
        }
    }

    const fn measures(&self) -> bool {
        self.ended >= self.warmup && !self.is_over
    }

    /// When the last round ended.
    pub(crate) const fn last_end(&self) -> Time {
        self.last_end
    }

    pub(crate) fn rollout_over(&mut self, opened: Time, now: Time) {
        self.generations.push_back(now.since(opened));
    }

    /// The rollouts so far were lost.
    pub(crate) fn forget_rollouts(&mut self) {
        self.generations.clear();
    }

    pub(crate) fn finished(&mut self, tokens: u64) {
        self.counts.finished += 1;
        self.counts.finished_tokens += u128::from(tokens);
        if self.measures() {
            self.lengths.add(tokens);
        }
    }

    /// An update has ended that trained on these samples, on top of `trained` updates.
    pub(crate) fn trained_on(&mut self, samples: &[Sample], trained: u32) {
        let mut batch = Batch::default();
        for sample in samples {
            let time = sample.finished.since(sample.launched).as_nanos();
            batch.samples += 1;
            batch.tokens = batch.tokens.saturating_add(sample.tokens);
            batch.longest_tokens = batch.longest_tokens.max(sample.tokens);
            batch.response_time = batch.response_time.saturating_add(time);
            batch.longest_response = batch.longest_response.max(time);
            if self.measures() {
                let age = trained.saturating_sub(sample.version) as usize;
                if self.staleness.len() <= age {
                    self.staleness.resize(age + 1, 0);
                }
                self.staleness[age] += 1;
            }
        }
        self.counts.trained += batch.samples;
        self.counts.trained_tokens += u128::from(batch.tokens);
        self.batch = batch;
    }

    /// A round has ended. Returns whether all that are to be measured have.
    pub(crate) fn end_round(&mut self, now: Time, levels: Levels, measured: u32) -> bool {
        if self.is_over {
            return true;
        }
        let spent = self.pace.spent(now);
        let generation = self.generations.pop_front();
        if self.measures() {
            let Batch { samples, tokens, longest_tokens, response_time, longest_response } = self.batch;
            self.rounds.push(Round {
                start: self.last_end,
                end: now,
                split: split_between(&self.last_spent, &spent),
                generation,
                samples,
                tokens,
                longest_tokens,
                response_time: Duration::from_nanos(response_time),
                longest_response: Duration::from_nanos(longest_response),
            });
        }
        (self.last_end, self.last_spent) = (now, spent);
        self.ended += 1;
        self.is_over = self.ended == self.warmup + measured;
        if self.is_over {
            self.last = (self.counts, levels);
        } else if self.ended == self.warmup {
            self.window = Some((now, self.counts, levels));
        }
        self.is_over
    }

    /// The outcome of a run that is done.
    pub(crate) fn outcome(self, inputs: &RlInputs) -> RlOutcome {
        let (start, before, first) = self.window.unwrap_or_default();
        let (after, last) = self.last;
        let elapsed = self.last_end.since(start);
        let counts = difference(&before, &after);
        let count = self.rounds.len().max(1) as u64;
        let seconds = elapsed.as_secs_f64();
        let split = total(&self.rounds);
        let stages = stages(inputs, elapsed, &first, &last);
        let slots = u64::from(inputs.rollout.engines) * u64::from(inputs.rollout.slots);
        RlOutcome {
            elapsed,
            round: Duration::from_nanos(elapsed.as_nanos() / count),
            split,
            slots: stage("slots", slots, last.slots - first.slots, elapsed),
            useful_samples_per_s: per(counts.trained as f64, seconds),
            useful_tokens_per_s: per(counts.trained_tokens as f64, seconds),
            tail: tail(&self.rounds, &counts, u64::from(inputs.rollout.copies)),
            cost: cost(inputs, elapsed, count, counts.trained),
            memory: None,
            jobs: Vec::new(),
            rounds: self.rounds,
            stages,
            counts,
            staleness: self.staleness,
            lengths: self.lengths,
        }
    }
}

fn stages(inputs: &RlInputs, elapsed: Duration, first: &Levels, last: &Levels) -> Vec<StageUse> {
    let engines = u64::from(inputs.rollout.engines);
    let mut stages = vec![stage("rollout", engines, last.engines - first.engines, elapsed)];
    for (index, pool) in inputs.scoring.iter().enumerate() {
        let busy = last.pools[index] - first.pools.get(index).copied().unwrap_or(0);
        stages.push(stage(&pool.name, u64::from(pool.workers), busy, elapsed));
    }
    stages.push(stage("update", 1, last.trainer - first.trainer, elapsed));
    stages.push(stage("weight_sync", 1, last.sync - first.sync, elapsed));
    if matches!(inputs.placement, Placement::Colocated(_)) {
        stages.push(stage("switch", 1, last.switch - first.switch, elapsed));
    }
    stages
}

fn stage(name: &str, servers: u64, busy: u128, elapsed: Duration) -> StageUse {
    let mean = u64::try_from(busy / u128::from(servers.max(1))).unwrap_or(u64::MAX);
    let busy = mean.min(elapsed.as_nanos());
    StageUse {
        name: name.to_owned(),
        servers,
        busy: Duration::from_nanos(busy),
        idle: Duration::from_nanos(elapsed.as_nanos() - busy),
    }
}

fn split_between(before: &[u64; PACES], after: &[u64; PACES]) -> Split {
    let spent = |pace: Pace| Duration::from_nanos(after[pace as usize] - before[pace as usize]);
    Split {
        rollout: spent(Pace::RolloutWait),
        scoring: spent(Pace::ScoringWait),
        handoff: spent(Pace::Handoff),
        update: spent(Pace::Update),
        sync: spent(Pace::Sync),
        switch: spent(Pace::Switch),
        turn: spent(Pace::Turn),
        down: spent(Pace::Down),
    }
}

fn total(rounds: &[Round]) -> Split {
    let sum = |part: fn(&Split) -> Duration| {
        Duration::from_nanos(rounds.iter().map(|round| part(&round.split).as_nanos()).sum())
    };
    Split {
        rollout: sum(|split| split.rollout),
        scoring: sum(|split| split.scoring),
        handoff: sum(|split| split.handoff),
        update: sum(|split| split.update),
        sync: sum(|split| split.sync),
        switch: sum(|split| split.switch),
        turn: sum(|split| split.turn),
        down: sum(|split| split.down),
    }
}

fn difference(before: &Counts, after: &Counts) -> Counts {
    Counts {
        launched: after.launched - before.launched,
        launched_tokens: after.launched_tokens - before.launched_tokens,
        finished: after.finished - before.finished,
        finished_tokens: after.finished_tokens - before.finished_tokens,
        trained: after.trained - before.trained,
        trained_tokens: after.trained_tokens - before.trained_tokens,
        filtered: after.filtered - before.filtered,
        aborted: after.aborted - before.aborted,
        surplus: after.surplus - before.surplus,
        stale: after.stale - before.stale,
        interrupted: after.interrupted - before.interrupted,
        lost: after.lost - before.lost,
        regenerated: after.regenerated - before.regenerated,
        wasted_tokens: after.wasted_tokens - before.wasted_tokens,
        dropped_tokens: after.dropped_tokens - before.dropped_tokens,
        record_bytes: after.record_bytes - before.record_bytes,
        truncated_tokens: after.truncated_tokens - before.truncated_tokens,
        engine_failures: after.engine_failures - before.engine_failures,
        restarts: after.restarts - before.restarts,
    }
}

fn tail(rounds: &[Round], counts: &Counts, copies: u64) -> Tail {
    let count = rounds.len() as f64;
    let mean = |part: &dyn Fn(&Round) -> f64| per(rounds.iter().map(part).sum(), count);
    let mean_tokens = per(counts.trained_tokens as f64, counts.trained as f64);
    let longest_tokens = mean(&|round| round.longest_tokens as f64);
    let mean_time = mean(&|round| per(round.response_time.as_nanos() as f64, round.samples as f64));
    let longest_time = mean(&|round| round.longest_response.as_nanos() as f64);
    Tail {
        mean_tokens,
        longest_tokens,
        ratio: per(longest_tokens, mean_tokens),
        launched_mean_tokens: per(counts.launched_tokens as f64, (counts.launched * copies) as f64),
        waiting_share: if longest_time > 0.0 { 1.0 - mean_time / longest_time } else { 0.0 },
    }
}

fn cost(inputs: &RlInputs, elapsed: Duration, rounds: u64, trained: u64) -> Option<Cost> {
    let prices = inputs.prices.as_ref()?;
    let mut an_hour = prices.engine_hour * f64::from(inputs.rollout.engines);
    if inputs.placement == Placement::Separate {
        an_hour += prices.trainer_hour;
    }
    for (pool, price) in inputs.scoring.iter().zip(&prices.worker_hour) {
        an_hour += price * f64::from(pool.workers);
    }
    let total = an_hour * elapsed.as_secs_f64() / 3600.0;
    Some(Cost {
        total,
        per_round: per(total, rounds as f64),
        per_thousand_samples: per(total * 1000.0, trained as f64),
    })
}

/// A ratio, 0 when there is nothing to divide by.
fn per(value: f64, count: f64) -> f64 {
    if count > 0.0 { value / count } else { 0.0 }
}

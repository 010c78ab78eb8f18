//! Looks for the best block: many are squeezed on a short run, the best ones are varied, and the winners run in
//! full. The effort is counted in operations, not in time, so the result never depends on the machine.

use super::skeleton::Block;
use super::squeeze::{Filler, Rules, Score, Squeeze};
use super::table::Table;
use crate::Orders;

/// What to look for, and how long.
pub(super) struct Search<'a> {
    pub(super) table: &'a Table,
    pub(super) micro_batches: usize,
    /// Each rank's limit in bytes.
    pub(super) limit: &'a [i64],
    /// How many operations may be run in trials.
    pub(super) budget: usize,
    /// How gaps are filled in the first trial of each block; all [`RULES`] are tried on the best ones.
    pub(super) first: &'a [Rules],
    /// How many micro-batches a trial runs, if the step has more.
    pub(super) trial: usize,
}

/// A block, the rules it did best with, and its score on the trial run.
struct Trial {
    block: Block,
    rules: Rules,
    score: Score,
}

/// The ways to fill gaps that are tried.
pub(super) const RULES: [Rules; 12] = [
    rules(Filler::Forward, 4, 0),
    rules(Filler::Weight, 4, 0),
    rules(Filler::Forward, 2, 0),
    rules(Filler::Backward, 4, 0),
    rules(Filler::Forward, 3, 1),
    rules(Filler::Backward, 2, 0),
    rules(Filler::Forward, 0, 0),
    rules(Filler::Forward, 2, 2),
    rules(Filler::Weight, 0, 0),
    rules(Filler::Forward, 0, 1),
    rules(Filler::Forward, 0, 2),
    rules(Filler::Forward, 0, 4),
];

/// What blocks of one chunk are tried with first: a `W` comes late, whether or not it fits.
pub(super) const LATE_WEIGHTS: [Rules; 2] = [rules(Filler::Forward, 0, 0), rules(Filler::Forward, 3, 1)];

const fn rules(filler: Filler, fit: u64, strict_end: usize) -> Rules {
    Rules { filler, fit, strict_end }
}

/// However large or small the shape is, no fewer and no more trials than these.
const LEAST_TRIALS: usize = 16;
const MOST_TRIALS: usize = 600;
/// How many blocks survive the first round, how many of them are varied, and how many are candidates for a
/// full run.
const SURVIVORS: usize = 8;
const VARIED: usize = 2;
const CANDIDATES: usize = 4;
const FULL_RUNS: usize = 2;

impl Search<'_> {
    /// The best orders found among the blocks and variations of them; `None` if no block can run.
    pub(super) fn best(&self, blocks: impl Iterator<Item = Block>) -> Option<Orders> {
        let mut squeeze = Squeeze::new(self.table, self.limit);
        let trial = self.micro_batches.min(self.trial);
        let cost = (trial * self.table.stages() * if self.table.split { 3 } else { 2 }).max(1);
        let mut left = (self.budget / cost).clamp(LEAST_TRIALS, MOST_TRIALS);
        let mut best = self.first_round(&mut squeeze, blocks, trial, &mut left);
        self.all_rules(&mut squeeze, &mut best, trial, &mut left);
        self.vary(&mut squeeze, &mut best, trial, left);
        self.finish(&mut squeeze, best, trial)
    }

    /// Tries blocks with the first rules, until half of the trials are used up.
    fn first_round(
        &self,
        squeeze: &mut Squeeze,
        blocks: impl Iterator<Item = Block>,
        trial: usize,
        left: &mut usize,
    ) -> Vec<Trial> {
        let reserve = *left / 2;
        let mut best: Vec<Trial> = Vec::new();
        for block in blocks {
            if *left <= reserve && !best.is_empty() {
                break;
            }
            let skeleton = block.skeleton(trial);
            let mut first: Option<(Score, Rules)> = None;
            for &rules in self.first {
                *left = left.saturating_sub(1);
                if let Some(score) = squeeze.score(&skeleton, rules)
                    && first.is_none_or(|(least, _)| score < least)
                {
                    first = Some((score, rules));
                }
            }
            if let Some((score, rules)) = first {
                keep(&mut best, Trial { block, rules, score }, SURVIVORS);
            }
        }
        best
    }

    /// Tries the other rules on the survivors, until two thirds of the remaining trials are used up.
    fn all_rules(&self, squeeze: &mut Squeeze, best: &mut [Trial], trial: usize, left: &mut usize) {
        let reserve = *left / 3;
        let skeletons: Vec<_> = best.iter().map(|one| one.block.skeleton(trial)).collect();
        for &rules in RULES.iter().filter(|rules| !self.first.contains(rules)) {
            for (one, skeleton) in best.iter_mut().zip(&skeletons) {
                if *left <= reserve {
                    break;
                }
                *left -= 1;
                if let Some(score) = squeeze.score(skeleton, rules)
                    && score < one.score
                {
                    (one.score, one.rules) = (score, rules);
                }
            }
        }
        best.sort_by_key(|one| one.score);
    }

    /// Shifts nominal times of the best blocks, and keeps what is no worse.
    fn vary(&self, squeeze: &mut Squeeze, best: &mut [Trial], trial: usize, left: usize) {
        let mut moves = Moves(0x9E37_79B9_7F4A_7C15);
        let starts = best.len().min(VARIED);
        for start in &mut best[..starts] {
            for _ in 0..left / starts {
                let mut block = start.block.clone();
                moves.shift(&mut block);
                if !block.fits(self.table, self.limit) {
                    continue;
                }
                if let Some(score) = squeeze.score(&block.skeleton(trial), start.rules)
                    && score <= start.score
                {
                    start.score = score;
                    start.block = block;
                }
            }
        }
        best.sort_by_key(|one| one.score);
    }

    /// Runs the best ones in full. A block that did well on the short run may repeat slowly: a run that is a
    /// little longer tells which ones do.
    fn finish(&self, squeeze: &mut Squeeze, mut best: Vec<Trial>, trial: usize) -> Option<Orders> {
        let all = self.micro_batches;
        if trial == all {
            best.truncate(1);
        } else {
            best.truncate(CANDIDATES);
            let longer = (trial + self.table.ranks()).min(all);
            let mut ahead = |one: &Trial| {
                let score = squeeze.score(&one.block.skeleton(longer), one.rules)?;
                let more = u128::from(score.span.saturating_sub(one.score.span));
                Some(u128::from(score.span) + more * (all - longer) as u128 / (longer - trial) as u128)
            };
            best.sort_by_cached_key(|one| ahead(one).unwrap_or(u128::MAX));
            best.truncate(FULL_RUNS);
        }
        let mut winner: Option<(Score, Trial)> = None;
        for one in best {
            if let Some(score) = squeeze.score(&one.block.skeleton(all), one.rules)
                && winner.as_ref().is_none_or(|(least, _)| score < *least)
            {
                winner = Some((score, one));
            }
        }
        let (_, one) = winner?;
        squeeze.lists(&one.block.skeleton(all), one.rules).map(Orders::from_lists)
    }
}

/// Adds a trial to the best ones, of which there are at most `room`.
fn keep(best: &mut Vec<Trial>, trial: Trial, room: usize) {
    let place = best.partition_point(|other| other.score <= trial.score);
    best.insert(place, trial);
    best.truncate(room);
}

/// A fixed sequence of small changes (xorshift, Marsaglia 2003).
struct Moves(u64);

impl Moves {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    /// Moves one to three times by a part of the period.
    fn shift(&mut self, block: &mut Block) {
        for _ in 0..=self.next(3) {
            let rank = self.next(block.times.len());
            let slot = self.next(block.times[rank].len());
            let parts = [1, 2, 3, 6][self.next(4)];
            let by = (block.period * parts / 6).max(1);
            let time = &mut block.times[rank][slot];
            *time = if self.next(2) == 0 { *time + by } else { time.saturating_sub(by) };
        }
    }
}

//! What a report needs to know about a step besides its timeline: names, the budget, the shape.
//!
//! The command line fills it in. Deliberately absent: the scenario itself, which this crate has never heard of.

use pipestep_engine::{Bytes, Duration};
use pipestep_schedule::{Rank, Shape};
use pipestep_step::Summary;

use crate::units::{counted, grouped};

/// What the user calls things, and what each rank may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The scenario's name.
    pub name: String,
    /// The schedule's name, with its options if they matter to the reader.
    pub schedule: String,
    /// The bytes that each rank may hold, by rank; empty if there is no limit.
    pub budgets: Vec<Bytes>,
}

/// One simulated step as a report sees it.
#[derive(Clone, Copy, Debug)]
pub struct StepView<'a> {
    /// Names and budget.
    pub labels: &'a Labels,
    /// Ranks, stages, micro-batches.
    pub shape: &'a Shape,
    /// What the step came to.
    pub summary: &'a Summary,
}

impl StepView<'_> {
    /// Whether one rank stays within its budget; `None` without a budget.
    pub fn rank_fits(&self, rank: usize) -> Option<bool> {
        let budget = self.labels.budgets.get(rank)?;
        Some(self.summary.ranks[rank].peak.bytes <= *budget)
    }

    /// Whether every rank stays within its budget; `None` without a budget.
    pub fn fits(&self) -> Option<bool> {
        let ranks = self.summary.ranks.len().min(self.labels.budgets.len());
        (ranks > 0).then(|| (0..ranks).all(|rank| self.rank_fits(rank) == Some(true)))
    }

    /// The budget that all ranks have in common, if they have.
    pub fn common_budget(&self) -> Option<Bytes> {
        let first = *self.labels.budgets.first()?;
        self.labels.budgets.iter().all(|&budget| budget == first).then_some(first)
    }

    /// The rank with the least to spare (the first of equals), its peak and its budget.
    pub fn binding_rank(&self) -> Option<(Rank, Bytes, Bytes)> {
        let peaks = self.summary.ranks.iter().map(|rank| rank.peak.bytes);
        let both = (0..).map(Rank).zip(peaks.zip(&self.labels.budgets));
        let spare = |peak: Bytes, budget: Bytes| i128::from(budget.get()) - i128::from(peak.get());
        let (rank, (peak, &budget)) = both.min_by_key(|&(_, (peak, &budget))| spare(peak, budget))?;
        Some((rank, peak, budget))
    }

    /// The rank with the highest peak (the first of equals), and that peak.
    pub fn highest_peak(&self) -> (Rank, Bytes) {
        self.summary.highest_peak()
    }

    /// How much longer the step is than with free transfers.
    pub fn transfers_exposed(&self) -> Duration {
        self.summary.makespan.since(self.summary.zero_transfer_makespan)
    }

    /// `4 ranks, 8 micro-batches`.
    pub(crate) fn counts_text(&self) -> String {
        self.counts().join(", ")
    }

    fn counts(&self) -> [String; 2] {
        let micro_batches = match self.shape.micro_batches() {
            1 => "1 micro-batch".to_owned(),
            count => format!("{} micro-batches", grouped(count as u64)),
        };
        [counted(self.shape.ranks() as u64, "rank"), micro_batches]
    }

    /// One line on the shape: `4 ranks, 8 micro-batches`, with the chunks where there are several.
    pub fn shape_text(&self) -> String {
        let [ranks, micro_batches] = self.counts();
        let mut parts = vec![ranks];
        match (self.shape.copies(), self.shape.chunks()) {
            (2, _) => parts.push("2 copies of the model".to_owned()),
            (_, 1) => {}
            (_, chunks) => parts.push(format!("{chunks} chunks each")),
        }
        parts.push(micro_batches);
        parts.join(", ")
    }
}

//! The JSON contract, `pipestep-result-1`: mirror structs of what other programs may rely on.
//!
//! Integer nanoseconds and bytes; what does not apply is left out; keys may be added, never changed. The
//! simulated values themselves know nothing of serde, so they may move while this stays.

use std::collections::BTreeMap;

use pipestep_engine::Time;
use pipestep_step::{Account, RankOutcome};
use serde::Serialize;

use crate::step_runs::StepRunsResult;
use crate::{ExplainResult, JobResult, RlResult, StepView};

/// The contract's name, first key of every result.
pub const SCHEMA: &str = "pipestep-result-1";

/// A whole result: what was asked for, and one part for each scale that was simulated.
#[derive(Clone, Debug, Serialize)]
pub struct ResultFile {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The scenario's name.
    pub name: String,
    /// One optimizer step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepResult>,
    /// Where the time of the step goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<ExplainResult>,
    /// Weeks of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobResult>,
    /// Rounds of RL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rl: Option<RlResult>,
}

/// One step.
#[derive(Clone, Debug, Serialize)]
pub struct StepResult {
    /// The schedule's name.
    pub schedule: String,
    /// Ranks, p.
    pub ranks: usize,
    /// Chunks a rank, v; of one copy of the model where there are two.
    pub chunks: usize,
    /// Micro-batches, m.
    pub micro_batches: usize,
    /// The end of everything, counted from 0.
    pub makespan_ns: u64,
    /// The end of the last gradient of all ranks.
    pub gradient_ready_ns: u64,
    /// The longest time from a rank's first start to its last end.
    pub longest_span_ns: u64,
    /// The makespan of the same orders with free transfers.
    pub zero_transfer_makespan_ns: u64,
    /// The three rates.
    pub bubble: BubbleResult,
    /// What each rank may hold, if there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_bytes: Option<u64>,
    /// Whether every rank stays within it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fits: Option<bool>,
    /// The largest micro-batch in sequences with which every rank would, if some do not and one exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fitting_micro_batch_size: Option<u64>,
    /// Messages sent.
    pub messages: MessagesResult,
    /// How the makespan scatters, where lengths do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<StepRunsResult>,
    /// By rank.
    pub per_rank: Vec<RankResult>,
}

/// The three bubble rates that the field uses; see [`pipestep_step::Bubble`].
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BubbleResult {
    /// (G - ideal) / G.
    pub by_makespan: f64,
    /// (L - ideal) / L.
    pub by_longest_span: f64,
    /// (G - ideal) / ideal.
    pub over_ideal: f64,
}

/// Messages of the whole step.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MessagesResult {
    /// Activations.
    pub forward: u64,
    /// Gradients.
    pub backward: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// One rank.
#[derive(Clone, Debug, Serialize)]
pub struct RankResult {
    /// Its number.
    pub rank: usize,
    /// Sum of its F, B, I and W.
    pub busy_ns: u64,
    /// Last gradient of all ranks - setup - busy.
    pub idle_ns: u64,
    /// The highest level of its ledger.
    pub peak_bytes: u64,
    /// The first instant of that level.
    pub peak_at_ns: u64,
    /// What it consists of: the accounts of a step's traffic, and those of what is held if they count.
    pub peak_by_account: BTreeMap<&'static str, u64>,
    /// Whether the peak stays within the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fits: Option<bool>,
}

impl ResultFile {
    /// A result with no part yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { schema: SCHEMA, name: name.into(), step: None, explain: None, job: None, rl: None }
    }

    /// The JSON text, indented, with a newline at the end.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("keys are strings and every number is finite or an integer") + "\n"
    }
}

impl StepResult {
    /// The contract's view of a step.
    pub fn new(view: &StepView) -> Self {
        let summary = view.summary;
        let bubble = summary.bubble();
        let ranks = summary.ranks.iter().enumerate();
        Self {
            schedule: view.labels.schedule.clone(),
            ranks: view.shape.ranks(),
            chunks: view.shape.chunks() / view.shape.copies(),
            micro_batches: view.shape.micro_batches(),
            makespan_ns: summary.makespan.as_nanos(),
            gradient_ready_ns: summary.gradient_ready.as_nanos(),
            longest_span_ns: summary.longest_span.as_nanos(),
            zero_transfer_makespan_ns: summary.zero_transfer_makespan.as_nanos(),
            bubble: BubbleResult {
                by_makespan: bubble.by_makespan,
                by_longest_span: bubble.by_longest_span,
                over_ideal: bubble.over_ideal,
            },
            budget_bytes: view.common_budget().map(pipestep_engine::Bytes::get),
            fits: view.fits(),
            messages: MessagesResult {
                forward: summary.messages.forward,
                backward: summary.messages.backward,
                bytes: summary.messages.bytes.get(),
            },
            jitter: None,
            fitting_micro_batch_size: None,
            per_rank: ranks.map(|(rank, outcome)| RankResult::new(view, rank, outcome)).collect(),
        }
    }
}

impl RankResult {
    fn new(view: &StepView, rank: usize, outcome: &RankOutcome) -> Self {
        let accounts = Account::ALL.into_iter().zip(outcome.peak.accounts);
        let shown = accounts.filter(|&(account, bytes)| is_traffic(account) || bytes.get() > 0);
        Self {
            rank,
            busy_ns: outcome.busy.as_nanos(),
            idle_ns: outcome.idle.as_nanos(),
            peak_bytes: outcome.peak.bytes.get(),
            peak_at_ns: outcome.peak.at.since(Time::ZERO).as_nanos(),
            peak_by_account: shown.map(|(account, bytes)| (account.name(), bytes.get())).collect(),
            fits: view.rank_fits(rank),
        }
    }
}

/// Whether an account rises and falls within a step; the others are held throughout.
const fn is_traffic(account: Account) -> bool {
    matches!(
        account,
        Account::Activations | Account::Workspace | Account::SendBuffers | Account::ReceiveBuffers
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    fn json(sample: &Sample) -> serde_json::Value {
        let mut file = ResultFile::new(&sample.labels.name);
        file.step = Some(StepResult::new(&sample.view()));
        serde_json::from_str(&file.to_json()).unwrap()
    }

    #[test]
    fn the_headline_is_the_contract() {
        let json = json(&Sample::new("1f1b", 4, 1, 8));
        assert_eq!(json["schema"], "pipestep-result-1");
        let step = &json["step"];
        let at = |key: &str| step[key].as_u64().unwrap();
        assert_eq!((at("makespan_ns"), at("gradient_ready_ns")), (347_000_000, 346_000_000));
        assert_eq!((at("ranks"), at("chunks"), at("micro_batches")), (4, 1, 8));
        assert_eq!(step["messages"], serde_json::json!({"forward": 24, "backward": 24, "bytes": 75_497_472}));
        let rate = step["bubble"]["over_ideal"].as_f64().unwrap();
        assert!((rate - 106.0 / 240.0).abs() < 1e-12);
        let rank = &step["per_rank"][3];
        assert_eq!((&rank["busy_ns"], &rank["idle_ns"]), (&240_000_000.into(), &106_000_000.into()));
        assert_eq!(rank["peak_by_account"]["activations"], 320_804_352);
        assert_eq!((&step["fits"], &rank["fits"]), (&true.into(), &true.into()));
    }

    #[test]
    fn what_does_not_apply_is_left_out() {
        let mut sample = Sample::new("1f1b", 4, 1, 8);
        sample.labels.budgets.clear();
        let json = json(&sample);
        assert!(json["step"].get("fits").is_none() && json["step"].get("budget_bytes").is_none());
        assert!(json["step"]["per_rank"][0].get("fits").is_none());
        assert!(json.get("job").is_none() && json.get("rl").is_none());
        let accounts = json["step"]["per_rank"][0]["peak_by_account"].as_object().unwrap();
        let names: Vec<_> = accounts.keys().collect();
        assert_eq!(names, ["activations", "receive_buffers", "send_buffers", "workspace"]);
    }

    #[test]
    fn one_rank_above_the_budget_is_enough() {
        let mut sample = Sample::new("1f1b", 4, 1, 8);
        sample.labels.budgets = vec![pipestep_engine::Bytes::new(900_000_000); 4];
        let json = json(&sample);
        assert_eq!(json["step"]["fits"], false);
        let fits: Vec<_> = (0..4).map(|r| json["step"]["per_rank"][r]["fits"].as_bool().unwrap()).collect();
        assert_eq!(fits, [false, true, true, true]);
    }
}

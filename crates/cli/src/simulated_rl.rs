//! One scenario's rounds of RL, simulated: as given, and with each stage faster or slower to see which limits.

use std::thread;

use anyhow::{Context, Result};
use pipestep_engine::Duration;
use pipestep_report::RlView;
use pipestep_rl::{
    Fraction, RlError, RlInputs, Sensitivity, Span, Stage, sensitivity, simulate_recorded, turning_point,
};
use pipestep_scenario::Scenario;

use crate::simulated::Keep;

/// Rounds of more responses than this in all are simulated too slowly to look for the speed at which each other
/// stage would limit, which takes some dozens of simulations a stage.
const SEARCHED: u64 = 20_000;

/// Simulated rounds.
pub(crate) struct SimulatedRl {
    name: String,
    inputs: RlInputs,
    sensitivity: Sensitivity,
    limits_below: Vec<Option<Fraction>>,
    spans: Vec<Span>,
}

impl SimulatedRl {
    /// Simulates the rounds of a scenario; `step` is the length of its step, if it has one.
    ///
    /// # Errors
    /// Rounds that cannot go on, or that need a step that there is none of, at their place in the file.
    pub(crate) fn new(scenario: &Scenario, step: Option<Duration>, keep: Keep) -> Result<Self> {
        let rl = scenario.rl.as_ref();
        let rl = rl.with_context(|| format!("`{}` describes no rounds: it has no `[rl]`", scenario.name))?;
        let refused = |error: RlError| scenario.refused_rl(&error);
        let inputs = rl.inputs(step).map_err(refused)?;
        let sensitivity = sensitivity(&inputs).map_err(refused)?;
        let limits_below = limits_below(&inputs).map_err(refused)?;
        let spans = match keep {
            Keep::Summary => Vec::new(),
            Keep::Everything => simulate_recorded(&inputs).map_err(refused)?.1,
        };
        Ok(Self { name: scenario.name.clone(), inputs, sensitivity, limits_below, spans })
    }

    /// The rounds as a report sees them.
    pub(crate) fn view(&self) -> RlView<'_> {
        RlView {
            name: &self.name,
            inputs: &self.inputs,
            sensitivity: &self.sensitivity,
            limits_below: &self.limits_below,
            spans: &self.spans,
        }
    }

    /// Whether the memory of colocated devices suffices, if it was given.
    pub(crate) fn fits(&self) -> Option<bool> {
        self.sensitivity.base.memory.as_ref().map(|memory| memory.fits)
    }
}

/// For each stage the speed below which it would limit the rounds, a thread each; nothing for large rounds.
fn limits_below(inputs: &RlInputs) -> Result<Vec<Option<Fraction>>, RlError> {
    let updates = u64::from(inputs.rounds) + u64::from(inputs.warmup);
    if u64::from(inputs.launch) * updates > SEARCHED {
        return Ok(Vec::new());
    }
    thread::scope(|scope| {
        let stages = Stage::all(inputs).into_iter();
        let started: Vec<_> = stages.map(|stage| scope.spawn(move || turning_point(inputs, stage))).collect();
        let found = started.into_iter().map(|thread| thread.join().expect("a simulation never panics"));
        found.collect()
    })
}

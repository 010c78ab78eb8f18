//! One scenario's rounds of RL, simulated: as given, and with each stage faster or slower to see which limits.

use anyhow::{Context, Result};
use pipestep_engine::Duration;
use pipestep_report::RlView;
use pipestep_rl::{
    Fraction, RlError, RlInputs, Sensitivity, Span, Stage, rate_at_double, simulate, simulate_recorded,
    turning_point,
};
use pipestep_scenario::Scenario;
use rayon::prelude::*;

use crate::simulated::Keep;

/// The speed at which each other stage would limit takes some dozens of simulations a stage to find; they take no
/// more rounds than have about so many responses.
const SEARCHED: u64 = 20_000;
/// But they take at least two rounds, and warm up for no longer than this.
const FEWEST: u32 = 2;
const WARM_ENOUGH: u32 = 4;

/// Whether the speed at which each other stage would limit is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limits {
    Find,
    Leave,
}

/// Simulated rounds.
pub(crate) struct SimulatedRl {
    name: String,
    inputs: RlInputs,
    sensitivity: Sensitivity,
    limits_below: Vec<Option<Fraction>>,
    /// Rounds that were looked at to find them, if fewer than all.
    limits_rounds: Option<u32>,
    spans: Vec<Span>,
}

impl SimulatedRl {
    /// Simulates the rounds of a scenario; `step` is the length of its step, if it has one.
    ///
    /// # Errors
    /// Rounds that cannot go on, or that need a step that there is none of, at their place in the file.
    pub(crate) fn new(
        scenario: &Scenario,
        step: Option<Duration>,
        (keep, limits): (Keep, Limits),
    ) -> Result<Self> {
        let rl = scenario.rl.as_ref();
        let rl = rl.with_context(|| format!("`{}` describes no rounds: it has no `[rl]`", scenario.name))?;
        let refused = |error: RlError| scenario.refused_rl(&error);
        let inputs = rl.inputs(step).map_err(refused)?;
        let (sensitivity, spans) = sensitivity(&inputs, keep).map_err(refused)?;
        let short = shortened(&inputs);
        let limits_below = match limits {
            Limits::Find => limits_below(&short).map_err(refused)?,
            Limits::Leave => Vec::new(),
        };
        let limits_rounds = (short.rounds < inputs.rounds).then_some(short.rounds);
        Ok(Self { name: scenario.name.clone(), inputs, sensitivity, limits_below, limits_rounds, spans })
    }

    /// The rounds as a report sees them.
    pub(crate) fn view(&self) -> RlView<'_> {
        RlView {
            name: &self.name,
            inputs: &self.inputs,
            sensitivity: &self.sensitivity,
            limits_below: &self.limits_below,
            limits_rounds: self.limits_rounds,
            spans: &self.spans,
        }
    }

    /// Whether the memory of colocated devices suffices, if it was given.
    pub(crate) fn fits(&self) -> Option<bool> {
        self.sensitivity.base.memory.as_ref().map(|memory| memory.fits)
    }
}

/// The rounds as given, and each stage at double speed beside it, on all cores.
fn sensitivity(inputs: &RlInputs, keep: Keep) -> Result<(Sensitivity, Vec<Span>), RlError> {
    let as_given = || match keep {
        Keep::Summary => Ok((simulate(inputs)?, Vec::new())),
        Keep::Everything => simulate_recorded(inputs),
    };
    let stages = Stage::all(inputs);
    let doubled = |stage: Stage| Ok::<_, RlError>((stage, rate_at_double(inputs, stage)?));
    let (base, rates) =
        rayon::join(as_given, || stages.into_par_iter().map(doubled).collect::<Result<Vec<_>, _>>());
    let (base, spans) = base?;
    Ok((Sensitivity::of(inputs, base, rates?), spans))
}

/// The same with as few rounds as the search for turning points can do with.
fn shortened(inputs: &RlInputs) -> RlInputs {
    let mut short = inputs.clone();
    let affordable = u32::try_from(SEARCHED / u64::from(inputs.launch.max(1))).unwrap_or(u32::MAX);
    if affordable < inputs.rounds.saturating_add(inputs.warmup) {
        short.warmup = inputs.warmup.min(WARM_ENOUGH);
        short.rounds =
            affordable.saturating_sub(short.warmup).clamp(FEWEST.min(inputs.rounds), inputs.rounds);
    }
    short
}

/// For each stage the speed below which it would limit the rounds, on all cores.
fn limits_below(inputs: &RlInputs) -> Result<Vec<Option<Fraction>>, RlError> {
    Stage::all(inputs).into_par_iter().map(|stage| turning_point(inputs, stage)).collect()
}

//! Which stage limits: each run again at another speed.
//!
//! One idea: the bottleneck is not read off how busy a stage is but found by making each stage twice as fast
//! and simulating again; the one that gains most is it. All random draws stay the same.

use crate::outcome::RlOutcome;
use crate::simulate::simulate;
use crate::{Fraction, RlError, RlInputs};

/// A stage whose speed can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The engines that generate.
    Rollout,
    /// A scoring pool, by number.
    Scoring(usize),
    /// The update.
    Update,
    /// The weight synchronisation.
    WeightSync,
}

/// What each stage at double speed would bring.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// As given.
    pub base: RlOutcome,
    /// The name of the stage that gains most from double speed; `None` if none gains anything.
    pub bottleneck: Option<String>,
    /// Every stage, in the order of a round.
    pub gains: Vec<Gain>,
}

/// What one stage at double speed would bring.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// Which.
    pub stage: Stage,
    /// Its name in the outcome.
    pub name: String,
    /// Samples trained on, each second; of all jobs together, where they share engines and trainer.
    pub useful_samples_per_s: f64,
    /// That against the run as given, less 1: 0.25 is a quarter more.
    pub gain: f64,
}

impl Stage {
    /// All stages of these inputs, in the order of a round.
    pub fn all(inputs: &RlInputs) -> Vec<Self> {
        let mut stages = vec![Self::Rollout];
        stages.extend((0..inputs.scoring.len()).map(Self::Scoring));
        stages.extend([Self::Update, Self::WeightSync]);
        stages
    }

    /// Its name in the outcome.
    pub fn name(self, inputs: &RlInputs) -> String {
        match self {
            Self::Rollout => "rollout".to_owned(),
            Self::Scoring(index) => {
                inputs.scoring.get(index).map_or_else(|| format!("scoring {index}"), |pool| pool.name.clone())
            }
            Self::Update => "update".to_owned(),
            Self::WeightSync => "weight_sync".to_owned(),
        }
    }
}

/// Simulates as given and with each stage twice as fast.
///
/// # Errors
/// As for [`simulate`].
pub fn sensitivity(inputs: &RlInputs) -> Result<Sensitivity, RlError> {
    let base = simulate(inputs)?;
    let mut gains = Vec::new();
    for stage in Stage::all(inputs) {
        let outcome = simulate(&sped_up(inputs, stage, Fraction::DOUBLE)?)?;
        let rate = outcome.all_samples_per_s();
        gains.push(Gain {
            stage,
            name: stage.name(inputs),
            useful_samples_per_s: rate,
            gain: rate / base.all_samples_per_s() - 1.0,
        });
    }
    let mut best: Option<&Gain> = None;
    for gain in &gains {
        if gain.gain > LEAST_GAIN && best.is_none_or(|best| gain.gain > best.gain) {
            best = Some(gain);
        }
    }
    let bottleneck = best.map(|gain| gain.name.clone());
    Ok(Sensitivity { base, bottleneck, gains })
}

/// Less than this is a rounding of nanoseconds.
const LEAST_GAIN: f64 = 1e-9;

/// The same inputs with one stage `factor` times as fast.
///
/// # Errors
/// [`RlError::Refused`] if the stage is not there or the speed has too many digits.
pub fn sped_up(inputs: &RlInputs, stage: Stage, factor: Fraction) -> Result<RlInputs, RlError> {
    let mut changed = inputs.clone();
    let speed = match stage {
        Stage::Rollout => Some(&mut changed.rollout.speed),
        Stage::Scoring(index) => changed.scoring.get_mut(index).map(|pool| &mut pool.speed),
        Stage::Update => Some(&mut changed.update.speed),
        Stage::WeightSync => Some(&mut changed.sync.speed),
    };
    let name = stage.name(inputs);
    let refuse = |reason: String| RlError::Refused { reason };
    let speed = speed.ok_or_else(|| refuse(format!("there is no stage `{name}`")))?;
    *speed =
        speed.times(factor).ok_or_else(|| refuse(format!("the speed of `{name}` has too many digits")))?;
    if matches!(stage, Stage::Rollout | Stage::Update) {
        // Engines and trainer are those of all jobs.
        for job in changed.sharing.iter_mut().flat_map(|sharing| &mut sharing.jobs) {
            job.inputs = sped_up(&job.inputs, stage, factor)?;
        }
    }
    Ok(changed)
}

/// At which speed of `stage` (at most as given) it limits the rounds: the highest found at which doubling it
/// gains more than doubling any other stage. `None` if it limits already, or not even at 1/64 of its speed.
///
/// Found by halving, to 1/256 of the speed as given, on the assumption that a stage that limits still does
/// when it is slower. Every probe simulates once for each stage.
///
/// # Errors
/// As for [`sensitivity`].
pub fn turning_point(inputs: &RlInputs, stage: Stage) -> Result<Option<Fraction>, RlError> {
    let at = |steps: u32| {
        let factor = Fraction::new(steps, TURNING_STEPS).unwrap_or(Fraction::ONE);
        let found = sensitivity(&sped_up(inputs, stage, factor)?)?;
        Ok::<bool, RlError>(found.bottleneck == Some(stage.name(inputs)))
    };
    let (mut limits, mut does_not) = (TURNING_STEPS / 64, TURNING_STEPS);
    if at(does_not)? || !at(limits)? {
        return Ok(None);
    }
    while does_not - limits > 1 {
        let middle = limits.midpoint(does_not);
        if at(middle)? {
            limits = middle;
        } else {
            does_not = middle;
        }
    }
    Ok(Fraction::new(limits, TURNING_STEPS))
}

const TURNING_STEPS: u32 = 256;

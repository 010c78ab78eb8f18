//! Which stage limits: each run again at another speed.
//!
//! One idea: the bottleneck is not read off how busy a stage is but found by making each stage twice as fast
//! and simulating again; the one that gains most is it. All random draws stay the same.

use crate::outcome::RlOutcome;
use crate::simulate::simulate;
use crate::{Field, Fraction, RlError, RlInputs};

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

    /// How fast it is, if it is there.
    pub(crate) fn speed(self, inputs: &RlInputs) -> Option<Fraction> {
        match self {
            Self::Rollout => Some(inputs.rollout.speed),
            Self::Scoring(index) => inputs.scoring.get(index).map(|pool| pool.speed),
            Self::Update => Some(inputs.update.speed),
            Self::WeightSync => Some(inputs.sync.speed),
        }
    }

    fn speed_mut(self, inputs: &mut RlInputs) -> Option<&mut Fraction> {
        match self {
            Self::Rollout => Some(&mut inputs.rollout.speed),
            Self::Scoring(index) => inputs.scoring.get_mut(index).map(|pool| &mut pool.speed),
            Self::Update => Some(&mut inputs.update.speed),
            Self::WeightSync => Some(&mut inputs.sync.speed),
        }
    }

    /// Where that speed is written.
    pub(crate) fn speed_field(self) -> Field {
        match self {
            Self::Rollout => "rollout.speed".into(),
            Self::Scoring(index) => format!("scoring.{index}.speed").into(),
            Self::Update => "update.speed".into(),
            Self::WeightSync => "sync.speed".into(),
        }
    }
}

/// Simulates as given and with each stage twice as fast.
///
/// # Errors
/// As for [`simulate`].
pub fn sensitivity(inputs: &RlInputs) -> Result<Sensitivity, RlError> {
    let base = simulate(inputs)?;
    let doubled = |stage| Ok::<_, RlError>((stage, rate_at_double(inputs, stage)?));
    let rates = Stage::all(inputs).into_iter().map(doubled).collect::<Result<Vec<_>, _>>()?;
    Ok(Sensitivity::of(inputs, base, rates))
}

/// Samples trained on each second with a stage twice as fast; of all jobs together, where they share.
///
/// # Errors
/// As for [`simulate`].
pub fn rate_at_double(inputs: &RlInputs, stage: Stage) -> Result<f64, RlError> {
    Ok(simulate(&sped_up(inputs, stage, Fraction::DOUBLE)?)?.all_samples_per_s())
}

impl Sensitivity {
    /// What comes of a run as given, and of the rate with each stage twice as fast, in the order of a round.
    pub fn of(inputs: &RlInputs, base: RlOutcome, rates: Vec<(Stage, f64)>) -> Self {
        let as_given = base.all_samples_per_s();
        let gains = rates.into_iter().map(|(stage, rate)| Gain {
            stage,
            name: stage.name(inputs),
            useful_samples_per_s: rate,
            gain: rate / as_given - 1.0,
        });
        let gains: Vec<Gain> = gains.collect();
        let mut best: Option<&Gain> = None;
        for gain in &gains {
            if gain.gain > LEAST_GAIN && best.is_none_or(|best| gain.gain > best.gain) {
                best = Some(gain);
            }
        }
        let bottleneck = best.map(|gain| gain.name.clone());
        Self { base, bottleneck, gains }
    }
}

/// Less than this is a rounding of nanoseconds.
const LEAST_GAIN: f64 = 1e-9;

/// The same inputs with one stage `factor` times as fast.
///
/// # Errors
/// [`RlError::Refused`] if the stage is not there or the speed has too many digits.
pub fn sped_up(inputs: &RlInputs, stage: Stage, factor: Fraction) -> Result<RlInputs, RlError> {
    let mut changed = inputs.clone();
    let refuse = |reason: &str| {
        let reason = format!("{reason} `{}`", stage.name(inputs));
        RlError::Refused { field: stage.speed_field(), reason }
    };
    let speed = stage.speed_mut(&mut changed).ok_or_else(|| refuse("there is no stage"))?;
    *speed = speed.times(factor).ok_or_else(|| refuse("there are too many digits in the speed of"))?;
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
    // At full speed another stage limits; it is asked first, since it often still does.
    let mut first = None;
    let mut at = |steps: u32| {
        let factor = Fraction::new(steps, TURNING_STEPS).unwrap_or(Fraction::ONE);
        let found = who_gains_more(&sped_up(inputs, stage, factor)?, stage, first)?;
        if let Rival::Stage(other) = found {
            first = Some(other);
        }
        Ok::<bool, RlError>(found == Rival::Nobody)
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

/// Who is rather the bottleneck than a given stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rival {
    /// Nobody: the stage is it.
    Nobody,
    /// Another one gains more.
    Stage(Stage),
    /// The stage gains nothing.
    Unknown,
}

/// Whether doubling some stage gains more than doubling this one, as [`Sensitivity::of`] has it; `first` is tried
/// first. Simulates no more often than it takes to know.
fn who_gains_more(inputs: &RlInputs, stage: Stage, first: Option<Stage>) -> Result<Rival, RlError> {
    let as_given = simulate(inputs)?.all_samples_per_s();
    let own = rate_at_double(inputs, stage)?;
    if own / as_given - 1.0 <= LEAST_GAIN {
        return Ok(Rival::Unknown);
    }
    let all = Stage::all(inputs);
    let own_place = all.iter().position(|&one| one == stage);
    let mut others: Vec<usize> = (0..all.len()).filter(|&place| all[place] != stage).collect();
    others.sort_by_key(|&place| Some(all[place]) != first);
    for place in others {
        let rate = rate_at_double(inputs, all[place])?;
        // Of two that gain alike the earlier is the bottleneck.
        if rate > own || (rate >= own && Some(place) < own_place) {
            return Ok(Rival::Stage(all[place]));
        }
    }
    Ok(Rival::Nobody)
}

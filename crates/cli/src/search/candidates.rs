//! Every setting that a search may try: schedules, chunks, sizes of micro-batches, ranks, recomputation, and how
//! layers are split.
//!
//! A setting is a handful of overrides, so that what wins can be run again by `--set`.

use anyhow::{Context, Result, bail};
use pipestep_scenario::{Jitter, Override, Scenario, SearchSpace, StepScenario};
use pipestep_schedule::{Chunks, Placement, Schedule, Shape};

use super::partition::balanced;
use crate::simulated::step_of;

/// The most chunks of a rank where `[search]` does not say.
const MOST_CHUNKS: u64 = 4;
/// More settings than this are refused.
const MOST_SETTINGS: usize = 200_000;

/// Sequences in a micro-batch; and how many micro-batches there are then, where that does not follow from
/// `pipeline.global_batch`.
pub(crate) type Size = (u64, Option<u64>);

/// One way to run the step.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) schedule: &'static dyn Schedule,
    pub(crate) chunks: u64,
    /// Only where sizes are tried.
    pub(crate) size: Option<Size>,
    /// Only where numbers of ranks are tried.
    pub(crate) ranks: Option<u64>,
    pub(crate) recompute: Option<&'static str>,
    /// Layers of each stage, where they are known.
    pub(crate) layers: Option<Vec<u64>>,
}

impl Setting {
    /// `KEY=VALUE` for each key that it sets.
    pub(crate) fn sets(&self) -> Vec<String> {
        let mut sets = vec![format!("pipeline.schedule={}", self.schedule.entry().name)];
        sets.push(format!("pipeline.chunks={}", self.chunks));
        sets.extend(self.ranks.map(|ranks| format!("pipeline.ranks={ranks}")));
        if let Some((size, count)) = self.size {
            sets.push(format!("model.micro_batch_size={size}"));
            sets.extend(count.map(|count| format!("pipeline.micro_batches={count}")));
        }
        sets.extend(self.recompute.map(|parts| format!("model.recompute={parts}")));
        sets.extend(self.layers.as_ref().map(|layers| format!("pipeline.layers={layers:?}")));
        sets
    }

    /// The same as overrides.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = Override> {
        self.sets().into_iter().map(|set| Override::from(set, "search"))
    }
}

/// All settings of a search.
pub(crate) struct Candidates {
    pub(crate) settings: Vec<Setting>,
    /// The written step.
    pub(crate) written: StepScenario,
}

impl Candidates {
    /// The settings that `[search]` allows in a scenario.
    ///
    /// # Errors
    /// A scenario in which schedules, sizes or ranks cannot be varied; too many settings.
    pub(crate) fn new(scenario: Scenario) -> Result<Self> {
        let search = scenario.search.clone();
        step_of(&scenario)?;
        let written = scenario.step.context("internal error: the step was there")?;
        if written.order.schedule().is_none() {
            bail!("a search tries schedules, and this scenario's order is a file: write `schedule` instead");
        }
        let sizes = sizes(&search, &written)?;
        let ranks = ranks(&search, &written)?;
        let recompute = search.recompute.as_ref();
        let recompute: Vec<Option<&str>> =
            recompute.map_or_else(|| vec![None], |parts| parts.iter().copied().map(Some).collect());
        let mut settings = Vec::new();
        for &ranks in &ranks {
            for schedule in schedules(&search) {
                for chunks in chunks(schedule, &search) {
                    for layers in splits(&written, schedule.entry().placement, ranks, chunks) {
                        for &size in &sizes {
                            for &recompute in &recompute {
                                let layers = layers.clone();
                                settings.push(Setting { schedule, chunks, size, ranks, recompute, layers });
                            }
                        }
                    }
                }
                if settings.len() > MOST_SETTINGS {
                    bail!("more than {MOST_SETTINGS} settings: write narrower limits in `[search]`");
                }
            }
        }
        Ok(Self { settings, written })
    }
}

impl Candidates {
    /// Whether the lengths of the step are drawn, so that each setting is run many times.
    pub(crate) fn are_drawn(&self) -> bool {
        self.written.jitter.as_ref().is_some_and(Jitter::scatters)
    }
}

fn schedules(search: &SearchSpace) -> Vec<&'static dyn Schedule> {
    search.schedules.clone().unwrap_or_else(|| pipestep_schedule::all().to_vec())
}

/// The numbers of chunks to try. A fixed one is tried whatever the limit: it is part of the schedule.
fn chunks(schedule: &'static dyn Schedule, search: &SearchSpace) -> Vec<u64> {
    match schedule.entry().chunks {
        Chunks::Exactly(only) => vec![u64::from(only)],
        allowed => {
            let most = search.most_chunks.unwrap_or(MOST_CHUNKS);
            (1..=most).filter(|&count| allowed.allows(count)).collect()
        }
    }
}

/// The sizes of micro-batches to try at the written number of sequences.
fn sizes(search: &SearchSpace, written: &StepScenario) -> Result<Vec<Option<Size>>> {
    if written.efficiency.is_none() {
        if search.micro_batch_sizes.is_some() {
            bail!(
                "`search.micro_batch_sizes` needs `[efficiency]`, which says how long a micro-batch of another \
                 size takes"
            );
        }
        return Ok(vec![None]);
    }
    let size = written.sequences_per_micro_batch.context("internal error: `[efficiency]` needs a model")?;
    let count = written.inputs.shape().micro_batches() as u64;
    let all = size.checked_mul(count).context("too many sequences in a step")?;
    let divides = |size: &u64| all.is_multiple_of(*size);
    let tried: Vec<u64> = match &search.micro_batch_sizes {
        Some(sizes) => sizes.iter().copied().filter(divides).collect(),
        None => (1..=all).filter(divides).collect(),
    };
    if tried.is_empty() {
        bail!("none of `search.micro_batch_sizes` divides the {all} sequences of a step");
    }
    let count = |size| if written.global_batch.is_some() { None } else { Some(all / size) };
    Ok(tried.into_iter().map(|size| Some((size, count(size)))).collect())
}

fn ranks(search: &SearchSpace, written: &StepScenario) -> Result<Vec<Option<u64>>> {
    match &search.ranks {
        None => Ok(vec![None]),
        Some(_) if written.layer_costs.is_none() => {
            bail!("`search.ranks` needs lengths by layer: write `[time] layer_forward` and `layer_backward`")
        }
        Some(ranks) => Ok(ranks.iter().copied().map(Some).collect()),
    }
}

/// The splits of layers to try: the ranks as they are written, evenly cut into chunks, and where lengths are by
/// layer the balanced ones. Empty where there are too few layers.
fn splits(
    written: &StepScenario,
    placement: Placement,
    ranks: Option<u64>,
    chunks: u64,
) -> Vec<Option<Vec<u64>>> {
    let Some(layers) = &written.layers else { return vec![None] };
    let shape = written.inputs.shape();
    let old = shape.ranks() as u64;
    let new = ranks.unwrap_or(old);
    // Placement does not depend on micro-batches; two of them suit any.
    let Ok(target) = Shape::new(new, chunks, 2, placement) else { return Vec::new() };
    let one_copy = layers.len() / shape.copies();
    let by_rank: Vec<u64> = if new == old {
        let of_rank = |rank| {
            let stages = shape.stages_of(pipestep_schedule::Rank(rank));
            stages.filter(|stage| stage.index() < one_copy).map(|stage| layers[stage.index()]).sum()
        };
        (0..old as u16).map(of_rank).collect()
    } else {
        evenly(layers[..one_copy].iter().sum(), new)
    };
    let mut splits: Vec<Vec<u64>> = cut(&target, &by_rank, chunks).into_iter().collect();
    if let Some(costs) = &written.layer_costs {
        splits.extend(cut(&target, &evenly(costs.layers.len() as u64, new), chunks));
        splits.extend(balanced(costs, target.stages() / target.copies()));
    }
    let mut distinct: Vec<Option<Vec<u64>>> = Vec::new();
    for split in splits.into_iter().map(Some) {
        if !distinct.contains(&split) {
            distinct.push(split);
        }
    }
    distinct
}

/// Each rank's layers cut evenly into its chunks, in model order; `None` if a rank has too few.
fn cut(target: &Shape, by_rank: &[u64], chunks: u64) -> Option<Vec<u64>> {
    if by_rank.iter().any(|&count| count < chunks) {
        return None;
    }
    let mut left: Vec<_> = by_rank.iter().map(|&count| evenly(count, chunks).into_iter()).collect();
    let stages = (0..(target.stages() / target.copies()) as u16).map(pipestep_schedule::Stage);
    stages.map(|stage| left[target.rank_of(stage).index()].next()).collect()
}

/// `count` in parts that differ by at most one, the larger ones first.
fn evenly(count: u64, parts: u64) -> Vec<u64> {
    (0..parts).map(|part| count / parts + u64::from(part < count % parts)).collect()
}

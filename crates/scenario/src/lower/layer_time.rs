//! `[time] layer_forward` and its like: lengths layer by layer, instead of rank by rank.
//!
//! A stage takes as long as its layers, and as the embedding or the head where it holds them. Layers can then be
//! moved between stages, and the lengths follow.

use pipestep_engine::{Duration, Overflow};
use pipestep_schedule::Shape;

use super::layers::{Split, stages};
use super::{Broken, Each, for_each};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::{File, Time};
use crate::read::{Key, OneOrList, Problems};
use crate::step::LayerCosts;

/// The lengths of each stage, before anything makes them longer.
pub(super) struct ByStage {
    pub forward: Vec<Duration>,
    pub backward: Vec<Duration>,
    /// Both together, layer by layer.
    pub costs: LayerCosts,
}

/// Reports lengths that are missing, and those that are given in both ways.
pub(super) fn check(file: &File, problems: &mut Problems) -> Result<(), Broken> {
    let time = file.time.get().ok_or(Broken)?;
    let table = file.time.span().unwrap_or(Span::FILE);
    if !is_by_layer(time) {
        return require(table, &[("forward", &time.forward), ("backward", &time.backward)], problems);
    }
    exclude(time, problems)?;
    let by_layer = [("layer_forward", &time.layer_forward), ("layer_backward", &time.layer_backward)];
    require(table, &by_layer, problems)
}

/// The lengths of each stage where they are given by layer; `None` where they are given by rank.
pub(super) fn lower(
    file: &File,
    shape: &Shape,
    split: &Split,
    problems: &mut Problems,
) -> Result<Option<ByStage>, Broken> {
    let time = file.time.get().ok_or(Broken)?;
    let table = file.time.span().unwrap_or(Span::FILE);
    if !is_by_layer(time) {
        return Ok(None);
    }
    let Some(layers) = &split.layers else {
        let span = time.layer_forward.span().unwrap_or(table);
        let problem =
            Diagnostic::new(span, "`time.layer_forward`: it is not known how many layers there are");
        problems.push(problem.help("write `layers` in `[pipeline]`, or a `[model]`"));
        return Err(Broken);
    };
    // Each copy of the model has the same layers.
    let one_copy = &layers[..layers.len() / shape.copies()];
    let forward =
        Ends { each: &time.layer_forward, first: &time.embedding_forward, last: &time.head_forward };
    let backward =
        Ends { each: &time.layer_backward, first: &time.embedding_backward, last: &time.head_backward };
    let total = usize::try_from(one_copy.iter().sum::<u64>()).map_err(|_| Broken)?;
    let forward = forward.by_layer("time.layer_forward", total, problems);
    let backward = backward.by_layer("time.layer_backward", total, problems);
    let (forward, backward) = (forward?, backward?);
    let sum = |a: Duration, b: Duration| a.as_nanos().saturating_add(b.as_nanos());
    let costs = LayerCosts {
        layers: forward.layers.iter().zip(&backward.layers).map(|(&f, &b)| sum(f, b)).collect(),
        embedding: sum(forward.first, backward.first),
        head: sum(forward.last, backward.last),
    };
    let mut sums = |lengths: Lengths, key: &Key<OneOrList<Duration>>| {
        lengths.by_stage(shape, one_copy).map_err(|error| {
            problems.push(Diagnostic::new(key.span().unwrap_or(table), error.to_string()));
            Broken
        })
    };
    let forward = sums(forward, &time.layer_forward);
    Ok(Some(ByStage { forward: forward?, backward: sums(backward, &time.layer_backward)?, costs }))
}

fn is_by_layer(time: &Time) -> bool {
    let lists = [&time.layer_forward, &time.layer_backward];
    let ends = [&time.embedding_forward, &time.embedding_backward, &time.head_forward, &time.head_backward];
    lists.iter().any(|key| !key.is_absent()) || ends.iter().any(|key| !key.is_absent())
}

/// Reports those keys that are missing.
fn require(
    table: Span,
    keys: &[(&str, &Key<OneOrList<Duration>>)],
    problems: &mut Problems,
) -> Result<(), Broken> {
    let missing: Vec<&str> = keys.iter().filter(|(_, key)| key.is_absent()).map(|(name, _)| *name).collect();
    for &name in &missing {
        let example = if name.ends_with("forward") { "10 ms" } else { "20 ms" };
        let problem = Diagnostic::new(table, format!("`[time]` needs `{name}`"));
        problems.push(problem.help(format!("write `{name} = \"{example}\"`")));
    }
    if missing.is_empty() { Ok(()) } else { Err(Broken) }
}

/// Reports lengths by rank beside those by layer.
fn exclude(time: &Time, problems: &mut Problems) -> Result<(), Broken> {
    let by_layer = time.layer_forward.span().or(time.layer_backward.span());
    let mut result = Ok(());
    for (name, span) in [("forward", time.forward.span()), ("backward", time.backward.span())] {
        if let Some(span) = span {
            let message = format!("`time.{name}` is for a whole rank, and other lengths are by layer");
            let problem = Diagnostic::new(span, message).related(by_layer, "by layer");
            problems.push(problem.help(format!("leave out `{name}`, or write all lengths by rank")));
            result = Err(Broken);
        }
    }
    result
}

/// The lengths of one kind of operation: of each layer, and of what lies before and behind the layers.
struct Ends<'a> {
    each: &'a Key<OneOrList<Duration>>,
    first: &'a Key<Duration>,
    last: &'a Key<Duration>,
}

impl Ends<'_> {
    fn by_layer(&self, path: &str, layers: usize, problems: &mut Problems) -> Result<Lengths, Broken> {
        let zero = Duration::ZERO;
        let each = Each { count: layers, one: "layer" };
        let layers = for_each(self.each, path, zero, each, problems)?;
        Ok(Lengths {
            layers,
            first: self.first.or(zero).ok_or(Broken)?,
            last: self.last.or(zero).ok_or(Broken)?,
        })
    }
}

/// One kind of operation, layer by layer.
struct Lengths {
    layers: Vec<Duration>,
    first: Duration,
    last: Duration,
}

impl Lengths {
    /// Sums over the layers of each stage of all copies; `split` is that of one.
    fn by_stage(&self, shape: &Shape, split: &[u64]) -> Result<Vec<Duration>, Overflow> {
        let mut from = 0;
        let mut sums = Vec::with_capacity(split.len());
        for (stage, &count) in stages(shape).zip(split) {
            let to = from + count as usize;
            let ends = [(shape.previous(stage), self.first), (shape.next(stage), self.last)];
            let ends =
                ends.into_iter().filter(|(neighbour, _)| neighbour.is_none()).map(|(_, length)| length);
            sums.push(
                self.layers[from..to].iter().copied().chain(ends).try_fold(Duration::ZERO, Duration::plus)?,
            );
            from = to;
        }
        Ok(sums.repeat(shape.copies()))
    }
}

//! `[jitter]`: the factors that a step draws.

use pipestep_schedule::Shape;

use super::values::read_values;
use super::{Broken, Each, wrong_length};
use crate::chance::{Chance, Shape as Drawn};
use crate::diagnostic::{Diagnostic, Span};
use crate::files::Files;
use crate::format::File;
use crate::format::spread::StepFactor;
use crate::jitter::{Jitter, LinkScatter, Scatter};
use crate::read::{Count, Key, OneOrList, Problems};

type Written = Key<OneOrList<Chance<StepFactor>>>;

/// The scatter of a file's step.
pub(super) fn lower(
    file: &File,
    shape: &Shape,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Result<Option<Jitter>, Broken> {
    let Some((written, _)) = file.jitter.given()? else {
        return Ok(None);
    };
    let mut reader = Reader { files, problems };
    let (rank, boundary) = (Each::rank(shape), Each::boundary(shape));
    let forward = reader.each(&written.forward, "jitter.forward", rank);
    let backward = reader.each(&written.backward, "jitter.backward", rank);
    let input = reader.each(&written.input_gradient, "jitter.input_gradient", rank);
    let weight = reader.each(&written.weight_gradient, "jitter.weight_gradient", rank);
    let update = reader.each(&written.update, "jitter.update", rank);
    let activation = reader.link(&written.activation, "jitter.activation", boundary);
    let gradient = reader.link(&written.gradient, "jitter.gradient", boundary);
    let none = || vec![Scatter::NONE; rank.count];
    let backward = backward?.unwrap_or_else(none);
    Ok(Some(Jitter {
        forward: forward?.unwrap_or_else(none),
        input_gradient: input?.unwrap_or_else(|| backward.clone()),
        weight_gradient: weight?.unwrap_or_else(|| backward.clone()),
        backward,
        update: update?.unwrap_or_else(none),
        activation: activation?,
        gradient: gradient?,
        runs: written.runs.or(Count(100)).ok_or(Broken)?.0,
        seed: written.seed.or(0).ok_or(Broken)?,
    }))
}

struct Reader<'r, 'f> {
    files: &'r mut Files<'f>,
    problems: &'r mut Problems,
}

impl Reader<'_, '_> {
    /// One for each rank or boundary; `None` if the key was left out.
    fn each(&mut self, key: &Written, path: &str, each: Each) -> Result<Option<Vec<Scatter>>, Broken> {
        match key {
            Key::Absent => Ok(None),
            Key::Broken => Err(Broken),
            Key::Given(OneOrList::One(chance), span) => {
                let scatter = self.scatter(chance, path, *span)?;
                Ok(Some(vec![scatter; each.count]))
            }
            Key::Given(OneOrList::List(list), span) if list.len() == each.count => {
                let read = list.iter().map(|chance| self.scatter(chance, path, *span));
                read.collect::<Result<_, _>>().map(Some)
            }
            Key::Given(OneOrList::List(list), span) => {
                self.problems.push(wrong_length(path, *span, list.len(), each));
                Err(Broken)
            }
        }
    }

    fn link(&mut self, key: &Written, path: &str, each: Each) -> Result<LinkScatter, Broken> {
        let others = match key {
            Key::Given(OneOrList::One(chance), span) => self.scatter(chance, path, *span)?,
            _ => Scatter::NONE,
        };
        let boundaries = match key {
            Key::Given(OneOrList::One(_), _) => vec![others.clone(); each.count],
            key => self.each(key, path, each)?.unwrap_or_else(|| vec![Scatter::NONE; each.count]),
        };
        Ok(LinkScatter { boundaries, others })
    }

    fn scatter(&mut self, chance: &Chance<StepFactor>, path: &str, span: Span) -> Result<Scatter, Broken> {
        let scatter = match &chance.shape {
            Drawn::Fixed(factor) => Scatter::Fixed(factor.as_f64()),
            Drawn::Normal { mean, deviation } => {
                Scatter::Normal { mean: mean.as_f64(), deviation: deviation.as_f64() }
            }
            Drawn::LognormalMean { mean, variation } => {
                Scatter::Lognormal { mean: mean.as_f64(), variation: *variation }
            }
            Drawn::LognormalMedian { median, sigma } => {
                let square = sigma * sigma;
                let mean = median.as_f64() * (square / 2.0).exp();
                Scatter::Lognormal { mean, variation: square.exp_m1().sqrt() }
            }
            Drawn::Uniform { low, high } => Scatter::Uniform { low: low.as_f64(), high: high.as_f64() },
            Drawn::Exponential { mean } => Scatter::Exponential { mean: mean.as_f64() },
            Drawn::Empirical(values) => {
                let values = read_values::<StepFactor>(values, path, self.files, self.problems)?;
                Scatter::Empirical(values.iter().map(|factor| factor.as_f64()).collect())
            }
            // Not among the families of a `StepFactor`.
            Drawn::Weibull { .. } | Drawn::Pareto { .. } | Drawn::List(_) => return Err(Broken),
        };
        match refuse(&scatter) {
            None => Ok(scatter),
            Some(reason) => {
                self.problems.push(Diagnostic::new(span, format!("`{path}`: {reason}")));
                Err(Broken)
            }
        }
    }
}

/// Why a distribution cannot be one of factors, if it cannot.
fn refuse(scatter: &Scatter) -> Option<&'static str> {
    match scatter {
        Scatter::Lognormal { variation, .. } if *variation > 100.0 => {
            Some("a lognormal variation (deviation over mean) is at most 100")
        }
        Scatter::Lognormal { mean, .. } if !(*mean > 0.0 && mean.is_finite()) => {
            Some("the mean of a lognormal is above 0")
        }
        Scatter::Uniform { low, high } if low > high => Some("the lower end lies above the upper end"),
        Scatter::Normal { mean: 0.0, .. } => Some("the mean is above 0"),
        _ => None,
    }
}

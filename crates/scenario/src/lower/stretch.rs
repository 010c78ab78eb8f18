//! What makes the written lengths longer: slow ranks and links, and micro-batches of another size than the one
//! that was measured. Exact fractions, applied once to what was written for a rank or a boundary.

use pipestep_engine::Duration;
use pipestep_schedule::Shape;
use pipestep_step::round_half_even;

use super::{Broken, Each, Models, for_each};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::File;
use crate::format::spread::{self as written, Point};
use crate::jitter::{Curve, Efficiency};
use crate::read::{AboveZero, Key, OneOrList, Problems};
use crate::units::Factor;

/// Factors by rank and by boundary.
pub(super) struct Stretch {
    /// Of a rank's operations.
    pub ranks: Vec<Ratio>,
    /// Of a rank's update, which does not depend on micro-batches.
    pub updates: Vec<Ratio>,
    /// Of messages over a boundary.
    pub boundaries: Vec<Ratio>,
    /// Of messages between ranks that are not neighbours.
    pub wraparound: Ratio,
    /// How the size of a micro-batch counts, if that is written.
    pub efficiency: Option<Efficiency>,
}

/// A fraction; the lower number is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    upper: u128,
    lower: u128,
}

impl Ratio {
    const ONE: Self = Self { upper: 1, lower: 1 };

    fn new(upper: u128, lower: u128) -> Self {
        let (mut a, mut b) = (upper, lower);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let divisor = a.max(1);
        Self { upper: upper / divisor, lower: lower / divisor }
    }

    fn of(factor: Factor) -> Self {
        Self { upper: factor.numerator.into(), lower: factor.denominator.into() }
    }

    fn times(self, other: Self) -> Option<Self> {
        let (left, right) = (Self::new(self.upper, other.lower), Self::new(other.upper, self.lower));
        let (upper, lower) = (left.upper.checked_mul(right.upper)?, left.lower.checked_mul(right.lower)?);
        Some(Self { upper, lower })
    }

    /// A length times this, rounded half to even.
    pub(super) fn apply(self, length: Duration) -> Option<Duration> {
        if self == Self::ONE {
            return Some(length);
        }
        let product = self.upper.checked_mul(length.as_nanos().into())?;
        u64::try_from(round_half_even(product, self.lower)).ok().map(Duration::from_nanos)
    }
}

/// What a file says about slow ranks, slow links and the size of micro-batches.
pub(super) fn lower(
    file: &File,
    shape: &Shape,
    models: &Models,
    problems: &mut Problems,
) -> Result<Stretch, Broken> {
    let (rank, link) = match &file.jitter {
        Key::Absent => (None, None),
        Key::Broken => return Err(Broken),
        Key::Given(jitter, _) => (Some(&jitter.rank_factor), Some(&jitter.link_factor)),
    };
    let mut factors = |key: Option<&Key<OneOrList<AboveZero>>>, path, each| {
        let key = key.unwrap_or(&Key::Absent);
        let factors = for_each(key, path, AboveZero(Factor::ONE), each, problems)?;
        Ok(factors.into_iter().map(|factor| Ratio::of(factor.0)).collect::<Vec<_>>())
    };
    let updates = factors(rank, "jitter.rank_factor", Each::rank(shape));
    let boundaries = factors(link, "jitter.link_factor", Each::boundary(shape));
    let size = size(file, models, problems)?;
    let (updates, boundaries) = (updates?, boundaries?);
    // A list of links is one of neighbours.
    let far = match link {
        Some(Key::Given(OneOrList::One(factor), _)) => Ratio::of(factor.0),
        _ => Ratio::ONE,
    };
    let (compute, messages) =
        size.as_ref().map_or((Ratio::ONE, Ratio::ONE), |size| (size.compute, size.messages));
    let each = |factors: &[Ratio], by: Ratio| factors.iter().map(|factor| factor.times(by)).collect();
    let ranks: Option<Vec<Ratio>> = each(&updates, compute);
    let links: Option<Vec<Ratio>> = each(&boundaries, messages);
    let (Some(ranks), Some(boundaries), Some(wraparound)) = (ranks, links, far.times(messages)) else {
        let span = file.efficiency.span().or(file.jitter.span()).unwrap_or(Span::FILE);
        problems.push(Diagnostic::new(span, "the factors have too many digits to be multiplied exactly"));
        return Err(Broken);
    };
    Ok(Stretch { ranks, updates, boundaries, wraparound, efficiency: size.map(|size| size.efficiency) })
}

/// How the size of a micro-batch counts.
struct Size {
    compute: Ratio,
    messages: Ratio,
    efficiency: Efficiency,
}

fn size(file: &File, models: &Models, problems: &mut Problems) -> Result<Option<Size>, Broken> {
    let Some((written, span)) = file.efficiency.given()? else {
        return Ok(None);
    };
    let (curve, exact) = curve(written, span, problems)?;
    let reference = written.reference_tokens.get().ok_or(Broken)?.0;
    let Some((activations, _)) = models.activations.as_ref().map_err(|&Broken| Broken)? else {
        let problem =
            Diagnostic::new(span, "`[efficiency]` goes by the tokens of a micro-batch and needs a `[model]`");
        problems.push(problem.help("write `[model]` with `sequence_length` and `micro_batch_size`"));
        return Err(Broken);
    };
    let size = activations.micro_batch;
    let tokens = size.sequences.checked_mul(size.tokens).ok_or(Broken)?;
    let messages = Ratio::new(tokens.into(), reference.into());
    let (Some(now), Some(then)) = (exact.at(tokens), exact.at(reference)) else {
        problems.push(Diagnostic::new(span, "the factors have too many digits to be multiplied exactly"));
        return Err(Broken);
    };
    let compute = messages.times(now).and_then(|ratio| ratio.times(Ratio::new(then.lower, then.upper)));
    let Some(compute) = compute else {
        problems.push(Diagnostic::new(span, "the factors have too many digits to be multiplied exactly"));
        return Err(Broken);
    };
    let efficiency = Efficiency { curve, reference_tokens: reference, tokens };
    Ok(Some(Size { compute, messages, efficiency }))
}

/// The curve in exact numbers.
enum Exact {
    Points(Vec<(u64, Factor)>),
    Fixed(u64),
}

fn curve(
    written: &written::Efficiency,
    span: Span,
    problems: &mut Problems,
) -> Result<(Curve, Exact), Broken> {
    match (&written.points, &written.fixed_tokens) {
        (Key::Broken, _) | (_, Key::Broken) => Err(Broken),
        (Key::Absent, Key::Given(fixed, _)) => {
            Ok((Curve::Fixed { fixed_tokens: *fixed }, Exact::Fixed(*fixed)))
        }
        (Key::Given(points, span), Key::Absent) => {
            let points = rising(points, *span, problems)?;
            let floats = points.iter().map(|&(tokens, factor)| (tokens, factor.as_f64())).collect();
            Ok((Curve::Points(floats), Exact::Points(points)))
        }
        (points, fixed) => {
            let both = points.span().zip(fixed.span());
            let message = "`[efficiency]` needs either `points` or `fixed_tokens`";
            let problem = Diagnostic::new(both.map_or(span, |(_, fixed)| fixed), message);
            problems.push(problem.help("write `points = [{ tokens = 128, time_per_token = 1.6 }, ..]`"));
            Err(Broken)
        }
    }
}

fn rising(points: &[Point], span: Span, problems: &mut Problems) -> Result<Vec<(u64, Factor)>, Broken> {
    let point = |point: &Point| Some((point.tokens.get()?.0, point.time_per_token.get()?.0));
    let points: Vec<(u64, Factor)> = points.iter().map(point).collect::<Option<_>>().ok_or(Broken)?;
    if points.is_empty() || points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        let message = "`efficiency.points`: expected points by rising tokens, at least one";
        problems.push(Diagnostic::new(span, message));
        return Err(Broken);
    }
    Ok(points)
}

impl Exact {
    /// Time per token up to a constant factor.
    fn at(&self, tokens: u64) -> Option<Ratio> {
        let points = match self {
            Self::Fixed(fixed) => {
                return Some(Ratio::new(u128::from(tokens) + u128::from(*fixed), tokens.into()));
            }
            Self::Points(points) => points,
        };
        let after = points.partition_point(|&(at, _)| at < tokens);
        match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
            (Some((left, low)), Some(&(right, high))) => {
                // (low * (right - tokens) + high * (tokens - left)) / (right - left), over a common denominator.
                let part = |factor: Factor, other: Factor, weight: u64| {
                    let product = u128::from(factor.numerator) * u128::from(other.denominator);
                    product.checked_mul(weight.into())
                };
                let upper = part(low, high, right - tokens)?.checked_add(part(high, low, tokens - left)?)?;
                let lower = u128::from(low.denominator) * u128::from(high.denominator);
                Some(Ratio::new(upper, lower.checked_mul((right - left).into())?))
            }
            (None, Some(&(_, only))) | (Some((_, only)), None) => Some(Ratio::of(only)),
            (None, None) => None,
        }
    }
}

//! `[stragglers]`: what slows a job down, and what is done about it.

use pipestep_engine::{Duration, Time};
use pipestep_job::{
    Jitter, Ranks, Ratio, Response, SlowDetection, SlowRanks, SlowWindow, Spread, Stragglers,
};

use super::{Broken, between, spread};
use crate::chance::Chance;
use crate::diagnostic::{Diagnostic, Span};
use crate::format::File;
use crate::format::job::JobTime;
use crate::format::stragglers::{self as written, JitterWord, ResponseWord};
use crate::read::{AboveZero, Count, Key, Problems, Real, Word};

/// The stragglers of a file. The length of a step is put in when it is known.
pub(super) fn lower(file: &File, problems: &mut Problems) -> Result<Stragglers, Broken> {
    let Some((written, _)) = file.stragglers.given()? else {
        return Ok(Stragglers::default());
    };
    let copies = file.parallel.get().and_then(|parallel| parallel.data.get());
    let ranks = ranks(written, copies.map(|copies| copies.0), problems);
    let windows = match &written.windows {
        Key::Absent => Vec::new(),
        Key::Broken => return Err(Broken),
        Key::Given(windows, _) => windows.iter().map(window).collect::<Result<_, _>>()?,
    };
    Ok(Stragglers { windows, ranks: ranks? })
}

fn instant(at: Duration) -> Time {
    Time::from_nanos(at.as_nanos())
}

fn window(window: &written::Window) -> Result<SlowWindow, Broken> {
    let at = |key: &Key<Duration>| key.get().copied().map(instant).ok_or(Broken);
    Ok(SlowWindow { from: at(&window.from)?, to: at(&window.to)?, factor: ratio(&window.factor)? })
}

fn ratio(key: &Key<AboveZero>) -> Result<Ratio, Broken> {
    let factor = key.get().ok_or(Broken)?.0;
    Ratio::new(factor.numerator, factor.denominator).ok_or(Broken)
}

fn ranks(
    written: &written::Stragglers,
    copies: Option<u32>,
    problems: &mut Problems,
) -> Result<Option<Ranks>, Broken> {
    let count = match &written.ranks {
        Key::Given(count, _) => count.0,
        Key::Broken => return Err(Broken),
        Key::Absent => match (about_ranks(written), copies) {
            (None, _) => return Ok(None),
            (Some(_), Some(copies)) => copies,
            (Some((name, span)), None) => {
                let message =
                    format!("`stragglers.{name}` is about the ranks of a step, and nothing says how many");
                problems.push(Diagnostic::new(span, message).help("write `ranks = 64`"));
                return Err(Broken);
            }
        },
    };
    let jitter = match &written.jitter {
        Key::Absent => Ok(Jitter::None),
        Key::Broken => Err(Broken),
        Key::Given(jitter, span) => lower_jitter(jitter, *span, problems),
    };
    let detection = detection(written, problems);
    let response = response(written, problems);
    let slow = slow(&written.slow)?;
    Ok(Some(Ranks {
        count,
        step: Duration::ZERO,
        overhead: written.overhead.or(Duration::ZERO).ok_or(Broken)?,
        jitter: jitter?,
        slow,
        detection: detection?,
        response: response?,
    }))
}

/// The first key that is about the ranks of a step.
fn about_ranks(written: &written::Stragglers) -> Option<(&'static str, Span)> {
    let keys = [
        ("overhead", written.overhead.span()),
        ("jitter", written.jitter.span()),
        ("slow", written.slow.span()),
        ("threshold", written.threshold.span()),
        ("window", written.window.span()),
        ("response", written.response.span()),
        ("pause", written.pause.span()),
        ("drop", written.drop.span()),
        ("staleness", written.staleness.span()),
    ];
    keys.into_iter().find_map(|(name, span)| Some((name, span?)))
}

/// The scatter of a rank: exactly the parameters of its family.
fn lower_jitter(
    written: &written::StepJitter,
    span: Span,
    problems: &mut Problems,
) -> Result<Jitter, Broken> {
    let probability = match &written.probability {
        Key::Broken => return Err(Broken),
        key => key.get().map(|share| share.as_f64()),
    };
    let number =
        |key: &Key<Real>| if key.is_broken() { Err(Broken) } else { Ok(key.get().map(|real| real.0)) };
    let family = written.distribution.get().ok_or(Broken)?.0;
    let mut given = [
        ("deviation", number(&written.deviation)?),
        ("variation", number(&written.variation)?),
        ("tail", number(&written.tail)?),
        ("factor", number(&written.factor)?),
        ("probability", probability),
    ];
    let mut take = |name: &str| {
        let found = given.iter_mut().find(|(key, _)| *key == name).and_then(|(_, value)| value.take());
        found.ok_or_else(|| {
            let message = format!("`stragglers.jitter`: this family needs `{name}`");
            problems.push(Diagnostic::new(span, message));
            Broken
        })
    };
    let jitter = match family {
        JitterWord::Normal => Jitter::Normal { deviation: take("deviation")? },
        JitterWord::Lognormal => Jitter::Lognormal { variation: take("variation")? },
        JitterWord::Exponential => Jitter::Exponential { tail: take("tail")? },
        JitterWord::TwoPoint => {
            let (factor, probability) = (take("factor"), take("probability"));
            Jitter::TwoPoint { factor: factor?, probability: probability? }
        }
    };
    if let Some((name, _)) = given.iter().find(|(_, value)| value.is_some()) {
        let message = format!("`stragglers.jitter`: `{name}` is no parameter of this family");
        problems.push(Diagnostic::new(span, message).help(format!("leave out `{name}`")));
        return Err(Broken);
    }
    Ok(jitter)
}

fn slow(key: &Key<written::Slow>) -> Result<Option<SlowRanks>, Broken> {
    let Some((written, _)) = key.given()? else {
        return Ok(None);
    };
    let drawn = |key: &Key<Chance<JobTime>>, read: fn(&Chance<JobTime>) -> Result<Spread, Broken>| match key {
        Key::Absent => Ok(None),
        Key::Broken => Err(Broken),
        Key::Given(chance, _) => read(chance).map(Some),
    };
    Ok(Some(SlowRanks {
        at: match &written.at {
            Key::Absent => Vec::new(),
            Key::Broken => return Err(Broken),
            Key::Given(at, _) => at.iter().copied().map(instant).collect(),
        },
        between: drawn(&written.mtbf, between)?,
        factor: ratio(&written.factor)?,
        lasts: drawn(&written.lasts, spread)?,
    }))
}

/// How a slow rank is noticed: both keys or none.
fn detection(
    written: &written::Stragglers,
    problems: &mut Problems,
) -> Result<Option<SlowDetection>, Broken> {
    if written.threshold.is_broken() || written.window.is_broken() {
        return Err(Broken);
    }
    match (written.threshold.get(), written.window.get()) {
        (None, None) => Ok(None),
        (Some(threshold), Some(window)) => {
            Ok(Some(SlowDetection { threshold: threshold.0, window: window.0 }))
        }
        (Some(_), None) => Err(lonely("threshold", "window", "5", written.threshold.span(), problems)),
        (None, Some(_)) => Err(lonely("window", "threshold", "0.1", written.window.span(), problems)),
    }
}

fn lonely(given: &str, needed: &str, example: &str, span: Option<Span>, problems: &mut Problems) -> Broken {
    let message = format!("`stragglers.{given}` needs `{needed}` too");
    let problem = Diagnostic::new(span.unwrap_or(Span::FILE), message);
    problems.push(problem.help(format!("write `{needed} = {example}`")));
    Broken
}

/// What is done about slow ranks, and the number that goes with it.
fn response(written: &written::Stragglers, problems: &mut Problems) -> Result<Response, Broken> {
    let word = written.response.or(Word(ResponseWord::Wait)).ok_or(Broken)?.0;
    let numbers = [
        ("pause", "redistribute", ResponseWord::Redistribute, written.pause.span()),
        ("drop", "drop", ResponseWord::Drop, written.drop.span()),
        ("staleness", "stale", ResponseWord::Stale, written.staleness.span()),
    ];
    let stray = numbers.into_iter().find(|&(_, _, of, span)| of != word && span.is_some());
    if let Some((name, response, _, Some(span))) = stray {
        let message = format!("`stragglers.{name}` is for `response = \"{response}\"`");
        let problem = Diagnostic::new(span, message).related(written.response.span(), "the response");
        problems.push(problem.help(format!("leave out `{name}`, or write `response = \"{response}\"`")));
        return Err(Broken);
    }
    let count = |key: &Key<Count>| key.or(Count(1)).map(|count| count.0).ok_or(Broken);
    Ok(match word {
        ResponseWord::Wait => Response::Wait,
        ResponseWord::Redistribute => {
            Response::Redistribute { pause: written.pause.or(Duration::ZERO).ok_or(Broken)? }
        }
        ResponseWord::Evict => Response::Evict,
        ResponseWord::Drop => Response::Drop { slowest: count(&written.drop)? },
        ResponseWord::Stale => Response::Stale { bound: count(&written.staleness)? },
    })
}

//! The search itself: every setting, then closer round the best ones along the continuous keys.

use std::sync::Mutex;

use pipestep_job::{SimulatedCost, best_interval};
use pipestep_report::Difference;
use pipestep_scenario::{Diagnostic, Diagnostics, Override};
use rayon::prelude::*;

use super::line::{Point, closer};
use super::measure::{Measured, Subject};
use super::space::{Choice, KeySpace, Setting, overrides};
use crate::search::evaluate::Evaluator;
use crate::sweep::Progress;

/// The key for which a curve through all points says more than the best of them.
const INTERVAL: &str = "checkpoint.every";
/// The curve is that of small losses: points further from the best than by this factor do not lie on it.
const ON_THE_CURVE: f64 = 3.0;

/// A setting that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) setting: Setting,
    /// Whether it lies between the values that were asked for.
    pub(crate) is_between: bool,
    /// What it came to, or why it is not legal.
    pub(crate) outcome: Result<Measured, String>,
}

/// What a search found.
#[derive(Debug)]
pub(crate) struct FoundKeys {
    pub(crate) subject: Subject,
    /// In the order of the settings, those between behind them.
    pub(crate) tried: Vec<Tried>,
    /// The legal ones, best first; of equals the first tried.
    pub(crate) order: Vec<usize>,
    /// The scenario as it is written, if that is legal.
    pub(crate) written: Option<Measured>,
}

/// A fitted curve along a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curve {
    /// Where it is lowest, in base units.
    pub(crate) lowest: f64,
    /// Through how many points.
    pub(crate) points: usize,
}

/// Tries everything; `shown` is how many settings the user will see, round which the search looks closer.
pub(crate) fn find(
    evaluator: &Evaluator,
    space: &KeySpace,
    subject: Subject,
    shown: usize,
    progress: Progress,
) -> FoundKeys {
    let progress = Mutex::new((progress, 0));
    let grid = (0..space.settings).into_par_iter().map(|number| {
        let tried = attempt(evaluator, subject, space.setting(number), false);
        if let Ok(mut progress) = progress.lock() {
            progress.1 += 1;
            let done = progress.1;
            progress.0.show(done);
        }
        tried
    });
    let tried: Vec<Tried> = grid.collect();
    let written = evaluator.read(Vec::new()).ok().and_then(|scenario| subject.measure(&scenario).ok());
    let mut found = FoundKeys { subject, tried, order: Vec::new(), written };
    found.sort();
    for start in starts(&found, space, shown) {
        look_closer(evaluator, space, &mut found, start);
    }
    if let Ok(progress) = progress.lock() {
        progress.0.end();
    }
    found
}

fn attempt(evaluator: &Evaluator, subject: Subject, setting: Setting, is_between: bool) -> Tried {
    let sets: Vec<Override> = overrides(&setting).collect();
    let outcome = match evaluator.read(sets) {
        Ok(scenario) => subject.measure(&scenario).map_err(|error| format!("{error:#}")),
        Err(diagnostics) => Err(first(&diagnostics)),
    };
    Tried { setting, is_between, outcome }
}

fn first(diagnostics: &Diagnostics) -> String {
    diagnostics.iter().next().map_or("", Diagnostic::message).to_owned()
}

/// The best setting of each of the best lines; a line is what differs in continuous keys only.
fn starts(found: &FoundKeys, space: &KeySpace, most: usize) -> Vec<usize> {
    let fixed = |setting: &Setting| -> Vec<Choice> {
        let all = space.dimensions.iter().zip(setting);
        all.filter(|(dimension, _)| !dimension.is_continuous()).map(|(_, choice)| choice.clone()).collect()
    };
    if !space.dimensions.iter().any(super::space::Dimension::is_continuous) {
        return Vec::new();
    }
    let mut lines: Vec<(Vec<Choice>, usize)> = Vec::new();
    for &index in &found.order {
        let line = fixed(&found.tried[index].setting);
        if lines.len() < most && lines.iter().all(|(other, _)| *other != line) {
            lines.push((line, index));
        }
    }
    lines.into_iter().map(|(_, index)| index).collect()
}

/// Looks closer along each continuous key in turn, each time from the best setting so far.
fn look_closer(evaluator: &Evaluator, space: &KeySpace, found: &mut FoundKeys, start: usize) {
    let mut here = start;
    for (place, dimension) in space.dimensions.iter().enumerate() {
        if !dimension.is_continuous() {
            continue;
        }
        let line = found.line(here, place);
        let points: Vec<Point> = line.iter().filter_map(|&index| found.point(index, place)).collect();
        let base = found.tried[here].setting.clone();
        closer(points, |wanted| {
            let choices = wanted.iter().filter_map(|&number| dimension.at(number)).collect();
            let new = found.attempt_new(evaluator, &base, place, choices);
            new.into_iter().filter_map(|index| found.point(index, place)).collect()
        });
        if let Some(curve) = found.curve(here, place, &dimension.name)
            && let Some(choice) = dimension.at(curve.lowest)
        {
            found.attempt_new(evaluator, &base, place, vec![choice]);
        }
        let best = found.line(here, place).into_iter().min_by(|&one, &other| found.compare(one, other));
        here = best.unwrap_or(here);
    }
    found.sort();
}

impl FoundKeys {
    /// Tries settings that differ from `base` in one choice, unless they have been tried; where the new ones are.
    fn attempt_new(
        &mut self,
        evaluator: &Evaluator,
        base: &Setting,
        place: usize,
        choices: Vec<Choice>,
    ) -> Vec<usize> {
        let settings = choices.into_iter().map(|choice| {
            let mut setting = base.clone();
            setting[place] = choice;
            setting
        });
        let is_known = |setting: &Setting| {
            let bits = |choice: &Choice| choice.number.map(f64::to_bits);
            // `600 s` and `10 min` are the same.
            let same = |(one, other): (&Choice, &Choice)| {
                one == other || bits(one).is_some_and(|number| bits(other) == Some(number))
            };
            self.tried.iter().any(|tried| tried.setting.iter().zip(setting).all(same))
        };
        let settings: Vec<Setting> = settings.filter(|setting| !is_known(setting)).collect();
        let subject = self.subject;
        let new: Vec<Tried> =
            settings.into_par_iter().map(|setting| attempt(evaluator, subject, setting, true)).collect();
        let from = self.tried.len();
        self.tried.extend(new);
        (from..self.tried.len()).collect()
    }

    /// The legal settings that differ from one in the choice at `place` only, itself among them.
    pub(crate) fn line(&self, of: usize, place: usize) -> Vec<usize> {
        let here = &self.tried[of].setting;
        let is_on_it = |tried: &Tried| {
            let others = tried.setting.iter().zip(here).enumerate();
            tried.outcome.is_ok()
                && others.filter(|(at, _)| *at != place).all(|(_, (one, other))| one == other)
        };
        (0..self.tried.len()).filter(|&index| is_on_it(&self.tried[index])).collect()
    }

    /// What was measured of a legal setting.
    pub(crate) fn measured(&self, index: usize) -> Option<&Measured> {
        self.tried[index].outcome.as_ref().ok()
    }

    /// A legal setting as a point along one of its keys.
    fn point(&self, index: usize, place: usize) -> Option<Point> {
        let at = self.tried[index].setting[place].number?;
        Some(Point { at, losses: self.losses(self.measured(index)?) })
    }

    /// What is to be as low as possible, run by run.
    fn losses(&self, measured: &Measured) -> Vec<f64> {
        let sign = if self.subject.is_lowest() { 1.0 } else { -1.0 };
        measured.samples.iter().map(|sample| sign * sample).collect()
    }

    /// How far a setting is behind another: positive where it is worse.
    pub(crate) fn behind(&self, one: &Measured, other: &Measured) -> Option<Difference> {
        Difference::of(&self.losses(one), &self.losses(other))
    }

    /// Better first, then as tried.
    fn compare(&self, one: usize, other: usize) -> std::cmp::Ordering {
        let loss = |index| {
            let mean = self.measured(index).map_or(f64::INFINITY, Measured::mean);
            if self.subject.is_lowest() { mean } else { -mean }
        };
        loss(one).total_cmp(&loss(other)).then(one.cmp(&other))
    }

    fn sort(&mut self) {
        let mut order: Vec<usize> =
            (0..self.tried.len()).filter(|&index| self.measured(index).is_some()).collect();
        order.sort_by(|&one, &other| self.compare(one, other));
        self.order = order;
    }

    /// From which value to which, along a key, nothing that was simulated can be told apart from a setting; `None`
    /// where all can.
    pub(crate) fn span(&self, of: usize, place: usize) -> Option<(f64, f64)> {
        let first = self.measured(of)?;
        let at = |index: usize| self.tried[index].setting[place].number;
        let mut line = self.line(of, place);
        line.sort_by(|&one, &other| at(one).unwrap_or(0.0).total_cmp(&at(other).unwrap_or(0.0)));
        let here = line.iter().position(|&index| index == of)?;
        let is_close = |index: &usize| {
            let behind = self.measured(*index).and_then(|measured| self.behind(measured, first));
            behind.is_some_and(|behind| !behind.is_sure(self.order.len()))
        };
        let below = line[..here].iter().rev().take_while(|index| is_close(index)).last();
        let above = line[here + 1..].iter().take_while(|index| is_close(index)).last();
        let ends = (at(*below.unwrap_or(&of))?, at(*above.unwrap_or(&of))?);
        (below.is_some() || above.is_some()).then_some(ends)
    }

    /// For the interval between saves: the curve a/x + b + dx of saves, constant losses and redo through the points
    /// of a line; `None` for other keys, and where the curve has no lowest point among them.
    pub(crate) fn curve(&self, of: usize, place: usize, key: &str) -> Option<Curve> {
        if key != INTERVAL {
            return None;
        }
        let line = self.line(of, place);
        let best = line.iter().copied().min_by(|&one, &other| self.compare(one, other))?;
        let best = self.tried[best].setting[place].number?;
        let points: Vec<SimulatedCost> = line
            .iter()
            .filter_map(|&index| {
                let interval = self.tried[index].setting[place].number?;
                let cost = self.measured(index)?.stretch?;
                Some(SimulatedCost { interval, cost, standard_error: 0.0 })
            })
            .filter(|point| (best / ON_THE_CURVE..=best * ON_THE_CURVE).contains(&point.interval))
            .collect();
        let lowest = best_interval(&points)?;
        let all = || points.iter().map(|point| point.interval);
        let is_inside = all().any(|interval| interval <= lowest) && all().any(|interval| interval >= lowest);
        is_inside.then_some(Curve { lowest, points: points.len() })
    }
}

#[cfg(test)]
mod tests;

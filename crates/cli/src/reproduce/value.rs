//! The value that a claim is about, read off the result of its scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use serde_json::Value;

use super::{Claim, Unit};
use crate::commands::{explain, run};
use crate::simulated_rl::Limits;
use crate::{args, load};

/// The results of scenarios, each simulated once however many claims point at it.
pub(crate) struct Results {
    known: BTreeMap<Question, Result<Value>>,
}

/// What has been asked of which scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    scenario: String,
    set: Vec<String>,
    part: Part,
}

/// Which part of what pipestep says about it; what takes long is left out unless it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// What `run` says.
    Result,
    /// That, and at which speed each stage of a round would limit it.
    Limits,
    /// What `explain` says.
    Reasons,
}

impl Results {
    /// The results of everything that the claims ask for, on all cores; scenarios are looked up in `directory`.
    pub(crate) fn of(claims: &[Claim], directory: &Path) -> Self {
        let questions: BTreeSet<Question> = claims.iter().flat_map(Question::all).collect();
        let answer = |question: Question| {
            let result = question.answer(directory);
            (question, result)
        };
        Self { known: questions.into_par_iter().map(answer).collect() }
    }

    /// The value of a claim.
    ///
    /// # Errors
    /// A scenario that cannot be run, or that has no such value.
    pub(crate) fn value(&self, claim: &Claim) -> Result<f64> {
        let value = self.number(&claim.scenario, &claim.set, &claim.value)?;
        let value = match &claim.minus {
            None => value,
            Some(minus) => value - self.number(&claim.scenario, &claim.set, minus)?,
        };
        let value = value / claim.divided_by;
        let Some(against) = &claim.against else {
            return Ok(value);
        };
        let pointer = against.value.as_ref().unwrap_or(&claim.value);
        let base = self.number(&against.scenario, &against.set, pointer)?;
        let ratio = value / base;
        Ok(if claim.unit == Unit::Times { ratio } else { (ratio - 1.0) * 100.0 })
    }

    fn number(&self, scenario: &str, set: &[String], pointer: &str) -> Result<f64> {
        let result = match &self.known[&Question::new(scenario, set, pointer)] {
            Ok(result) => result,
            Err(error) => bail!("scenario `{scenario}`: {error:#}"),
        };
        let found = result.pointer(pointer).and_then(Value::as_f64);
        found.with_context(|| format!("the result of `{scenario}` has no number at `{pointer}`"))
    }
}

impl Question {
    fn new(scenario: &str, set: &[String], pointer: &str) -> Self {
        let part = match pointer {
            _ if pointer.starts_with("/explain/") => Part::Reasons,
            _ if pointer.ends_with("/limits_below_speed") => Part::Limits,
            _ => Part::Result,
        };
        Self { scenario: scenario.to_owned(), set: set.to_vec(), part }
    }

    /// All that a claim asks.
    fn all(claim: &Claim) -> Vec<Self> {
        let own = [Some(&claim.value), claim.minus.as_ref()].into_iter().flatten();
        let mut questions: Vec<Self> =
            own.map(|pointer| Self::new(&claim.scenario, &claim.set, pointer)).collect();
        if let Some(against) = &claim.against {
            let pointer = against.value.as_ref().unwrap_or(&claim.value);
            questions.push(Self::new(&against.scenario, &against.set, pointer));
        }
        questions
    }

    fn answer(&self, directory: &Path) -> Result<Value> {
        let typed = args::Scenario { path: directory.join(&self.scenario), set: self.set.clone() };
        let limits = match self.part {
            Part::Reasons => return explain::result(typed),
            Part::Limits => Limits::Find,
            Part::Result => Limits::Leave,
        };
        run::result_with_events(&load::scenario(&typed, &[])?, limits)
    }
}

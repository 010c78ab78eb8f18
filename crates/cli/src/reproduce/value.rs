//! The value that a claim is about, read off the result of its scenario.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::Claim;
use crate::commands::run;
use crate::{args, load};

/// The results of scenarios, each simulated once however many claims point at it.
pub(crate) struct Results {
    directory: PathBuf,
    known: BTreeMap<(String, Vec<String>), Value>,
}

impl Results {
    /// No results yet; scenarios are looked up in `directory`.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), known: BTreeMap::new() }
    }

    /// The value of a claim.
    ///
    /// # Errors
    /// A scenario that cannot be run, or that has no such value.
    pub(crate) fn value(&mut self, claim: &Claim) -> Result<f64> {
        let value = self.number(&claim.scenario, &claim.set, &claim.value)?;
        let value = match &claim.minus {
            None => value,
            Some(minus) => value - self.number(&claim.scenario, &claim.set, minus)?,
        };
        match &claim.against {
            None => Ok(value),
            Some(against) => {
                let pointer = against.value.as_ref().unwrap_or(&claim.value);
                let base = self.number(&against.scenario, &against.set, pointer)?;
                Ok((value / base - 1.0) * 100.0)
            }
        }
    }

    fn number(&mut self, scenario: &str, set: &[String], pointer: &str) -> Result<f64> {
        let key = (scenario.to_owned(), set.to_vec());
        if !self.known.contains_key(&key) {
            let result = self.simulate(scenario, set).with_context(|| format!("scenario `{scenario}`"))?;
            self.known.insert(key.clone(), result);
        }
        let found = self.known[&key].pointer(pointer).and_then(Value::as_f64);
        found.with_context(|| format!("the result of `{scenario}` has no number at `{pointer}`"))
    }

    fn simulate(&self, scenario: &str, set: &[String]) -> Result<Value> {
        let typed = args::Scenario { path: self.directory.join(scenario), set: set.to_vec() };
        run::result_with_events(&load::scenario(&typed, &[])?)
    }
}

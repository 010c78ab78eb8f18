//! What a search over keys found, for programs.

use pipestep_job::ReferenceUnit;
use serde_json::{Map, Value, json};

use super::find::{FoundKeys, Tried};
use super::measure::Measured;
use super::space::{name, sets};
use super::words::{About, standard_error};

/// One document: the best settings, everything that was tried, and closed forms beside them.
pub(crate) fn json(about: &About, found: &FoundKeys) -> String {
    let first = found.order.first().and_then(|&best| found.measured(best));
    let best: Vec<Value> = super::words::listed(about, found)
        .into_iter()
        .map(|index| one(found, &found.tried[index], first))
        .collect();
    let (illegal, simulated): (Vec<&Tried>, Vec<&Tried>) =
        found.tried.iter().partition(|tried| tried.outcome.is_err());
    let simulated: Vec<Value> = simulated.into_iter().map(|tried| one(found, tried, first)).collect();
    let illegal: Vec<Value> = illegal
        .into_iter()
        .map(|tried| json!({ "set": sets(&tried.setting), "reason": tried.outcome.as_ref().err() }))
        .collect();
    let grid = found.tried.iter().filter(|tried| !tried.is_between).count();
    let mut document = json!({
        "schema": "pipestep-search-1",
        "name": about.scenario,
        "objective": found.subject.objective.word(),
        "runs": found.subject.runs,
        "settings": grid,
        "between": found.tried.len() - grid,
        "best": best,
        "along": along(about, found),
        "simulated": simulated,
        "illegal": illegal,
    });
    if let Some(written) = &found.written {
        document["written"] = numbers(found, written, first).into();
    }
    if let Some((stage, gain)) = &about.bottlenecks[0] {
        document["bottleneck"] = json!({ "stage": stage, "gain": gain });
    }
    format!("{document:#}\n")
}

fn one(found: &FoundKeys, tried: &Tried, first: Option<&Measured>) -> Value {
    let mut value = Map::new();
    value.insert("name".to_owned(), name(&tried.setting).into());
    value.insert("set".to_owned(), sets(&tried.setting).into());
    value.insert("between".to_owned(), tried.is_between.into());
    if let Ok(measured) = &tried.outcome {
        value.extend(numbers(found, measured, first));
    }
    value.into()
}

/// What the runs of a setting came to, and how far it is behind the first.
fn numbers(found: &FoundKeys, measured: &Measured, first: Option<&Measured>) -> Map<String, Value> {
    let behind = first.and_then(|first| found.behind(measured, first));
    let parts: Map<String, Value> =
        measured.parts.iter().map(|(name, nanos)| (name.replace(' ', "_"), json!(nanos))).collect();
    let mut value = Map::new();
    value.insert("mean".to_owned(), json!(measured.mean()));
    value.insert("standard_error".to_owned(), json!(standard_error(measured)));
    if let Some(behind) = behind {
        value.insert("behind".to_owned(), json!(behind.mean));
        value.insert("behind_standard_error".to_owned(), json!(behind.standard_error));
        value.insert("told_apart".to_owned(), json!(behind.is_sure(found.order.len())));
    }
    value.insert("parts_ns".to_owned(), parts.into());
    value
}

/// Along each continuous key: the best value, what cannot be told apart from it, the curve, closed forms.
fn along(about: &About, found: &FoundKeys) -> Vec<Value> {
    let Some(&best) = found.order.first() else { return Vec::new() };
    let dimensions = about.space.dimensions.iter().enumerate().filter(|(_, one)| one.is_continuous());
    let told = dimensions.map(|(place, dimension)| {
        let references = about.references.iter().filter(|one| one.unit == ReferenceUnit::Interval);
        let references: Map<String, Value> = references
            .filter(|_| dimension.name == "checkpoint.every")
            .map(|one| (format!("{}_s", one.name), json!(one.value)))
            .collect();
        json!({
            "key": dimension.name,
            "best": found.tried[best].setting[place].number,
            "not_told_apart": found.span(best, place).map(|(low, high)| [low, high]),
            "curve": found.curve(best, place, &dimension.name).map(|curve| curve.lowest),
            "checks": references,
        })
    });
    told.collect()
}

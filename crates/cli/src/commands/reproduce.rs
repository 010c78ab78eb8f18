//! `pipestep reproduce`: every number that the documentation claims, recomputed by simulation.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use pipestep_engine::{Bytes, Duration};
use pipestep_report::folded;
use serde_json::{Value, json};

use crate::output::{self, Target};
use crate::reproduce::{Claim, Expected, Results, Unit, read};
use crate::{Ending, args, load};

/// A claim with what the simulation says to it.
struct Checked {
    claim: Claim,
    value: f64,
    holds: bool,
}

/// Recomputes all claims; a miss is exit code 1.
pub(crate) fn run(typed: &args::Reproduce) -> Result<Ending> {
    let target = typed.json.as_deref().map(Target::from_argument);
    output::check(target.iter())?;
    let claims = read(&load::text(&typed.claims)?, &typed.claims)?;
    let results = Results::of(&claims, typed.claims.parent().unwrap_or(Path::new(".")));
    let mut checked = Vec::with_capacity(claims.len());
    for claim in claims {
        let value = results.value(&claim)?;
        let holds = claim.expected.holds(value);
        checked.push(Checked { claim, value, holds });
    }
    if let Some(target) = target {
        let text = serde_json::to_string_pretty(&to_json(&checked))? + "\n";
        output::write_all(&[((), target)], |(), to| Ok(to.write_all(text.as_bytes())?))?;
    }
    if typed.json.as_deref() != Some(Path::new("-")) {
        output::print(&to_text(&checked))?;
    }
    Ok(if checked.iter().all(|one| one.holds) { Ending::Done } else { Ending::DoesNotMatch })
}

/// One claim a line or two, at most 100 columns wide.
fn to_text(checked: &[Checked]) -> String {
    let mut text = String::new();
    let mut place = "";
    for Checked { claim, value, holds } in checked {
        if claim.place != place {
            place = &claim.place;
            let _ = writeln!(text, "{}{place}", if text.is_empty() { "" } else { "\n" });
        }
        let verdict = if *holds { "ok  " } else { "MISS" };
        let value = shown(*value, claim.unit);
        let mut says = folded(&claim.says, 56).into_iter();
        let first = says.next().unwrap_or_default();
        let row = format!("  {verdict}  {first:56}  {value:>16}  {}", expected(claim, *holds));
        let _ = writeln!(text, "{}", row.trim_end());
        for line in says {
            let _ = writeln!(text, "          {line}");
        }
    }
    let missed = checked.iter().filter(|one| !one.holds).count();
    let _ = writeln!(text, "\n{} claims, {missed} missed", checked.len());
    text
}

/// What was expected, where the value alone does not say it.
fn expected(claim: &Claim, holds: bool) -> String {
    match claim.expected {
        Expected::Is(_, within) if holds && within == 0.0 => String::new(),
        Expected::Is(value, _) => format!("({})", shown(value, claim.unit)),
        Expected::AtLeast(least) => format!("(>= {})", shown(least, claim.unit)),
        Expected::AtMost(most) => format!("(<= {})", shown(most, claim.unit)),
    }
}

fn shown(value: f64, unit: Unit) -> String {
    let whole = value.abs().round() as u64;
    let sign = if value < 0.0 { "-" } else { "" };
    match unit {
        Unit::None if value.fract() == 0.0 => format!("{value}"),
        Unit::None => format!("{value:.4}"),
        Unit::Nanoseconds => format!("{sign}{}", Duration::from_nanos(whole)),
        Unit::Bytes if whole < 1_000_000_000 => format!("{sign}{}", Bytes::new(whole)),
        Unit::Bytes => format!("{sign}{whole} B"),
        Unit::Share => format!("{:.2} %", value * 100.0),
        Unit::Percent => format!("{value:+.2} %"),
        Unit::Times => format!("{value:.3} x"),
    }
}

fn to_json(checked: &[Checked]) -> Value {
    let claims = checked.iter().map(|Checked { claim, value, holds }| {
        let (expected, relation, within) = match claim.expected {
            Expected::Is(expected, within) => (expected, "is", within),
            Expected::AtLeast(least) => (least, "at_least", 0.0),
            Expected::AtMost(most) => (most, "at_most", 0.0),
        };
        json!({
            "claim": claim.says, "in": claim.place, "scenario": claim.scenario, "set": claim.set,
            "value": value, "relation": relation, "expected": expected, "within": within,
            "difference": value - expected, "holds": holds,
        })
    });
    json!({ "schema": "pipestep-reproduce-1", "claims": claims.collect::<Vec<_>>() })
}

//! What `run` prints about rounds of RL: where a round goes, which stage limits, staleness, the long tail, cost.
//!
//! Every number is read off simulated rounds; the bottleneck is found by simulating each stage at double speed.

use std::fmt::Write as _;

use pipestep_engine::Bytes;
use pipestep_rl::{Counts, Fraction, InFlight, Keep, KvCache, MemoryOutcome, Mode, Placement, SwitchPlan};

use super::result::move_text;
use super::text_tables::{jobs_table, signed_percent, split_table, stage_table, staleness_table};
use super::{RlView, mean_and_oldest};
use crate::table::{heading, lines};
use crate::units::{bytes_short, counted, grouped, percent, trimmed};
use crate::wrap::{COLUMNS, wrapped};

/// What `run` prints about rounds of RL, at most 100 columns wide.
pub fn rl_text(view: &RlView) -> String {
    let outcome = &view.sensitivity.base;
    let mut text = heading(&[view.name, "\nrl: ", &shape_line(view)]);
    text += &lines(&split_table(view));
    text.push('\n');
    text += &lines(&stage_table(view));
    if !outcome.jobs.is_empty() {
        text.push('\n');
        text += &lines(&jobs_table(view));
    }
    if outcome.staleness.iter().skip(1).any(|&count| count > 0) {
        text.push('\n');
        text += &lines(&staleness_table(&outcome.staleness));
    }
    text.push('\n');
    for (name, value) in summary_lines(view) {
        text += &wrapped(name, &value);
    }
    text
}

fn shape_line(view: &RlView) -> String {
    let inputs = view.inputs;
    let responses = inputs.group.responses;
    let groups = match responses {
        1 => String::new(),
        _ => format!(" ({} of {responses})", counted((inputs.batch / responses).into(), "prompt")),
    };
    let parts = [
        mode_text(inputs.mode),
        format!(
            "{} of {}",
            counted(inputs.rollout.engines.into(), "engine"),
            counted(inputs.rollout.slots.into(), "slot")
        ),
        format!("batches of {}{groups}", grouped(u64::from(inputs.batch))),
        format!("{} after {}", counted(inputs.rounds.into(), "update"), inputs.warmup),
    ];
    let mut line = String::new();
    let mut width = "rl: ".len();
    for part in parts {
        let gap = match width {
            _ if line.is_empty() => "",
            _ if width + part.len() + 3 > COLUMNS => ",\n    ",
            _ => ", ",
        };
        width = if gap.contains('\n') { 4 } else { width + gap.len() } + part.len();
        line += gap;
        line += &part;
    }
    line
}

/// The mode with its rules.
fn mode_text(mode: Mode) -> String {
    let cache = |kv: KvCache| match kv {
        KvCache::Kept => "KV kept",
        KvCache::Recomputed => "KV recomputed",
    };
    match mode {
        Mode::Async(rule) => {
            let flight = match rule.in_flight {
                InFlight::Drain => "drain",
                InFlight::Continue(kv) => cache(kv),
                InFlight::Abort => "abort",
            };
            format!("async (staleness {}, {flight})", rule.staleness)
        }
        Mode::Partial(kv) => format!("partial ({})", cache(kv)),
        other => other.name().to_owned(),
    }
}

fn summary_lines(view: &RlView) -> Vec<(&'static str, String)> {
    let outcome = &view.sensitivity.base;
    let mut found = vec![
        (
            view.round_word(),
            format!(
                "{} on average; {} useful samples and {} useful tokens a second",
                outcome.round,
                rate(outcome.useful_samples_per_s),
                rate(outcome.useful_tokens_per_s)
            ),
        ),
        ("bottleneck", bottleneck(view)),
        ("samples", samples(view, &outcome.counts)),
        ("tail", tail(view)),
    ];
    let (mean, oldest) = mean_and_oldest(&outcome.staleness);
    found.push(("staleness", format!("{} updates on average, {oldest} at most", trimmed(mean, 2))));
    found.extend(view.sync_bytes().map(|bytes| ("weight sync", sync(view, bytes))));
    if outcome.counts.record_bytes > 0 {
        found.push(("records", records(view, outcome.counts.record_bytes)));
    }
    if let Some(memory) = &outcome.memory {
        found.push(("memory", memory_line(memory)));
        found.push(("to rollout", switch_line(view, &memory.to_rollout)));
        found.push(("to training", switch_line(view, &memory.to_training)));
    }
    found.extend(outcome.cost.map(|cost| {
        let text = format!(
            "{} {}, {} for a thousand samples trained on",
            trimmed(cost.per_round, 2),
            view.one_round(),
            trimmed(cost.per_thousand_samples, 2)
        );
        ("cost", text)
    }));
    found
}

/// A rate with three digits that count.
fn rate(value: f64) -> String {
    if value >= 1_000.0 { grouped(value.round() as u64) } else { trimmed(value, 3) }
}

/// The stage that limits, and when that would change.
fn bottleneck(view: &RlView) -> String {
    let Some(name) = &view.sensitivity.bottleneck else {
        return "none: no stage at double speed gives more".to_owned();
    };
    let gain = view.sensitivity.gains.iter().find(|gain| gain.name == *name);
    let mut text = format!(
        "{}: twice as fast it would give {}",
        name.replace('_', " "),
        signed_percent(gain.map_or(0.0, |gain| gain.gain))
    );
    let others = view.stages().filter_map(|(stage, _, below)| Some((&stage.name, below?)));
    let others: Vec<String> = others
        .map(|(name, speed): (&String, Fraction)| {
            format!("{} below {} of its speed", name.replace('_', " "), percent(speed.as_f64()))
        })
        .collect();
    if !others.is_empty() {
        let _ = write!(text, "; instead of it would limit {}", others.join(", "));
        if let Some(rounds) = view.limits_rounds {
            let _ = write!(text, " (looked for in {rounds} {}s)", view.round_word());
        }
    }
    text
}

fn samples(view: &RlView, counts: &Counts) -> String {
    let mut parts = vec![format!("{} trained on", grouped(counts.trained))];
    if counts.launched != counts.trained {
        parts.push(format!("{} launched", grouped(counts.launched)));
    }
    for (count, what) in [
        (counts.filtered, "scored and not kept"),
        (counts.aborted, "aborted"),
        (counts.surplus, "beyond a full batch"),
        (counts.stale, "too old"),
        (counts.interrupted, "interrupted"),
        (counts.lost, "lost in restarts"),
        (counts.regenerated, "generated anew"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    }
    if counts.engine_failures > 0 {
        parts.push(counted(counts.engine_failures, "engine failure"));
    }
    if counts.truncated_tokens > 0 {
        let tokens = u64::try_from(counts.truncated_tokens).unwrap_or(u64::MAX);
        parts.push(format!("{} tokens cut to the shortest of their group", grouped(tokens)));
    }
    if counts.wasted_share() > 0.0 {
        parts.push(format!("{} of all tokens for nothing", percent(counts.wasted_share())));
    }
    match view.inputs.keep {
        Keep::All => {}
        Keep::Evenly(share) | Keep::Randomly(share) => parts.push(format!("{share} of the scored are kept")),
    }
    parts.join(", ")
}

fn tail(view: &RlView) -> String {
    let tail = &view.sensitivity.base.tail;
    let mut text = if tail.ratio < 1.0005 {
        let (one, mean) = (view.one_round(), rate(tail.mean_tokens));
        format!("none: the longest response of {one} has no more tokens than the mean, {mean}")
    } else {
        format!(
            "the longest response has {} tokens, {} times the mean of {}",
            rate(tail.longest_tokens),
            trimmed(tail.ratio, 2),
            rate(tail.mean_tokens)
        )
    };
    if tail.waiting_share > 0.0005 {
        let _ = write!(
            text,
            "; were every slot held until then, {} of the slot time would be waiting",
            percent(tail.waiting_share)
        );
    }
    let bias = tail.mean_tokens / tail.launched_mean_tokens - 1.0;
    if tail.launched_mean_tokens > 0.0 && bias.abs() > 0.005 {
        let _ = write!(
            text,
            "; those launched were to have {} on average: training sees {} of that length",
            rate(tail.launched_mean_tokens),
            signed_percent(bias)
        );
    }
    text
}

fn sync(view: &RlView, bytes: Bytes) -> String {
    let engines = u64::from(view.inputs.rollout.engines);
    format!("{} to {}", bytes_short(bytes), counted(engines, "engine"))
}

fn records(view: &RlView, bytes: u128) -> String {
    let updates = view.sensitivity.base.rounds.len().max(1) as u128;
    let each = Bytes::new(u64::try_from(bytes / updates).unwrap_or(u64::MAX));
    format!("{} of routing to the trainer an update", bytes_short(each))
}

/// Binary units: capacities of devices are given in them.
fn gib(bytes: Bytes) -> String {
    format!("{} GiB", trimmed(bytes.get() as f64 / (1_u64 << 30) as f64, 2))
}

fn memory_line(memory: &MemoryOutcome) -> String {
    let verdict = if memory.fits { "fits" } else { "DOES NOT FIT" };
    format!(
        "{verdict}: peak {} of {}; {} held while training, {} during rollout",
        gib(memory.peak),
        gib(memory.capacity),
        gib(memory.training),
        gib(memory.rollout)
    )
}

fn switch_line(view: &RlView, plan: &SwitchPlan) -> String {
    let moves: Vec<String> = plan
        .moves
        .iter()
        .map(|(step, after)| format!("{} ({})", move_text(view, *step), gib(*after)))
        .collect();
    let found = match &view.inputs.placement {
        Placement::Colocated(switching) => {
            switching.memory.as_ref().map_or("", |memory| match memory.order {
                pipestep_rl::SwitchOrder::LowestPeak => "; no order has a lower peak",
                pipestep_rl::SwitchOrder::Given { .. } => "; the order given",
            })
        }
        Placement::Separate => "",
    };
    let steps = if moves.is_empty() { "nothing to move".to_owned() } else { moves.join(", ") };
    format!("{steps}: peak {}, {}{found}", gib(plan.peak), plan.time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rl::testing::RlSample;

    fn text(sample: &RlSample) -> String {
        let text = rl_text(&sample.view());
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
            assert_eq!(line, line.trim_end());
        }
        text
    }

    #[test]
    fn the_textbooks_rounds_take_60_and_44_seconds_and_rollout_limits() {
        let sync = text(&RlSample::small());
        for needle in ["round              60 s on average", "rollout: twice as fast it would give +50.0 %"] {
            assert!(sync.contains(needle), "{needle}: {sync}");
        }
        let off = text(&RlSample::one_step_off());
        for needle in
            ["round              44 s on average", "1 updates on average, 1 at most", "100.0 %  ███"]
        {
            assert!(off.contains(needle), "{needle}: {off}");
        }
    }

    #[test]
    fn rounds_that_break_say_what_was_lost() {
        let broken = text(&RlSample::broken()).split_whitespace().collect::<Vec<_>>().join(" ");
        for needle in ["where an update goes", "1 engine failure", "generated anew", "for nothing"] {
            assert!(broken.contains(needle), "{needle}: {broken}");
        }
        text(&RlSample::large());
    }

    #[test]
    fn the_speed_at_which_another_stage_limits_is_told() {
        let mut sample = RlSample::small();
        sample.limits_below = vec![None, Fraction::new(1, 4), None];
        let text = text(&sample).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("instead of it would limit update below 25.0 % of its speed"), "{text}");
    }
}

//! `[search]` as it is written: what `pipestep search` may try.

use pipestep_model::Recompute;
use schemars::{Schema, SchemaGenerator, json_schema};

use super::ScheduleName;
use crate::diagnostic::Diagnostic;
use crate::read::{Count, FromItem, Place, Positive, Problems, Word, Words, join};
use crate::search::Objective;
use crate::sweep::{WrittenVary, is_space, unknown_key};
use crate::table::{known_keys, open, table};
use crate::tree::{Entry, Item, Node, Table};
use crate::units::Factor;

table! {
    /// What `pipestep search` may try. Without `vary` and `split` it tries schedules and what goes with them for one
    /// step; what is left out stays as the scenario says, but for schedules and chunks.
    Search requires [] {
        /// The schedules to try; all if left out.
        schedules: Vec<ScheduleName> = r#"["1f1b", "interleaved", "zb-h1"]"#,
        /// The most chunks that a rank may hold; 4 if left out.
        most_chunks: Positive = "8",
        /// The sizes of micro-batches to try, in sequences, at the same number of sequences a step; if left out,
        /// every size that divides it where `[efficiency]` says what it costs.
        micro_batch_sizes: Vec<Positive> = "[1, 2, 4, 8]",
        /// The numbers of ranks to try; needs lengths by layer.
        ranks: Vec<Positive> = "[4, 8]",
        /// What may be recomputed.
        recompute: Vec<Word<Recompute>> = r#"["none", "silu"]"#,
        /// Instead of all that: values to try of any keys, by dotted key, as in `[sweep]`. Between the values of a
        /// range with a unit the search looks further.
        vary: WrittenVary = "",
        /// With `vary` or alone: devices to share out in every way.
        split: Split = "",
        /// What the best is best in, where keys are varied: the makespan of a step (step-time), the wall time of a job
        /// (job-time) or its useful share (useful-fraction), of rounds of RL the useful samples or tokens a second
        /// (samples-per-second, tokens-per-second) or the cost of a sample (cost-per-sample); samples a second if the
        /// file has an `[rl]`, else the wall time of its `[job]`, else the makespan, if left out.
        objective: Word<Objective> = r#""useful-fraction""#,
        /// How often each setting is run, with the same seeds for all; if left out as often as `[faults]` or `[jitter]`
        /// say, and rounds of RL that draw anything 8 times.
        runs: Count = "200",
    }
}

table! {
    /// A number of devices that some parts share: every way is tried.
    Split requires [devices, parts] {
        /// How many there are in all.
        devices: Count = "16",
        /// Each part gets a multiple of this; 1 if left out.
        by: Count = "2",
        /// Who shares them: two or more, each of which gets some.
        parts: Vec<Part> = r#"[{ name = "rollout", each = { "rl.rollout.engines" = 1 } }]"#,
    }
}

table! {
    /// One of those who share devices.
    Part requires [name, each] {
        /// Its name in reports.
        name: String = r#""rollout""#,
        /// What one device brings of each key: with half an engine a device, 8 devices are 4 engines.
        each: PerDevice = r#"{ "rl.rollout.engines" = 0.5 }"#,
    }
}

impl Words for Objective {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("step-time", Self::StepTime),
        ("job-time", Self::JobTime),
        ("useful-fraction", Self::UsefulFraction),
        ("samples-per-second", Self::SamplesPerSecond),
        ("tokens-per-second", Self::TokensPerSecond),
        ("cost-per-sample", Self::CostPerSample),
    ];
}

/// Keys with what one device brings of each; at least one.
pub(crate) struct PerDevice(pub Vec<(String, Factor)>);

impl FromItem for PerDevice {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let table = open(item, place, problems)?;
        let mut keys = Vec::new();
        read_factors(table, "", &mut keys, problems);
        if table.entries.is_empty() {
            let problem = Diagnostic::new(item.span, format!("`{}`: expected at least one key", place.path));
            problems.push(problem.help("write `each = { \"rl.rollout.engines\" = 1 }`"));
            return None;
        }
        Some(Self(keys))
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let factor = Factor::schema(generator);
        let keys: Vec<String> = known_keys().into_iter().filter(|key| !is_space(key)).collect();
        json_schema!({
            "type": "object",
            "minProperties": 1,
            "propertyNames": { "enum": keys },
            "additionalProperties": factor
        })
    }
}

/// Reads the keys of a table, and of the tables in it.
fn read_factors(table: &Table, path: &str, keys: &mut Vec<(String, Factor)>, problems: &mut Problems) {
    for Entry { key, key_span, item } in &table.entries {
        let key = join(path, key);
        if let Node::Table(inner) = &item.node {
            read_factors(inner, &key, keys, problems);
        } else if let Some(problem) = unknown_key(&key, *key_span, "[search.split]") {
            problems.push(problem);
        } else {
            let place = Place { path: &key, example: "1" };
            keys.extend(Factor::from_item(item, &place, problems).map(|factor| (key.clone(), factor)));
        }
    }
}

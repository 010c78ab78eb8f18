//! What a search may try, as it is meant.

use pipestep_schedule::Schedule;

use crate::diagnostic::{Diagnostic, Diagnostics, Source, Span};
use crate::format;
use crate::overrides::{Override, apply};
use crate::read::{FromItem, Place, Problems, Words};
use crate::sweep::Sweep;
use crate::tree::parse_document;
use crate::units::Factor;

/// What `pipestep search` may try; nothing where the file does not say.
#[derive(Clone, Default)]
pub struct SearchSpace {
    /// The schedules.
    pub schedules: Option<Vec<&'static dyn Schedule>>,
    /// The most chunks of a rank.
    pub most_chunks: Option<u64>,
    /// Sequences in a micro-batch.
    pub micro_batch_sizes: Option<Vec<u64>>,
    /// Numbers of ranks.
    pub ranks: Option<Vec<u64>>,
    /// Values of `model.recompute`.
    pub recompute: Option<Vec<&'static str>>,
    /// Values of any keys, instead of all those; no axes if nothing.
    pub vary: Sweep,
    /// Devices to share out.
    pub split: Option<Split>,
    /// What the best is best in, where keys are varied.
    pub objective: Option<Objective>,
    /// How often each setting is run, where keys are varied.
    pub runs: Option<u32>,
}

/// What a search over keys makes as short, as high or as cheap as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The makespan of a step; its mean, where lengths are drawn.
    StepTime,
    /// The wall time of a job.
    JobTime,
    /// Useful time of a job over its wall time.
    UsefulFraction,
    /// Samples that rounds of RL train on, each second.
    SamplesPerSecond,
    /// Tokens of the responses that rounds of RL train on, each second; those of a step, where there are no rounds.
    TokensPerSecond,
    /// What a thousand samples of rounds of RL cost.
    CostPerSample,
}

impl Objective {
    /// As a scenario writes it.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, objective)| *objective == self).map_or("", |(word, _)| word)
    }
}

/// Devices that some parts share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// How many there are.
    pub devices: u32,
    /// Each part gets a multiple of this.
    pub by: u32,
    /// Who shares them, at least two.
    pub parts: Vec<SplitPart>,
}

/// One of those who share devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPart {
    /// Its name.
    pub name: String,
    /// Dotted keys with what one device brings of each.
    pub each: Vec<(String, Factor)>,
}

impl std::fmt::Debug for SearchSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |list: &Vec<&'static dyn Schedule>| {
            list.iter().map(|schedule| schedule.entry().name).collect::<Vec<_>>()
        };
        f.debug_struct("SearchSpace")
            .field("schedules", &self.schedules.as_ref().map(names))
            .field("most_chunks", &self.most_chunks)
            .field("micro_batch_sizes", &self.micro_batch_sizes)
            .field("ranks", &self.ranks)
            .field("recompute", &self.recompute)
            .field("vary", &self.vary)
            .field("split", &self.split)
            .field("objective", &self.objective)
            .field("runs", &self.runs)
            .finish()
    }
}

impl SearchSpace {
    /// Reads only the `[search]` of a text, after its overrides: a scenario may be right at the settings of its search
    /// and nowhere else. [`crate::parse`] has the meaning of the parameters.
    ///
    /// # Errors
    /// Text that is no TOML; what is wrong with the overrides and the `[search]`.
    pub fn read(text: &str, file_name: &str, overrides: &[Override]) -> Result<Self, Diagnostics> {
        let mut sources = vec![Source { name: file_name.to_owned(), text: text.into() }];
        sources.extend(overrides.iter().map(Override::source));
        let mut problems = Problems::new();
        let mut space = None;
        match parse_document(text) {
            Err(errors) => problems.extend(errors),
            Ok(mut table) => {
                apply(&mut table, overrides, &mut problems);
                let place = Place { path: "search", example: "" };
                let written = table
                    .get("search")
                    .and_then(|entry| format::search::Search::from_item(&entry.item, &place, &mut problems));
                space = written.and_then(|written| Self::new(&written, &mut problems));
            }
        }
        if problems.is_empty() {
            Ok(space.unwrap_or_default())
        } else {
            Err(Diagnostics::new(sources.into(), problems))
        }
    }

    /// What a table says; `None` after reporting what contradicts itself. Keys that could not be read have been
    /// reported.
    pub(crate) fn new(written: &format::search::Search, problems: &mut Problems) -> Option<Self> {
        let numbers = |list: &Vec<crate::read::Positive>| list.iter().map(|number| number.0).collect();
        let word = |word: &crate::read::Word<pipestep_model::Recompute>| {
            let words = pipestep_model::Recompute::WORDS.iter();
            words.into_iter().find(|(_, value)| *value == word.0).map(|(name, _)| *name)
        };
        let lists = [
            ("schedules", written.schedules.get().map(Vec::len), written.schedules.span()),
            (
                "micro_batch_sizes",
                written.micro_batch_sizes.get().map(Vec::len),
                written.micro_batch_sizes.span(),
            ),
            ("ranks", written.ranks.get().map(Vec::len), written.ranks.span()),
            ("recompute", written.recompute.get().map(Vec::len), written.recompute.span()),
        ];
        for (key, count, span) in lists {
            if let (Some(0), Some(span)) = (count, span) {
                let message = format!("`search.{key}`: expected at least one value, found an empty list");
                problems.push(Diagnostic::new(span, message).help("without this key nothing is ruled out"));
            }
        }
        let split = match written.split.get() {
            Some(split) => Some(Split::new(split, written.split.span()?, problems)?),
            None => None,
        };
        Some(Self {
            schedules: written.schedules.get().map(|list| list.iter().map(|name| name.0).collect()),
            most_chunks: written.most_chunks.get().map(|number| number.0),
            micro_batch_sizes: written.micro_batch_sizes.get().map(numbers),
            ranks: written.ranks.get().map(numbers),
            recompute: written.recompute.get().map(|list| list.iter().filter_map(word).collect()),
            vary: written.vary.get().map(|vary| vary.0.clone()).unwrap_or_default(),
            split,
            objective: written.objective.get().map(|word| word.0),
            runs: written.runs.get().map(|count| count.0),
        })
    }
}

impl Split {
    /// What a table says; `None` after reporting what is wrong with it.
    fn new(written: &format::search::Split, span: Span, problems: &mut Problems) -> Option<Self> {
        let devices = written.devices.get()?.0;
        let by = written.by.get().map_or(1, |count| count.0);
        let part = |part: &format::search::Part| {
            let each = part.each.get()?.0.clone();
            Some(SplitPart { name: part.name.get()?.clone(), each })
        };
        let parts: Vec<SplitPart> = written.parts.get()?.iter().map(part).collect::<Option<_>>()?;
        let mut refuse = |message: String, help: &str| {
            problems.push(Diagnostic::new(span, message).help(help));
            None
        };
        if parts.len() < 2 {
            let message = format!("`search.split.parts`: expected two parts or more, found {}", parts.len());
            return refuse(message, "write one for rollout and one for training");
        }
        let mut keys: Vec<&String> = parts.iter().flat_map(|part| &part.each).map(|(key, _)| key).collect();
        keys.sort_unstable();
        let twice = keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        if let Some(key) = twice {
            let message = format!("`search.split.parts`: `{key}` belongs to two parts");
            return refuse(message, "give it to one of them");
        }
        if devices % by != 0 || u64::from(devices) < parts.len() as u64 * u64::from(by) {
            let count = parts.len();
            let message = format!(
                "`search.split`: {devices} devices cannot be shared by {count} parts in multiples of {by}"
            );
            return refuse(message, "take another number of devices, or a `by` that divides it");
        }
        Some(Self { devices, by, parts })
    }
}

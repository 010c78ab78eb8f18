//! What a search may try, as it is meant.

use pipestep_schedule::Schedule;

use crate::format;
use crate::read::Words;

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
            .finish()
    }
}

impl SearchSpace {
    /// What a table says. Keys that could not be read have been reported.
    pub(crate) fn new(written: &format::search::Search) -> Self {
        let numbers = |list: &Vec<crate::read::Positive>| list.iter().map(|number| number.0).collect();
        let word = |word: &crate::read::Word<pipestep_model::Recompute>| {
            let words = pipestep_model::Recompute::WORDS.iter();
            words.into_iter().find(|(_, value)| *value == word.0).map(|(name, _)| *name)
        };
        Self {
            schedules: written.schedules.get().map(|list| list.iter().map(|name| name.0).collect()),
            most_chunks: written.most_chunks.get().map(|number| number.0),
            micro_batch_sizes: written.micro_batch_sizes.get().map(numbers),
            ranks: written.ranks.get().map(numbers),
            recompute: written.recompute.get().map(|list| list.iter().filter_map(word).collect()),
        }
    }
}

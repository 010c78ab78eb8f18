//! `[search]` as it is written: what `pipestep search` may try.

use pipestep_model::Recompute;

use super::ScheduleName;
use crate::read::{Positive, Word};
use crate::table::table;

table! {
    /// What `pipestep search` may try. What is left out stays as the scenario says, but for schedules and chunks.
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
    }
}

//! `[jitter]` and `[efficiency]` as they are written: how lengths scatter, and how they depend on the size of a
//! micro-batch.

use crate::chance::{Chance, Drawn, Family};
use crate::read::{AboveZero, Count, OneOrList, Positive};
use crate::table::table;
use crate::units::Factor;

/// Factors that a step can draw.
pub(crate) struct StepFactor;

impl Drawn for StepFactor {
    type Amount = Factor;
    const FAMILIES: &'static [Family] =
        &[Family::Normal, Family::Lognormal, Family::Uniform, Family::Exponential, Family::Empirical];
    const EXAMPLE: &'static str = "1.25";
    const MEAN: Option<Factor> = Some(Factor::ONE);
    const EXPECTED: &'static str = "a factor such as `1.25`";
    const CAPPED: bool = false;

    fn parse(text: &str) -> Option<Factor> {
        Factor::parse(text).ok()
    }
}

table! {
    /// How the lengths of a step scatter. Each operation and message is its usual length times a factor: a number,
    /// or a distribution, by default with mean 1; a normal one is cut off at 0. One value or one a rank (a
    /// boundary, for messages).
    Jitter requires [] {
        /// Of a forward; none if left out.
        forward: OneOrList<Chance<StepFactor>> = r#"{ distribution = "normal", deviation = 0.05 }"#,
        /// Of a full backward; none if left out.
        backward: OneOrList<Chance<StepFactor>> = r#"{ distribution = "normal", deviation = 0.05 }"#,
        /// Of an input-gradient backward; that of a full one if left out.
        input_gradient: OneOrList<Chance<StepFactor>> = r#"{ distribution = "normal", deviation = 0.05 }"#,
        /// Of a weight-gradient backward; that of a full one if left out.
        weight_gradient: OneOrList<Chance<StepFactor>> = r#"{ distribution = "normal", deviation = 0.05 }"#,
        /// Of the update; none if left out.
        update: OneOrList<Chance<StepFactor>> = r#"{ distribution = "normal", deviation = 0.05 }"#,
        /// Of an activation message; one value, or one a boundary; none if left out.
        activation: OneOrList<Chance<StepFactor>> = r#"{ distribution = "lognormal", variation = 0.5 }"#,
        /// Of a gradient message; one value, or one a boundary; none if left out.
        gradient: OneOrList<Chance<StepFactor>> = r#"{ distribution = "lognormal", variation = 0.5 }"#,
        /// How many times as long a rank takes for everything, in every run: a slow rank; one value or one a
        /// rank; 1 if left out.
        rank_factor: OneOrList<AboveZero> = "[1, 1, 1.2, 1]",
        /// How many times as long messages take, in every run: a slow link; one value or one a boundary; 1 if
        /// left out.
        link_factor: OneOrList<AboveZero> = "[1, 3, 1]",
        /// How often the step is run; 100 if left out.
        runs: Count = "100",
        /// The seed of every random draw; 0 if left out.
        seed: u64 = "0",
    }
}

table! {
    /// How the time per token depends on the tokens of a micro-batch, so that `model.micro_batch_size` can be
    /// swept. Messages take time by their tokens.
    Efficiency requires [reference_tokens] {
        /// The tokens of a micro-batch for which `[time]` and `[transfer]` hold.
        reference_tokens: Positive = "1024",
        /// Measured points by rising tokens; between two of them a straight line, outside them the nearest.
        points: Vec<Point> = "[{ tokens = 128, time_per_token = 1.6 }, { tokens = 1024, time_per_token = 1 }]",
        /// Instead of points: a micro-batch takes as long as so many tokens more would at full efficiency.
        fixed_tokens: u64 = "256",
    }
}

table! {
    /// A measured time per token.
    Point requires [tokens, time_per_token] {
        /// Tokens of a micro-batch.
        tokens: Positive = "128",
        /// Time per token, in any unit: only the ratios between points count.
        time_per_token: AboveZero = "1.6",
    }
}

table! {
    /// Copies of the pipeline.
    Parallel requires [] {
        /// Data-parallel copies, each of which runs the step on its own micro-batches; 1 if left out.
        data: Count = "8",
    }
}

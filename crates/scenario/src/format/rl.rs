//! `[rl]` as it is written: the mode, the batch, rollout, scoring, update. What surrounds them is in
//! [`super::rl_around`].

use pipestep_engine::{Bytes, Duration, Rate};
use schemars::{Schema, SchemaGenerator, json_schema};

use super::rl_around::{Faults, Memory, Prices, Sharing, Sync};
use crate::chance::{Chance, Drawn, Family};
use crate::read::{AboveZero, Count, FromItem, OneOrList, Place, Positive, Problems, Word, Words, join};
use crate::table::table;
use crate::tree::{Item, Node};
use crate::units::{Factor, Share};

/// The families that rounds can draw from.
const FAMILIES: &[Family] = &[
    Family::Lognormal,
    Family::Pareto,
    Family::Exponential,
    Family::Uniform,
    Family::Empirical,
    Family::List,
];

/// Lengths in tokens.
pub(crate) struct Tokens;

impl Drawn for Tokens {
    type Amount = u64;
    const FAMILIES: &'static [Family] = FAMILIES;
    const EXAMPLE: &'static str = "2048";
    const EXPECTED: &'static str = "a whole number of tokens";
    const MEAN: Option<u64> = None;
    const CAPPED: bool = true;

    fn parse(text: &str) -> Option<u64> {
        text.parse().ok()
    }
}

/// Times to score a sample.
pub(crate) struct ScoreTime;

impl Drawn for ScoreTime {
    type Amount = Duration;
    const FAMILIES: &'static [Family] = FAMILIES;
    const EXAMPLE: &'static str = "\"0.5 s\"";
    const EXPECTED: &'static str = "a time";
    const MEAN: Option<Duration> = None;
    const CAPPED: bool = true;

    fn parse(text: &str) -> Option<Duration> {
        crate::units::parse_duration(text).ok()
    }
}

table! {
    /// Rounds of RL post-training: rollout, scoring, update, weight synchronisation.
    Rl requires [mode, batch, rollout, update, sync] {
        /// How the stages overlap: one after the other (sync), the next batch while this one is trained on
        /// (one-step-off), all the time within a bound on staleness (async), with running responses cut and
        /// continued in the next round (partial), or with scoring and training on what is finished (stream).
        mode: Word<ModeWord> = r#""sync""#,
        /// Samples that an update trains on.
        batch: Count = "512",
        /// Samples launched a round; those past `batch` are aborted or, with partial, continued; `batch` if
        /// left out.
        launch: Count = "640",
        /// How many responses each prompt has; one if left out.
        group: Group = "",
        /// Updates to measure; 20 if left out.
        rounds: Count = "20",
        /// Updates before the measurement; 1 if left out.
        warmup: u32 = "1",
        /// The seed of every random draw; 0 if left out.
        seed: u64 = "0",
        /// The engines that generate.
        rollout: Rollout = "",
        /// The pools that score, in the order in which a sample passes through them; none if left out.
        scoring: Vec<Pool> = r#"[{ name = "rules", workers = 64, time = "0.5 s" }]"#,
        /// When scoring starts: when the rollout of the round is over (whole-batch), or with each response
        /// that ends (as-finished); whole-batch in sync and one-step-off, as-finished elsewhere, if left out.
        scoring_start: Word<StartWord> = r#""as-finished""#,
        /// The update.
        update: Update = "",
        /// How the new weights reach the engines.
        sync: Sync = "",
        /// The share of scored samples that is worth training on; all if left out.
        keep: Share = "0.75",
        /// Which they are: evenly spread (evenly, the default), or each with this chance (randomly).
        keep_by: Word<KeepWord> = r#""evenly""#,
        /// Samples whose first token is from weights more than so many updates old are discarded; none if
        /// left out.
        discard_older_than: u32 = "2",
        /// async: the bound on staleness, in batches; a number or a fraction; 1 if left out.
        staleness: Factor = "1",
        /// async: updates between two weight synchronisations; 1 if left out.
        sync_every: Count = "1",
        /// async: what happens to responses that run when their engine takes new weights: they end first
        /// (drain, the default), are cut and continued (continue), or generated anew (abort).
        in_flight: Word<InFlightWord> = r#""continue""#,
        /// partial, and async with continue: whether the keys and values of a cut response stay in use (kept,
        /// the default) or are computed again (recomputed).
        kv_cache: Word<CacheWord> = r#""recomputed""#,
        /// Whether rollout and update have devices of their own (separate, the default) or take turns on the
        /// same ones (colocated).
        placement: Word<PlacementWord> = r#""colocated""#,
        /// colocated: from rollout to training, besides moving memory; none if left out.
        to_training: Duration = r#""5 s""#,
        /// colocated: from training to rollout, besides moving memory; none if left out.
        to_rollout: Duration = r#""5 s""#,
        /// colocated: what lies in the memory of a device.
        memory: Memory = "",
        /// What breaks; nothing if left out.
        faults: Faults = "",
        /// What the pools cost, if a cost is wanted.
        prices: Prices = "",
        /// sync: other jobs that take turns with this one on its engines and its trainer, or on the devices that are
        /// both if they are colocated; none if left out.
        sharing: Sharing = "",
    }
}

table! {
    /// The responses to one prompt: an update takes all that it needs of them, or none.
    Group requires [responses] {
        /// Responses that an update needs of each prompt; `rl.batch` and `rl.launch` are multiples of it.
        responses: Count = "16",
        /// Responses launched for each prompt, of which the first to end are taken and the others aborted;
        /// `responses` if left out.
        launch: Count = "20",
        /// What responses keep that are cut and continued: each all of its tokens (each, the default), or as
        /// many as the shortest of its group that is cut at the same time (shortest).
        cut: Word<CutWord> = r#""shortest""#,
    }
}

table! {
    /// Engines that generate responses by continuous batching: a slot frees when its response ends.
    Rollout requires [engines, slots, token_time, lengths] {
        /// Engines, all alike.
        engines: Count = "64",
        /// Responses that an engine runs side by side at most.
        slots: Count = "256",
        /// Time per token of each response: a time, `base` and `per_response` (running on the engine), or
        /// measured points by rising `running`.
        token_time: TokenTime = r#"{ base = "20 ms", per_response = "0.1 ms" }"#,
        /// Tokens of a response: a number, a list used in order, or a distribution with a `cap`.
        lengths: Chance<Tokens> =
            r#"{ distribution = "lognormal", median = 2048, sigma = 0.8, cap = 16384 }"#,
        /// Tokens of a prompt; none if left out.
        prompt_tokens: u64 = "512",
        /// Time per token of the prompt before a response decodes, and of a response whose keys and values are
        /// computed again; none if left out.
        prefill_per_token: Duration = r#""0.05 ms""#,
        /// Further time to take up a response whose keys and values are computed again; none if left out.
        resume: Duration = r#""10 ms""#,
        /// Responses raced for each sample, the first of which is taken; 1 if left out.
        copies: Count = "1",
        /// How many times faster it is than these times; 1 if left out.
        speed: AboveZero = "2",
    }
}

table! {
    /// Time per token by the number of responses that run on the engine.
    Linear requires [base] {
        /// Whatever the number is.
        base: Duration = r#""20 ms""#,
        /// For each response; none if left out.
        per_response: Duration = r#""0.1 ms""#,
    }
}

table! {
    /// A measured time per token.
    TokenPoint requires [running, time] {
        /// Responses that run on the engine.
        running: Count = "64",
        /// Time per token of each of them.
        time: Duration = r#""25 ms""#,
    }
}

table! {
    /// A pool of workers that score samples, in order of arrival.
    Pool requires [name, workers, time] {
        /// Its name in reports.
        name: String = r#""rules""#,
        /// What it is: rules on CPU workers (rules, the default), a reward model (reward-model), or a verifier
        /// (verifier); it changes nothing but reports.
        kind: Word<PoolWord> = r#""verifier""#,
        /// Samples scored side by side.
        workers: Count = "64",
        /// Time of a sample: fixed, drawn, or by its tokens (`fixed` and `per_token`).
        time: ByTokens<Chance<ScoreTime>> = r#""0.5 s""#,
        /// How many times faster it is than these times; 1 if left out.
        speed: AboveZero = "2",
    }
}

table! {
    /// The update: the batch in equal mini-steps.
    Update requires [] {
        /// Mini-steps of an update; 1 if left out.
        mini_steps: Count = "4",
        /// Time of a mini-step: a time, a list with one for each, or by its tokens (`fixed` and `per_token`);
        /// that of the simulated step in proportion to the tokens if left out.
        time: ByTokens<OneOrList<Duration>> = r#""16 s""#,
        /// From having the samples of a mini-step to being able to start on them; none if left out.
        handoff: Duration = r#""1 s""#,
        /// What each sample brings along, over a link, before the handoff; nothing if left out.
        record: RoutingRecord = "",
        /// Before the first mini-step, on the trainer; none if left out.
        prepare: Duration = r#""4 s""#,
        /// After the last mini-step; none if left out.
        finish: Duration = r#""1 s""#,
        /// Tokens of the simulated step, where its time is used; those of `[model]` if left out.
        step_tokens: Positive = "1_048_576",
        /// How many times faster it is than these times; 1 if left out.
        speed: AboveZero = "2",
    }
}

table! {
    /// Which experts each token went to, so that the update sends it to the same ones (routing replay). The record
    /// of a sample has their numbers, `identity` and a bit for each token, and `header`.
    RoutingRecord requires [layers, top_k, rate] {
        /// Layers with experts.
        layers: Count = "48",
        /// Experts that a token goes to in each.
        top_k: Count = "8",
        /// Bytes of an expert's number; 2 if left out.
        bytes_per_id: Count = "2",
        /// Bytes that tell a token apart, for each; none if left out.
        identity: Bytes = r#""24 B""#,
        /// Bytes at the head of each record; none if left out.
        header: Bytes = r#""128 B""#,
        /// How fast records go from the engines to the trainer, one after the other.
        rate: Rate = r#""10 GB/s""#,
    }
}

table! {
    /// A time that goes by tokens.
    PerToken requires [per_token] {
        /// Whatever they are; none if left out.
        fixed: Duration = r#""0.1 s""#,
        /// For each token.
        per_token: Duration = r#""0.1 ms""#,
    }
}

/// Time per token of a response.
pub(crate) enum TokenTime {
    Always(Duration),
    Linear(Linear),
    Points(Vec<TokenPoint>),
}

impl FromItem for TokenTime {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        match &item.node {
            Node::Table(_) => Linear::from_item(item, place, problems).map(Self::Linear),
            Node::List(_) => Vec::from_item(item, place, problems).map(Self::Points),
            _ => Duration::from_item(item, place, problems).map(Self::Always),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let always = Duration::schema(generator);
        let (linear, points) = (Linear::schema(generator), Vec::<TokenPoint>::schema(generator));
        json_schema!({ "anyOf": [always, linear, points] })
    }

    fn list_keys(path: &str, keys: &mut Vec<String>) {
        keys.push(path.to_owned());
        keys.extend(["base", "per_response"].map(|key| join(path, key)));
    }
}

/// A time as `T` has it, or one that goes by tokens.
pub(crate) enum ByTokens<T> {
    Plain(T),
    PerToken(PerToken),
}

impl<T: FromItem> FromItem for ByTokens<T> {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        match &item.node {
            Node::Table(table) if table.get("distribution").is_none() => {
                PerToken::from_item(item, place, problems).map(Self::PerToken)
            }
            _ => T::from_item(item, place, problems).map(Self::Plain),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let (plain, per_token) = (T::schema(generator), PerToken::schema(generator));
        json_schema!({ "anyOf": [plain, per_token] })
    }

    fn list_keys(path: &str, keys: &mut Vec<String>) {
        T::list_keys(path, keys);
        keys.extend(["fixed", "per_token"].map(|key| join(path, key)));
    }
}

/// Declares a choice of a few words, each a variant.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),* }

        impl Words for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];
        }
    };
}
pub(super) use choice;

choice! {
    /// How the stages overlap.
    ModeWord {
        Sync = "sync",
        OneStepOff = "one-step-off",
        Async = "async",
        Partial = "partial",
        Stream = "stream",
    }
}

choice! {
    /// When scoring starts.
    StartWord { WholeBatch = "whole-batch", AsFinished = "as-finished" }
}

choice! {
    /// Which samples are kept.
    KeepWord { Evenly = "evenly", Randomly = "randomly" }
}

choice! {
    /// What happens to responses that run when their engine takes new weights.
    InFlightWord { Drain = "drain", Continue = "continue", Abort = "abort" }
}

choice! {
    /// What responses of a group keep that are cut.
    CutWord { Each = "each", Shortest = "shortest" }
}

choice! {
    /// What becomes of the keys and values of a cut response.
    CacheWord { Kept = "kept", Recomputed = "recomputed" }
}

choice! {
    /// Whether rollout and update share their devices.
    PlacementWord { Separate = "separate", Colocated = "colocated" }
}

choice! {
    /// What a pool is.
    PoolWord { Rules = "rules", RewardModel = "reward-model", Verifier = "verifier" }
}

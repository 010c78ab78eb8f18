//! The scenario as it is written, one struct a table; the comments are the reference of each key.
//!
//! The tables of a job are in `job`, `stragglers` and `input`,
//! those of scatter and sizes in `spread`, those of RL in `rl` and `rl_around`.
//!
//! To add a table, declare it here (or in a file of its own) and name it in [`File`]. Meaning, defaults and
//! checks that span two keys are in `lower`.

pub(crate) mod input;
pub(crate) mod job;
pub(crate) mod rl;
pub(crate) mod rl_around;
pub(crate) mod search;
pub(crate) mod spread;
pub(crate) mod stragglers;

use pipestep_engine::{Bytes, Duration};
use pipestep_model::{Recompute, Saved};
use pipestep_schedule::Schedule;
use pipestep_step::{Arbitration, Links, UpdateAfter};
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::options::WrittenOptions;
use crate::read::{
    AboveZero, FromItem, OneOrList, Place, Positive, Problems, SignedBytes, Word, Words, choose, closest,
};
use crate::sweep::WrittenSweep;
use crate::table::table;
use crate::tree::{Item, Node};
use crate::units::Share;

table! {
    /// A pipestep scenario. Values with units are strings: "10 ms", "112 GB", "24 GiB", "7 GB/s".
    /// One value stands for all ranks or boundaries, a list gives each its own.
    File requires [] {
        /// What the scenario is called in tables and pictures; the file's name if it is left out.
        name: String = r#""1F1B on 4 ranks""#,
        /// The model, where byte counts are to come from its dimensions.
        model: Model = "",
        /// Ranks, micro-batches and schedule of one step.
        pipeline: Pipeline = "",
        /// How long the parts of a step take.
        time: Time = "",
        /// How long messages between ranks take.
        transfer: Transfer = "",
        /// Memory: the budget, and byte counts where no model gives them.
        memory: Memory = "",
        /// Copies of the pipeline.
        parallel: spread::Parallel = "",
        /// How the lengths of the step scatter; not at all if left out.
        jitter: spread::Jitter = "",
        /// How the lengths of the step depend on the size of a micro-batch; not at all if left out.
        efficiency: spread::Efficiency = "",
        /// A training job round the step, or alone.
        job: job::Job = "",
        /// How the job saves its state; it never does if left out.
        checkpoint: job::Checkpoint = "",
        /// The storage of the job.
        storage: job::Storage = "",
        /// What breaks in the job; nothing if left out.
        faults: job::Faults = "",
        /// What slows the job down; nothing if left out.
        stragglers: stragglers::Stragglers = "",
        /// What feeds the job's steps; input is always there if left out.
        input: input::Input = "",
        /// Rounds of RL post-training, alone or with the step as their update.
        rl: rl::Rl = "",
        /// What `pipestep search` may try.
        search: search::Search = "",
        /// Values to try, by dotted key, for `pipestep sweep`.
        sweep: WrittenSweep = "",
    }
}

table! {
    /// A dense decoder: a preset, a configuration, or its dimensions; written dimensions win.
    Model requires [] {
        /// A public model by name.
        preset: ModelName = r#""qwen3-8b""#,
        /// Instead: a Hugging Face configuration (model type llama, mistral, phi3 or qwen3); a path relative to
        /// the scenario's file.
        config: String = r#""config.json""#,
        /// Decoder layers.
        layers: Positive = "36",
        /// Width of the residual stream.
        hidden_size: Positive = "4096",
        /// Query heads.
        attention_heads: Positive = "32",
        /// Key and value heads; as many as `attention_heads` if left out.
        key_value_heads: Positive = "8",
        /// Width of one head; `hidden_size` by `attention_heads` if left out.
        head_dim: Positive = "128",
        /// Width of the gated feed-forward part.
        intermediate_size: Positive = "12288",
        /// Rows of the embedding.
        vocabulary_size: Positive = "151936",
        /// Whether the output projection is the embedding itself; false if left out.
        tied_embeddings: bool = "false",
        /// Whether queries and keys are normed head by head; false if left out.
        query_key_norm: bool = "true",
        /// Tokens in each sequence; needed for a step.
        sequence_length: Positive = "128",
        /// Sequences in one micro-batch; 1 if left out.
        micro_batch_size: Positive = "1",
        /// What forward keeps for backward: the state of the nonlinear parts in FP32 (the default), or the
        /// inputs of the matrix multiplications too.
        saved: Word<Saved> = r#""nonlinear-fp32""#,
        /// What backward rebuilds instead: nothing (the default), the activated gate (silu), the matrix inputs
        /// that are one multiplication away (products, only with "gemm-inputs-fp32"), or both.
        recompute: Word<Recompute> = r#""none""#,
        /// Further bytes kept for each micro-batch and chunk; one value or one a rank; none if left out.
        extra_saved: OneOrList<Bytes> = r#""0 B""#,
    }
}

table! {
    /// The shape of a step and the order of its operations.
    Pipeline requires [] {
        /// Pipeline-parallel devices; needed without `schedule_file`.
        ranks: Positive = "4",
        /// Micro-batches of one optimizer step; needed without `global_batch` and
        /// `schedule_file`.
        micro_batches: Positive = "8",
        /// Instead of `micro_batches`: sequences of one optimizer step, all data-parallel copies together, to be
        /// cut into micro-batches of `model.micro_batch_size`.
        global_batch: Positive = "512",
        /// The order of operations: `pipestep schedule list` explains each; needed without `schedule_file`.
        schedule: ScheduleName = r#""1f1b""#,
        /// Instead of `schedule`: a PyTorch schedule file (CSV), a row for each rank; a path relative to the
        /// scenario's file. Ranks, stages and micro-batches are those of the file, and `layers` are by stage.
        schedule_file: String = r#""mine.csv""#,
        /// Stages (virtual stages) that each rank holds; the fewest that the schedule takes if left out.
        chunks: Positive = "1",
        /// Layers of each stage in model order; if left out, the ranks, and then each rank's chunks, divide
        /// them evenly, the first ones taking one more.
        layers: OneOrList<u64> = "[9, 9, 9, 9]",
        /// When a rank updates: when every gradient of every rank is ready (all, the default), or its own
        /// rank's are (own).
        update_after: Word<UpdateAfter> = r#""all""#,
    }
    with options: WrittenOptions
}

table! {
    /// Lengths, per micro-batch and rank, for all the layers of the rank.
    Time requires [] {
        /// One forward; one value or one a rank.
        forward: OneOrList<Duration> = r#""10 ms""#,
        /// One full backward; one value or one a rank.
        backward: OneOrList<Duration> = r#""20 ms""#,
        /// Instead of `forward`: one forward through a layer; one value or one a layer of the model, so that
        /// layers can be moved between stages.
        layer_forward: OneOrList<Duration> = r#""1.1 ms""#,
        /// Instead of `backward`: one full backward through a layer; one value or one a layer of the model.
        layer_backward: OneOrList<Duration> = r#""2.2 ms""#,
        /// With `layer_forward`: what the embedding adds to the first stage; nothing if left out.
        embedding_forward: Duration = r#""0.1 ms""#,
        /// What the embedding adds to the first stage's backward; nothing if left out.
        embedding_backward: Duration = r#""0.2 ms""#,
        /// What the output layer and the loss add to the last stage's forward; nothing if left out.
        head_forward: Duration = r#""3 ms""#,
        /// What they add to the last stage's backward; nothing if left out.
        head_backward: Duration = r#""6 ms""#,
        /// The share of the backward that is the weight gradient where a schedule splits it: 0.5 or "1/3"; one
        /// half if left out; one value or one a rank.
        weight_gradient_fraction: OneOrList<Share> = "0.5",
        /// An overlapped forward and backward; one value or one a rank; run one after the other if left out.
        overlapped_pair: OneOrList<Duration> = r#""30 ms""#,
        /// The update of the weights, once a step; one value or one a rank; none if left out.
        update: OneOrList<Duration> = r#""1 ms""#,
        /// Once, before anything else, on every rank; none if left out.
        setup: Duration = r#""0 ms""#,
        /// How many times longer each micro-batch's operations and messages are, and larger its bytes: a number
        /// or a fraction for each micro-batch; all alike if left out. A batch of 8 cut into 3, 3 and 2 has
        /// [3, 3, 2] times the costs of one sample.
        micro_batch_scale: OneOrList<AboveZero> = "[3, 3, 2]",
        /// Whether the first stage has an input gradient (computed, the default) or not (none): then its `I`
        /// takes no time and frees nothing, and its `W` is the whole backward, as in PyTorch.
        first_stage_input_gradient: Word<FirstInputGradient> = r#""none""#,
    }
}

/// Whether the first stage of a model has an input gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstInputGradient {
    Computed,
    None,
}

impl Words for FirstInputGradient {
    const WORDS: &'static [(&'static str, Self)] = &[("computed", Self::Computed), ("none", Self::None)];
}

table! {
    /// Messages between ranks. Boundary k joins ranks k and k+1; its times hold in either direction.
    Transfer requires [] {
        /// An activation message; one value or one a boundary; none if left out.
        activation: OneOrList<Duration> = r#""1 ms""#,
        /// A gradient message; one value or one a boundary; none if left out.
        gradient: OneOrList<Duration> = r#""1 ms""#,
        /// Any message between ranks that are not neighbours; the longest of its kind if left out.
        wraparound: Duration = r#""1 ms""#,
        /// One serial link for each ordered pair of ranks (directional, the default), one half-duplex link for
        /// all (shared), or a pure delay (unlimited).
        links: Word<Links> = r#""directional""#,
        /// Which waiting message goes first: the one whose producer ended first (fifo, the default), or
        /// activations, then lower stages, then lower micro-batches (by-stage).
        arbitration: Word<Arbitration> = r#""fifo""#,
    }
}

table! {
    /// The memory of a rank.
    Memory requires [] {
        /// What a rank may hold; one value or one a rank; the report says which ranks fit.
        budget: OneOrList<Bytes> = r#""80 GB""#,
        /// Instead of `[model]`: what a rank keeps of each micro-batch; a chunk takes its layers' share. One
        /// value or one a rank.
        saved_per_micro_batch: OneOrList<Bytes> = r#""241 MB""#,
        /// Instead of `[model]`: the size of an activation message; none if left out. One value or one a
        /// boundary.
        activation_message: OneOrList<Bytes> = r#""1 MiB""#,
        /// Instead of `[model]`: the size of a gradient message; none if left out. One value or one a boundary.
        gradient_message: OneOrList<Bytes> = r#""2 MiB""#,
        /// The share of the saved bytes that is freed at the end of `I` where a schedule splits the backward;
        /// none if left out: all of it is freed at the end of `W`.
        released_at_input_gradient: Share = "0.5",
        /// Instead of `saved_per_micro_batch` and `released_at_input_gradient`: what each pass of a micro-batch
        /// changes, as measured.
        change: Change = "",
        /// The most saved bytes that `greedy` may use, which decides by them; one value or one a rank; the budget if
        /// left out. Other schedules have limits of their own.
        limit: OneOrList<Bytes> = r#""40 GB""#,
        /// What else is counted, held for the whole step: weights in BF16, gradients in FP32, the optimizer's
        /// FP32 weights and moments. Needs `[model]`.
        include: Vec<Word<Held>> = r#"["weights", "gradients", "optimizer"]"#,
    }
}

table! {
    /// What each pass of a micro-batch changes in the memory of a rank; the three add up to nothing. A chunk takes
    /// its layers' share. Where the backward is not split, its end frees what the forward kept.
    Change requires [forward, input_gradient, weight_gradient] {
        /// What the forward keeps; one value or one a rank.
        forward: OneOrList<SignedBytes> = r#""12 MB""#,
        /// What the input gradient changes: negative if it frees bytes, positive if it keeps more; one value or
        /// one a rank.
        input_gradient: OneOrList<SignedBytes> = r#""-3 MB""#,
        /// What the weight gradient changes; one value or one a rank.
        weight_gradient: OneOrList<SignedBytes> = r#""-9 MB""#,
    }
}

/// What a rank holds for the whole step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Weights,
    Gradients,
    Optimizer,
}

impl Words for Held {
    const WORDS: &'static [(&'static str, Self)] =
        &[("weights", Self::Weights), ("gradients", Self::Gradients), ("optimizer", Self::Optimizer)];
}

impl Words for Saved {
    const WORDS: &'static [(&'static str, Self)] =
        &[("nonlinear-fp32", Self::NonlinearFp32), ("gemm-inputs-fp32", Self::GemmInputsFp32)];
}

impl Words for Recompute {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", Self::NONE),
        ("silu", Self::SILU),
        ("products", Self::PRODUCTS),
        ("silu+products", Self::SILU_AND_PRODUCTS),
    ];
}

impl Words for UpdateAfter {
    const WORDS: &'static [(&'static str, Self)] = &[("all", Self::All), ("own", Self::Own)];
}

impl Words for Links {
    const WORDS: &'static [(&'static str, Self)] =
        &[("directional", Self::Directional), ("shared", Self::Shared), ("unlimited", Self::Unlimited)];
}

impl Words for Arbitration {
    const WORDS: &'static [(&'static str, Self)] = &[("fifo", Self::Fifo), ("by-stage", Self::ByStage)];
}

/// A schedule of the registry.
#[derive(Clone, Copy)]
pub(crate) struct ScheduleName(pub &'static dyn Schedule);

/// All names and aliases of all schedules.
fn schedule_names() -> impl Iterator<Item = &'static str> {
    let entries = pipestep_schedule::all().iter().map(|schedule| schedule.entry());
    entries.flat_map(|entry| std::iter::once(entry.name).chain(entry.aliases.iter().copied()))
}

impl FromItem for ScheduleName {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        if let Node::Text(text) = &item.node
            && let Some(schedule) = pipestep_schedule::find(text)
        {
            return Some(Self(schedule));
        }
        // Aliases are accepted, and may be what was meant, but the list shows one name each.
        let names = pipestep_schedule::all().iter().map(|schedule| schedule.entry().name);
        let list: Vec<String> = names.map(|name| format!("`\"{name}\"`")).collect();
        let near = match &item.node {
            Node::Text(text) => closest(text, schedule_names()),
            _ => None,
        };
        problems.push(place.no_choice(item, &list.join(", "), near));
        None
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = schedule_names().collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// A model of the presets.
#[derive(Clone, Copy)]
pub(crate) struct ModelName(pub &'static str);

impl FromItem for ModelName {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let found = choose(item, place, pipestep_model::preset_names(), problems)?;
        pipestep_model::preset_names().nth(found).map(Self)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = pipestep_model::preset_names().collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

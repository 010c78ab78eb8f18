//! The tables of a job as they are written: `[job]`, `[checkpoint]`, `[storage]`, `[faults]`.

use pipestep_engine::{Bytes, Duration, Rate};
use pipestep_job::CalendarStart;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::chance::{Chance, Drawn, Family};
use crate::read::{Count, FromItem, Place, Positive, Problems, Word, Words, choose, join};
use crate::table::table;
use crate::tree::{Item, Node, Table};
use crate::units::Share;

/// Lengths of time that a job can draw.
pub(crate) struct JobTime;

impl Drawn for JobTime {
    type Amount = Duration;
    const FAMILIES: &'static [Family] =
        &[Family::Exponential, Family::Weibull, Family::Lognormal, Family::Normal, Family::Uniform];
    const EXAMPLE: &'static str = "\"60 s\"";
    const EXPECTED: &'static str = "a time";
    const MEAN: Option<Duration> = None;
    const CAPPED: bool = false;

    fn parse(text: &str) -> Option<Duration> {
        crate::units::parse_duration(text).ok()
    }
}

table! {
    /// What a training job has to do. The first of its work and its horizon to come ends it.
    Job requires [] {
        /// Useful time to do.
        work: Duration = r#""1000 s""#,
        /// Instead of `work`: optimizer steps to do, each as long as the step.
        steps: Positive = "31790",
        /// Instead of `work`: tokens to train on; the last step may be over them.
        tokens: Positive = "100_000_000_000",
        /// Tokens of one step; those of the simulated step, where a model is given, if left out.
        tokens_per_step: Positive = "3_145_728",
        /// The length of a step; that of the simulated step if the file has a `[pipeline]`.
        step: Duration = r#""52.8 s""#,
        /// The wall time at which the run stops, whatever is done by then.
        horizon: Duration = r#""600 s""#,
        /// When the job starts, so that its end is a date too: a date, with or without a time of day and an offset
        /// from UTC.
        start: CalendarStart = r#""2026-03-01""#,
        /// Time put aside for what is not simulated; added to the expected completion; none if left out.
        set_aside: Duration = r#""5 d""#,
    }
}

table! {
    /// How a job saves its state.
    Checkpoint requires [every] {
        /// Whether training goes on while a snapshot is written in the background (async, the default) or
        /// waits for the whole write (sync).
        mode: Word<SaveMode> = r#""async""#,
        /// The size of a checkpoint; 14 bytes a parameter of `[model]` if left out (weights in BF16, the
        /// optimizer's FP32 weights and moments).
        size: Bytes = r#""112 GB""#,
        /// How fast it is written to a place of its own; to `[storage]` if left out.
        bandwidth: Rate = r#""7 GB/s""#,
        /// Instead of `bandwidth`: how long a write takes, fixed or drawn for each.
        write_time: Chance<JobTime> = r#""16 s""#,
        /// The first request; after one interval if left out.
        first: Counted<Duration> = r#""20 s""#,
        /// From one request to the next: a time, fixed or drawn for each, or with `trigger = "steps"` a number
        /// of steps.
        every: Counted<Chance<JobTime>> = r#""20 s""#,
        /// So many requests, skipped ones included; without end if left out.
        count: Positive = "2",
        /// What the interval counts: instants of the clock (wall, the default), the clock since the start or
        /// the latest resume (wall-since-resume), useful time since the latest capture or resume (work), or
        /// steps since then (steps).
        trigger: Word<TriggerWord> = r#""wall""#,
        /// How long training is paused while a snapshot is copied; none if left out; only asynchronous.
        staging: Duration = r#""0.5 s""#,
        /// What a request does when no buffer is free: training waits (block, the default), there are as many
        /// buffers as it takes (queue), the request is dropped (skip), or the oldest snapshot that is not yet
        /// being written is overwritten (replace); only asynchronous.
        backlog: Word<BacklogWord> = r#""block""#,
        /// How many buffers there are; 2 if left out; only asynchronous.
        buffers: Count = "2",
        /// The size of one buffer; as large as needed if left out; only asynchronous.
        buffer_size: Bytes = r#""120 GB""#,
        /// Where the buffers are: in the memory of the host (host, the default), or in that of the device
        /// (device), where each rank holds its part of them for the whole step; only asynchronous.
        buffers_on: Word<BufferPlace> = r#""device""#,
        /// From the end of a write until the checkpoint can be used; none if left out.
        commit_delay: Duration = r#""0 s""#,
        /// A nearer, faster place for some of the saves.
        near: Near = "",
    }
}

table! {
    /// Saves to a near place (a neighbour's memory, a local disk) between the far ones.
    Near requires [far_every] {
        /// How long a synchronous save to it takes; an asynchronous one takes `staging`.
        write: Duration = r#""2 s""#,
        /// Every so many saves one goes to the far place.
        far_every: Count = "10",
        /// The share of failures that the near copy survives, where the cause does not say; all if left out.
        survives: Share = "0.9",
        /// How long it takes to come back from the near copy; as from the far one if left out.
        recovery: RecoveryTime = r#""10 s""#,
    }
}

table! {
    /// The storage of a job: its bandwidth is shared by whatever writes to it and reads from it at a time.
    Storage requires [] {
        /// A published storage by name.
        preset: StorageName = r#""superpod-good-1su""#,
        /// What a single read gets; that of the preset if left out.
        read: Rate = r#""15 GB/s""#,
        /// What a single write gets; that of the preset if left out.
        write: Rate = r#""7 GB/s""#,
    }
}

table! {
    /// What breaks, when, and how the job comes back.
    Faults requires [] {
        /// Failures at fixed instants.
        at: Vec<Duration> = r#"["50 s"]"#,
        /// Between random failures of the whole job; a plain time is the mean of an exponential distribution.
        mtbf: Chance<JobTime> = r#""7.9 h""#,
        /// Between random failures of one device; a plain time is the mean of an exponential distribution.
        device_mtbf: Chance<JobTime> = r#""337 d""#,
        /// How many devices fail independently of each other.
        devices: Count = "1024",
        /// A published record of failures: its causes and their shares, and, where they are not written, its
        /// `device_mtbf` and `devices`.
        preset: FailuresName = r#""llama3""#,
        /// Further random failures, each a table of its own.
        sources: Vec<Source> = r#"[{ name = "loss spike", mtbf = "3 d" }]"#,
        /// From a failure until it is noticed; none if left out.
        detection: Duration = r#""30 s""#,
        /// From the notice until recovery starts, fixed or drawn for each failure; none if left out.
        downtime: Chance<JobTime> = r#""30 s""#,
        /// From there until training goes on: a time, fixed or drawn, or a table of `bandwidth` and `restart`
        /// for reading the checkpoint back; none if left out.
        recovery: RecoveryTime = r#""60 s""#,
        /// Whether a failure during recovery counts and starts the downtime again; false if left out.
        recovery_can_fail: bool = "false",
        /// Machines kept warm to replace failed ones; there is always one if left out.
        spares: Spares = "",
        /// The seed of every random draw; 0 if left out.
        seed: u64 = "0",
        /// How often a random job is run; 1 if left out.
        runs: Count = "1000",
    }
}

table! {
    /// A random source of failures.
    Source requires [name, mtbf] {
        /// Its name in the report.
        name: String = r#""loss spike""#,
        /// Between failures of one device; a plain time is the mean of an exponential distribution.
        mtbf: Chance<JobTime> = r#""3 d""#,
        /// How many devices fail independently of each other; 1, for what hits the whole job, if left out.
        devices: Count = "1",
        /// Whether a machine is lost, so that a spare is needed; false if left out.
        loses_machine: bool = "false",
        /// The share of its failures that a near copy survives; as `[checkpoint.near]` says if left out.
        near_survives: Share = "1",
        /// Its own downtime; as `[faults]` says if left out.
        downtime: Chance<JobTime> = r#""60 s""#,
        /// What its failures are due to, with weights; itself if left out.
        causes: Vec<Cause> = r#"[{ name = "GPU", weight = 148 }]"#,
    }
}

table! {
    /// A cause of failures.
    Cause requires [name] {
        /// Its name in the report.
        name: String = r#""GPU""#,
        /// Its weight among the causes; 1 if left out.
        weight: Count = "148",
        /// Whether a machine is lost; as the source says if left out.
        loses_machine: bool = "true",
        /// The share of its failures that a near copy survives; as the source says if left out.
        near_survives: Share = "0",
        /// Its own downtime; as the source says if left out.
        downtime: Chance<JobTime> = r#""60 s""#,
    }
}

table! {
    /// Machines that wait to replace failed ones.
    Spares requires [count, repair] {
        /// How many there are.
        count: u32 = "4",
        /// How long a failed machine is away before it is a spare itself.
        repair: Chance<JobTime> = r#""1 d""#,
        /// What the job does with no spare left: wait for a machine to come back (wait, the default), or go on with
        /// fewer data-parallel replicas until repair gives them back, at the speed of those (shrink).
        when_out: Word<WhenOutWord> = r#""shrink""#,
        /// How many data-parallel replicas the job has; those of `[stragglers] ranks` or `[parallel] data` if left
        /// out; only to shrink.
        replicas: Count = "64",
        /// With fewer replicas than these the job waits; 1 if left out; only to shrink.
        min_replicas: Count = "48",
        /// How many machines a replica takes; those of a replica that has stopped stand in for the next ones to be
        /// lost; 1 if left out; only to shrink.
        machines_per_replica: Count = "4",
        /// How long training pauses to take replicas back; none if left out; only to shrink.
        regroup: Duration = r#""60 s""#,
    }
}

table! {
    /// Coming back by reading a checkpoint.
    ReadBack requires [] {
        /// How fast it is read from a place of its own; from `[storage]` if left out.
        bandwidth: Rate = r#""15 GB/s""#,
        /// From the end of the read until training goes on; none if left out.
        restart: Duration = r#""60 s""#,
    }
}

/// Whether training waits for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaveMode {
    Async,
    Sync,
}

impl Words for SaveMode {
    const WORDS: &'static [(&'static str, Self)] = &[("async", Self::Async), ("sync", Self::Sync)];
}

/// What the interval between two requests counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TriggerWord {
    Wall,
    WallSinceResume,
    Work,
    Steps,
}

impl Words for TriggerWord {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("wall", Self::Wall),
        ("work", Self::Work),
        ("steps", Self::Steps),
        ("wall-since-resume", Self::WallSinceResume),
    ];
}

/// What a request does when no buffer is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BacklogWord {
    Block,
    Queue,
    Skip,
    Replace,
}

impl Words for BacklogWord {
    const WORDS: &'static [(&'static str, Self)] =
        &[("block", Self::Block), ("queue", Self::Queue), ("skip", Self::Skip), ("replace", Self::Replace)];
}

/// What a job does with no spare left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenOutWord {
    Wait,
    Shrink,
}

impl Words for WhenOutWord {
    const WORDS: &'static [(&'static str, Self)] = &[("wait", Self::Wait), ("shrink", Self::Shrink)];
}

/// Where snapshot buffers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferPlace {
    Host,
    Device,
}

impl Words for BufferPlace {
    const WORDS: &'static [(&'static str, Self)] = &[("host", Self::Host), ("device", Self::Device)];
}

/// A date, as a string or as TOML's own.
impl FromItem for CalendarStart {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let parsed = match &item.node {
            Node::Text(text) | Node::Moment(text) => Self::parse(text).ok(),
            _ => None,
        };
        if parsed.is_none() {
            problems.push(place.wrong(item, "a date such as `2026-03-01` or `2026-03-01T09:30+01:00`"));
        }
        parsed
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let date = r"^\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?\s*$";
        json_schema!({ "type": "string", "pattern": date })
    }
}

/// A storage of the presets.
#[derive(Clone, Copy)]
pub(crate) struct StorageName(pub &'static pipestep_job::StoragePreset);

impl FromItem for StorageName {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let presets = &pipestep_job::STORAGE_PRESETS;
        let found = choose(item, place, presets.iter().map(|preset| preset.name), problems)?;
        presets.get(found).map(Self)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let names = pipestep_job::STORAGE_PRESETS.each_ref().map(|preset| preset.name);
        json_schema!({ "type": "string", "enum": names })
    }
}

/// A record of failures of the presets.
#[derive(Clone, Copy)]
pub(crate) struct FailuresName(pub &'static pipestep_job::FailurePreset);

impl FromItem for FailuresName {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let presets = &pipestep_job::FAILURE_PRESETS;
        let found = choose(item, place, presets.iter().map(|preset| preset.name), problems)?;
        presets.get(found).map(|preset| Self(preset))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let names = pipestep_job::FAILURE_PRESETS.map(|preset| preset.name);
        json_schema!({ "type": "string", "enum": names })
    }
}

/// An amount, or a number of steps.
pub(crate) enum Counted<T> {
    Amount(T),
    Steps(u64),
}

impl<T: FromItem> FromItem for Counted<T> {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        match item.node {
            Node::Integer(_) => Positive::from_item(item, place, problems).map(|steps| Self::Steps(steps.0)),
            _ => T::from_item(item, place, problems).map(Self::Amount),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let (amount, steps) = (T::schema(generator), Positive::schema(generator));
        json_schema!({ "anyOf": [amount, steps] })
    }

    fn list_keys(path: &str, keys: &mut Vec<String>) {
        T::list_keys(path, keys);
    }
}

/// How long it takes to come back: a time, or reading the checkpoint.
pub(crate) enum RecoveryTime {
    Takes(Chance<JobTime>),
    Reads(ReadBack),
}

impl RecoveryTime {
    /// A table of a distribution says so; any other is one of a read.
    fn is_read(item: &Item) -> bool {
        let is_distribution = |table: &Table| table.get("distribution").is_some();
        matches!(&item.node, Node::Table(table) if !is_distribution(table))
    }
}

impl FromItem for RecoveryTime {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        if Self::is_read(item) {
            return ReadBack::from_item(item, place, problems).map(Self::Reads);
        }
        Chance::from_item(item, place, problems).map(Self::Takes)
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let (takes, reads) = (Chance::<JobTime>::schema(generator), ReadBack::schema(generator));
        json_schema!({ "anyOf": [takes, reads] })
    }

    fn list_keys(path: &str, keys: &mut Vec<String>) {
        Chance::<JobTime>::list_keys(path, keys);
        keys.extend(["bandwidth", "restart"].map(|key| join(path, key)));
    }
}

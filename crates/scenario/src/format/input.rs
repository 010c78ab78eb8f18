//! `[input]` as it is written: what feeds the steps of a job.

use pipestep_engine::{Bytes, Duration, Rate};
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::chance::{Chance, Drawn, Family};
use crate::format::job::JobTime;
use crate::read::{Count, FromItem, Place, Positive, Problems};
use crate::table::table;
use crate::tree::{Item, Node};

table! {
    /// The input of a job: workers make items (batches, sequences or packs, whatever the buffer counts), and each
    /// step takes some of them.
    Input requires [items_per_step, workers, make, prefetch] {
        /// Items that a step takes when it starts.
        items_per_step: Count = "384",
        /// Workers that make items, each one delivery at a time.
        workers: Count = "8",
        /// How long a worker takes for a delivery, besides reading it; fixed or drawn.
        make: Chance<JobTime> = r#""50 ms""#,
        /// Items in a delivery; 1 if left out.
        delivery: Count = "1",
        /// A delivery is begun when fewer items than this are on the host: being read or made, in the buffer, or
        /// being copied to the device.
        prefetch: u32 = "768",
        /// What is read for each delivery; nothing if left out.
        read: Read = "",
        /// Readers that fetch deliveries for the workers, each one at a time; each worker reads its own if left out.
        readers: Count = "2",
        /// What items are packed from; they are as they are if left out.
        packing: Packing = "",
        /// How the items of a step come to the device; a step takes them from the host if left out.
        copy: DeviceCopy = "",
        /// Times in which workers start nothing.
        stops: Vec<Stop> = r#"[{ from = "1 h", to = "2 h", workers = 1 }]"#,
    }
}

table! {
    /// What is read for each delivery.
    Read requires [] {
        /// Bytes of a delivery, besides those of its samples; with `packing` it may be left out.
        bytes: Bytes = r#""4 MB""#,
        /// How fast each worker reads from a place of its own; from `[storage]`, shared with checkpoints, if
        /// left out.
        bandwidth: Rate = r#""1 GB/s""#,
        /// A local copy of everything read once; none if left out.
        cache: Cache = "",
    }
}

table! {
    /// A local copy of what has been read once.
    Cache requires [epoch_items, bandwidth] {
        /// Items after which everything has been read once.
        epoch_items: Positive = "1_000_000",
        /// How fast each worker reads from it.
        bandwidth: Rate = r#""5 GB/s""#,
    }
}

table! {
    /// Samples of many lengths in items of one: an item is a pack.
    Packing requires [tokens, samples] {
        /// Token slots of a pack.
        tokens: Positive = "8192",
        /// The tokens of the samples: a number, a distribution (drawn anew for each sample, up to a pack), or a list
        /// that is gone through again and again, of numbers or of tables with `tokens`, `stored` and `cpu`.
        samples: SampleLengths = "900",
        /// What becomes of a sample for which there is no room left: it begins the next pack and the rest of this one
        /// stays empty (false, the default), or it is cut and its remainder begins the next pack (true).
        split: bool = "true",
        /// Bytes read for each token, besides those of `read`; none if left out.
        bytes_per_token: Bytes = r#""4 B""#,
        /// A worker's time for each sample, besides `make`; none if left out.
        cpu_per_sample: Duration = r#""1 ms""#,
    }
}

table! {
    /// A sample of a list.
    ListedSample requires [tokens] {
        /// Its tokens.
        tokens: Positive = "448",
        /// Its bytes in storage; `bytes_per_token` for each of its tokens if left out.
        stored: Bytes = r#""2 kB""#,
        /// A worker's time for it; `cpu_per_sample` if left out.
        cpu: Duration = r#""1 ms""#,
    }
}

table! {
    /// The copy of a step's items to the device, one step's after another's.
    DeviceCopy requires [] {
        /// How long it takes.
        time: Duration = r#""20 ms""#,
        /// Instead of `time`: the bytes of a step's items.
        bytes: Bytes = r#""64 MB""#,
        /// How fast they are copied; with `bytes`.
        bandwidth: Rate = r#""25 GB/s""#,
        /// Steps whose items are on the device at once, each from the start of its copy to the end of the step; 2 if
        /// left out.
        slots: Count = "2",
    }
}

table! {
    /// Workers that stop for a while.
    Stop requires [from] {
        /// From when on.
        from: Duration = r#""1 h""#,
        /// Until when; for good if left out.
        to: Duration = r#""2 h""#,
        /// How many; 1 if left out.
        workers: Count = "1",
    }
}

/// Numbers of tokens that samples can be drawn with.
pub(crate) struct SampleTokens;

impl Drawn for SampleTokens {
    type Amount = u64;
    const FAMILIES: &'static [Family] =
        &[Family::Exponential, Family::Lognormal, Family::Normal, Family::Uniform];
    const EXAMPLE: &'static str = "900";
    const EXPECTED: &'static str = "a whole number of tokens";
    const MEAN: Option<u64> = None;
    const CAPPED: bool = false;

    fn parse(text: &str) -> Option<u64> {
        text.parse().ok()
    }
}

/// The tokens of samples: in a list, or drawn.
pub(crate) enum SampleLengths {
    Listed(Vec<WrittenSample>),
    Drawn(Chance<SampleTokens>),
}

/// A sample of a list, as a number of tokens or in full.
pub(crate) enum WrittenSample {
    Tokens(u64),
    Full(ListedSample),
}

impl FromItem for WrittenSample {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        match item.node {
            Node::Table(_) => ListedSample::from_item(item, place, problems).map(Self::Full),
            _ => Positive::from_item(item, place, problems).map(|tokens| Self::Tokens(tokens.0)),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let (tokens, full) = (Positive::schema(generator), ListedSample::schema(generator));
        json_schema!({ "anyOf": [tokens, full] })
    }

    fn list_keys(path: &str, keys: &mut Vec<String>) {
        ListedSample::list_keys(path, keys);
    }
}

impl FromItem for SampleLengths {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        match item.node {
            Node::List(_) => Vec::from_item(item, place, problems).map(Self::Listed),
            _ => Chance::from_item(item, place, problems).map(Self::Drawn),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let (listed, drawn) =
            (Vec::<WrittenSample>::schema(generator), Chance::<SampleTokens>::schema(generator));
        json_schema!({ "anyOf": [drawn, listed] })
    }

    // What stands in a list has no dotted key.
    fn list_keys(path: &str, keys: &mut Vec<String>) {
        Chance::<SampleTokens>::list_keys(path, keys);
    }
}

impl WrittenSample {
    pub(crate) fn tokens(&self) -> Option<u64> {
        match self {
            Self::Tokens(tokens) => Some(*tokens),
            Self::Full(sample) => sample.tokens.get().map(|tokens| tokens.0),
        }
    }

    pub(crate) const fn full(&self) -> Option<&ListedSample> {
        match self {
            Self::Tokens(_) => None,
            Self::Full(sample) => Some(sample),
        }
    }
}

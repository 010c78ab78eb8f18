//! The tables round the stages of `[rl]` as they are written: weight synchronisation, memory, faults, prices.

use pipestep_engine::{Bytes, Duration, Rate};

use super::rl::{ByTokens, Tokens, choice};
use crate::chance::Chance;
use crate::read::{AboveZero, Count, OneOrList, Real, Word, Words};
use crate::table::table;

table! {
    /// How new weights reach the engines: a `time`, or a `transfer`.
    Sync requires [] {
        /// The pause of all engines (blocking) or of each (staggered).
        time: Duration = r#""4 s""#,
        /// Instead of `time`: bytes over bandwidth.
        transfer: Transfer = "",
        /// Who waits: all engines and the trainer (blocking, the default), or one engine after the other
        /// (staggered).
        style: Word<StyleWord> = r#""staggered""#,
        /// How many times faster it is than this time; 1 if left out.
        speed: AboveZero = "2",
    }
}

table! {
    /// Weights sent over links.
    Transfer requires [send] {
        /// Weights that every receiving rank holds; 2 bytes a parameter of `[model]` if left out.
        common: Bytes = r#""16 GB""#,
        /// Weights of all experts; none if left out.
        experts: Bytes = r#""0 B""#,
        /// Experts in every layer; 1 if left out.
        expert_count: Count = "128",
        /// Receiving ranks of an engine; 1 if left out.
        ranks: Count = "16",
        /// What each receiver gets: all weights (whole, the default), or the common part and its own experts
        /// (own-shards).
        content: Word<ContentWord> = r#""own-shards""#,
        /// Whether the sender sends once to each receiver (unicast, the default) or once to all (broadcast).
        fan_out: Word<FanOutWord> = r#""broadcast""#,
        /// What the sending side sends, all together.
        send: Rate = r#""50 GB/s""#,
        /// What one receiver takes; as fast as it is sent if left out.
        receive: Rate = r#""25 GB/s""#,
        /// The start-up time of a transfer; none if left out.
        setup: Duration = r#""0.1 s""#,
    }
}

table! {
    /// What lies in the memory of a colocated device, and how the switches move it.
    Memory requires [capacity, items] {
        /// Memory of a device.
        capacity: Bytes = r#""80 GB""#,
        /// Everything that is ever there.
        items: Vec<MemoryItem> = r#"[{ name = "KV cache", bytes = "40 GiB", held = "rollout" }]"#,
        /// The moves from training to rollout, in order; the order with the lowest peak if left out.
        to_rollout: Vec<Move> = r#"[{ release = "training state" }, { load = "KV cache" }]"#,
        /// The moves from rollout to training, in order; the order with the lowest peak if left out.
        to_training: Vec<Move> = r#"[{ release = "KV cache" }, { load = "training state" }]"#,
    }
}

table! {
    /// Something that lies in memory.
    MemoryItem requires [name, bytes, held] {
        /// Its name in reports.
        name: String = r#""KV cache""#,
        /// Its size.
        bytes: Bytes = r#""40 GiB""#,
        /// When it is there: training, rollout, or both.
        held: Word<HeldWord> = r#""rollout""#,
        /// The item that must be in memory while this one is loaded; none if left out.
        read_from: String = r#""training state""#,
        /// How fast it is loaded and released; in no time if left out.
        rate: Rate = r#""25 GB/s""#,
    }
}

table! {
    /// One move of a switch: an item is loaded or released.
    Move requires [] {
        /// The item that comes into memory.
        load: String = r#""KV cache""#,
        /// The item that leaves it.
        release: String = r#""training state""#,
    }
}

table! {
    /// What breaks in a round.
    Faults requires [] {
        /// Engines that fail at given instants.
        engines: Vec<EngineFailure> = r#"[{ engine = 3, at = "100 s", down = "60 s" }]"#,
        /// Engines that fail at random.
        random: RandomFailures = "",
        /// The mean time to the interruption of one running response, which is thrown away; never if left out.
        mean_time_to_interruption: Duration = r#""1 h""#,
        /// Scoring pools that stop.
        scorers: Vec<ScorerStop> = r#"[{ pool = "verifier", at = "100 s" }]"#,
        /// Restarts of the whole job.
        restarts: Vec<Restart> = r#"[{ at = "1 h", down = "10 min", rollout = "lost" }]"#,
    }
}

table! {
    /// An engine that fails once.
    EngineFailure requires [engine, at, down] {
        /// Which, from 0.
        engine: u32 = "3",
        /// When.
        at: Duration = r#""100 s""#,
        /// For how long.
        down: Duration = r#""60 s""#,
        /// What becomes of its responses: they are lost (the default) or kept.
        responses: Word<SurvivalWord> = r#""kept""#,
    }
}

table! {
    /// Engines that fail at random, each by itself.
    RandomFailures requires [mean_time, down] {
        /// The mean time until an engine fails.
        mean_time: Duration = r#""24 h""#,
        /// For how long it is down.
        down: Duration = r#""60 s""#,
        /// What becomes of its responses: they are lost (the default) or kept.
        responses: Word<SurvivalWord> = r#""kept""#,
    }
}

table! {
    /// A scoring pool that stops; what it was scoring is scored anew.
    ScorerStop requires [pool, at] {
        /// The name of the pool.
        pool: String = r#""verifier""#,
        /// From when.
        at: Duration = r#""100 s""#,
        /// For how long; for good if left out.
        down: Duration = r#""60 s""#,
    }
}

table! {
    /// A restart of the whole job.
    Restart requires [at, down] {
        /// When.
        at: Duration = r#""1 h""#,
        /// Until it works again.
        down: Duration = r#""10 min""#,
        /// What becomes of the responses and scores that no update has used: they are lost (the default) or
        /// kept.
        rollout: Word<SurvivalWord> = r#""kept""#,
    }
}

table! {
    /// What the pools cost an hour, in any currency.
    Prices requires [engine] {
        /// One rollout engine; with colocated devices, with all that it is used for.
        engine: Real = "32",
        /// The trainer as a whole; nothing if left out.
        trainer: Real = "64",
        /// One worker of a scoring pool; one value or one a pool; nothing if left out.
        worker: OneOrList<Real> = "0.05",
    }
}

table! {
    /// Jobs that take turns on the same engines and the same trainer: one generates while another trains; or, if they
    /// are colocated, one uses the devices while another is scored. Whoever has waited longest is next; scoring pools
    /// are each job's own.
    Sharing requires [jobs] {
        /// How long engines, trainer, or the devices that are both, take to change from one job to another; none if
        /// left out.
        handoff: Duration = r#""5 s""#,
        /// The other jobs.
        jobs: Vec<OtherJob> = r#"[{ name = "job B", lengths = 4096, update = "30 s" }]"#,
    }
}

table! {
    /// A job that shares engines and trainer: as the one of `[rl]`, but for what is written.
    OtherJob requires [name] {
        /// Its name in reports.
        name: String = r#""job B""#,
        /// Samples that its update trains on.
        batch: Count = "256",
        /// Samples it launches a round; `batch` if that is written and this is not.
        launch: Count = "320",
        /// Tokens of its responses.
        lengths: Chance<Tokens> =
            r#"{ distribution = "lognormal", median = 1024, sigma = 0.8, cap = 8192 }"#,
        /// Tokens of its prompts.
        prompt_tokens: u64 = "512",
        /// Time of one of its mini-steps, as in `rl.update.time`.
        update: ByTokens<OneOrList<Duration>> = r#""30 s""#,
        /// Time of its weight synchronisation.
        sync: Duration = r#""2 s""#,
    }
}

choice! {
    /// Who waits for a weight synchronisation.
    StyleWord { Blocking = "blocking", Staggered = "staggered" }
}

choice! {
    /// What each receiver gets.
    ContentWord { Whole = "whole", OwnShards = "own-shards" }
}

choice! {
    /// How often the sender sends.
    FanOutWord { Unicast = "unicast", Broadcast = "broadcast" }
}

choice! {
    /// In which phase an item is in memory.
    HeldWord { Training = "training", Rollout = "rollout", Both = "both" }
}

choice! {
    /// What becomes of work when its place goes down.
    SurvivalWord { Lost = "lost", Kept = "kept" }
}

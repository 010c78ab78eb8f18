//! `[input]` as it is written: what feeds the steps of a job.

use pipestep_engine::{Bytes, Duration, Rate};

use crate::chance::Chance;
use crate::format::job::JobTime;
use crate::read::{Count, Positive};
use crate::table::table;

table! {
    /// The input of a job: workers make items (batches or sequences, whatever the buffer counts), and each step
    /// takes some of them.
    Input requires [items_per_step, workers, make, prefetch] {
        /// Items that a step takes out of the buffer when it starts.
        items_per_step: Count = "384",
        /// Workers that make items, each one delivery at a time.
        workers: Count = "8",
        /// How long a worker takes for a delivery, besides reading it; fixed or drawn.
        make: Chance<JobTime> = r#""50 ms""#,
        /// Items in a delivery; 1 if left out.
        delivery: Count = "1",
        /// A worker starts a delivery when fewer items than this are in the buffer and under way.
        prefetch: u32 = "768",
        /// What is read for each delivery; nothing if left out.
        read: Read = "",
        /// Times in which workers start nothing.
        stops: Vec<Stop> = r#"[{ from = "1 h", to = "2 h", workers = 1 }]"#,
    }
}

table! {
    /// What is read for each delivery.
    Read requires [bytes] {
        /// Bytes of a delivery.
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

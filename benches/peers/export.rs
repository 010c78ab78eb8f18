//! A step of the benches as JSON, for programs in other languages to simulate, with the makespan and peaks that
//! they must find.
//!
//! `cargo run --release --example peers-case -- 16 1024 1` (ranks, micro-batches, chunks). An operation is written
//! as in PyTorch: stage, letter, micro-batch.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

#[path = "../case/mod.rs"]
mod case;

use pipestep::engine::{Bytes, Duration};
use pipestep::schedule::{Orders, Plan, Rank, Stage};
use pipestep::step::{Inputs, Message, StageCost, simulate};
use serde_json::{Value, json};

fn main() {
    let words: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [ranks, micro_batches, chunks] = words[..] else {
        panic!("three whole numbers are wanted: ranks, micro-batches, chunks");
    };
    let inputs = case::inputs((ranks, micro_batches, chunks));
    let orders = case::build_orders(&inputs);
    let lists = lists(&orders);
    let events = orders.all().len() as u64 + 2 * inputs.shape().messages();
    let summary = simulate(&inputs, Plan::Fixed(orders)).expect("the orders run").summary;
    let peaks: Vec<u64> = summary.ranks.iter().map(|rank| rank.peak.bytes.get()).collect();
    let step = json!({
        "ranks": ranks,
        "micro_batches": micro_batches,
        "chunks": chunks,
        "events": events,
        "makespan_ns": summary.makespan.as_nanos(),
        "peak_bytes": peaks,
        "stages": stages(&inputs),
        "orders": lists,
    });
    println!("{step}");
}

/// By rank: its operations in order.
fn lists(orders: &Orders) -> Vec<Vec<String>> {
    let list = |rank| orders.rank(Rank(rank)).iter().map(ToString::to_string).collect();
    (0..orders.ranks() as u16).map(list).collect()
}

/// By stage: its rank, and what its forwards and backwards cost.
fn stages(inputs: &Inputs) -> Vec<Value> {
    let operation = |duration: Duration, saved: Bytes, message: Message| {
        json!({
            "duration_ns": duration.as_nanos(),
            "saved_bytes": saved.get(),
            "message_ns": message.time.as_nanos(),
            "message_bytes": message.bytes.get(),
        })
    };
    let stage = |(stage, cost): (Stage, &StageCost)| {
        json!({
            "rank": inputs.shape().rank_of(stage).0,
            "F": operation(cost.forward, cost.saved, cost.activation),
            "B": operation(cost.backward, cost.saved, cost.gradient),
        })
    };
    (0..).map(Stage).zip(&inputs.costs().stages).map(stage).collect()
}

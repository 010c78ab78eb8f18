//! Questions that people with pipelines ask in public, answered by scenarios.

use pipestep::scenario::{no_files, parse};
use pipestep::step::{Summary, summary};

/// What a rank keeps of one micro-batch, in bytes; divides by every number of chunks used here.
const SAVED: u64 = 10_000_000;

/// The step of equal stages and free transfers.
fn simulate(schedule: &str, ranks: u64, micro_batches: u64, chunks: u64) -> Summary {
    let text = format!(
        "[pipeline]\nranks = {ranks}\nmicro_batches = {micro_batches}\nschedule = \"{schedule}\"\n\
         chunks = {chunks}\n[time]\nforward = \"10 ms\"\nbackward = \"20 ms\"\n\
         [memory]\nsaved_per_micro_batch = \"{SAVED} B\"\n"
    );
    let scenario = parse(&text, "question", &[], &no_files).unwrap_or_else(|errors| panic!("{errors}"));
    let step = scenario.step.expect("it has a pipeline");
    summary(&step.inputs, step.plan().expect("the shape is legal")).expect("it runs")
}

/// Each rank's peak, in bytes.
fn peaks(summary: &Summary) -> Vec<u64> {
    summary.ranks.iter().map(|rank| rank.peak.bytes.get()).collect()
}

/// Eight equal stages, and the first device holds far more than the last: a bug? No, 1F1B.
#[test]
fn the_first_rank_of_eight_holds_eight_micro_batches_and_the_last_one() {
    let expected: Vec<u64> = (1..=8).rev().map(|count| count * SAVED).collect();
    assert_eq!(peaks(&simulate("1f1b", 8, 32, 1)), expected);
}

/// Memory grows with gradient accumulation: up to as many micro-batches as ranks, and not beyond.
#[test]
fn the_peak_rises_until_there_are_as_many_micro_batches_as_ranks() {
    for micro_batches in 1..=24 {
        let highest = peaks(&simulate("1f1b", 8, micro_batches, 1))[0];
        assert_eq!(highest, micro_batches.min(8) * SAVED, "{micro_batches} micro-batches");
    }
}

/// Out of memory with 5 chunks, and it fits with 10: a rank holds ((v-1)p + 2(p-1) + 1)/v micro-batches.
#[test]
fn more_chunks_make_interleavings_peak_smaller() {
    for (chunks, tenths) in [(5, 46), (10, 43)] {
        let highest = peaks(&simulate("interleaved", 4, 16, chunks))[0];
        assert_eq!(10 * highest, tenths * SAVED, "{chunks} chunks");
        assert_eq!(highest * chunks, ((chunks - 1) * 4 + 2 * 3 + 1) * SAVED);
    }
}

/// Fewer micro-batches than ranks, and numbers that ranks do not divide, are legal.
#[test]
fn interleaving_takes_3_and_10_micro_batches_over_4_ranks() {
    for micro_batches in [3, 10] {
        let summary = simulate("interleaved", 4, micro_batches, 2);
        let busy = micro_batches * 30_000_000;
        assert!(summary.ranks.iter().all(|rank| rank.busy.as_nanos() == busy), "{micro_batches}");
    }
    assert!(simulate("1f1b", 4, 1, 1).makespan.as_nanos() == 4 * 30_000_000);
}

/// Which batch is the first that fills the pipeline? None does; the bubble is (p-1)/(m+p-1).
#[test]
fn the_bubble_shrinks_with_micro_batches_as_the_textbook_says() {
    for micro_batches in [1, 4, 12, 64, 256] {
        let summary = simulate("1f1b", 4, micro_batches, 1);
        let expected = 3.0 / (micro_batches as f64 + 3.0);
        assert!((summary.bubble().by_makespan - expected).abs() < 1e-12, "{micro_batches}");
    }
}

//! Whether this machine has room for a step: a refusal beforehand is better than being killed half-way.
//!
//! What a step needs is a rough figure from measurements; what is free is what Linux says. Where that cannot be
//! read nothing is refused.

use std::fs;

use anyhow::{Result, bail};
use pipestep_schedule::Shape;

use crate::simulated::Keep;

/// Bytes for each stage and micro-batch: measured, with a margin for schedules that split the backward.
const SUMMARY: u64 = 180;
const EVERYTHING: u64 = 1_000;

/// Refuses a step that would not fit into the memory that is free.
///
/// # Errors
/// What it needs, what there is, and what to do.
pub(crate) fn check(shape: &Shape, keep: Keep) -> Result<()> {
    let pieces = shape.stages() as u64 * shape.micro_batches() as u64;
    let needed = pieces.saturating_mul(match keep {
        Keep::Summary => SUMMARY,
        Keep::Everything => EVERYTHING,
    });
    match free() {
        Some(free) if needed > free => {
            let gigabytes = |bytes: u64| bytes as f64 / 1e9;
            let advice = match keep {
                Keep::Summary => "take fewer micro-batches",
                Keep::Everything => "take fewer micro-batches, or only the table and `--json`",
            };
            bail!(
                "{pieces} stages x micro-batches need about {:.1} GB of memory, and {:.1} GB are free; {advice}",
                gigabytes(needed),
                gigabytes(free)
            )
        }
        _ => Ok(()),
    }
}

/// Bytes that can still be taken: what the machine has left, or the control group if that is less.
fn free() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = number(line.trim_end_matches("kB"))?.saturating_mul(1024);
    let read = |name: &str| number(&fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?);
    // `max` where there is no limit, which is no number.
    let group = read("memory.max").zip(read("memory.current"));
    let group = group.map_or(u64::MAX, |(limit, used)| limit.saturating_sub(used));
    Some(machine.min(group))
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

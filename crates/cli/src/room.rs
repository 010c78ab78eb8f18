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
    check_against(shape, keep, free().unwrap_or(u64::MAX))
}

fn check_against(shape: &Shape, keep: Keep, free: u64) -> Result<()> {
    let pieces = shape.stages() as u64 * shape.micro_batches() as u64;
    let (each, advice) = match keep {
        Keep::Summary => (SUMMARY, "take fewer micro-batches"),
        Keep::Everything => (EVERYTHING, "take fewer micro-batches, or only the table and `--json`"),
    };
    let needed = pieces.saturating_mul(each);
    if needed > free {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        bail!(
            "{pieces} stages x micro-batches need about {:.1} GB of memory, and {:.1} GB are free; {advice}",
            gigabytes(needed),
            gigabytes(free)
        );
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use pipestep_schedule::Placement;

    use super::*;

    #[test]
    fn what_has_no_room_is_refused_with_numbers() {
        let shape = Shape::new(4, 1, 30_000_000, Placement::Loop).unwrap();
        let refused = |keep, free| check_against(&shape, keep, free).map_err(|error| error.to_string());
        assert_eq!(refused(Keep::Summary, 22_000_000_000), Ok(()));
        let expected = "120000000 stages x micro-batches need about 21.6 GB of memory, and 8.0 GB are free; \
                        take fewer micro-batches";
        assert_eq!(refused(Keep::Summary, 8_000_000_000), Err(expected.to_owned()));
        assert!(
            refused(Keep::Everything, 22_000_000_000)
                .unwrap_err()
                .ends_with("or only the table and `--json`")
        );
    }

    #[test]
    fn a_small_step_has_room_here() {
        let shape = Shape::new(4, 1, 8, Placement::Loop).unwrap();
        assert!(check(&shape, Keep::Everything).is_ok());
    }
}

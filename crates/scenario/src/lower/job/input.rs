//! `[input]`: what feeds the steps of a job.

use pipestep_engine::{Duration, Time};
use pipestep_job::{Input, InputCache, InputRead, ReadFrom, WorkerStop};

use super::{Broken, spread};
use crate::format::File;
use crate::format::input as written;
use crate::read::{Count, Key};

/// The input of a file. The length of a step is put in when it is known.
pub(super) fn lower(file: &File) -> Result<Option<Input>, Broken> {
    let Some((written, _)) = file.input.given()? else {
        return Ok(None);
    };
    let stops = match &written.stops {
        Key::Absent => Vec::new(),
        Key::Broken => return Err(Broken),
        Key::Given(stops, _) => stops.iter().map(stop).collect::<Result<_, _>>()?,
    };
    Ok(Some(Input {
        step: Duration::ZERO,
        items_per_step: written.items_per_step.get().ok_or(Broken)?.0,
        workers: written.workers.get().ok_or(Broken)?.0,
        make: spread(written.make.get().ok_or(Broken)?)?,
        delivery: written.delivery.or(Count(1)).ok_or(Broken)?.0,
        prefetch: *written.prefetch.get().ok_or(Broken)?,
        read: read(&written.read)?,
        stops,
    }))
}

fn read(key: &Key<written::Read>) -> Result<Option<InputRead>, Broken> {
    let Some((written, _)) = key.given()? else {
        return Ok(None);
    };
    let from = match &written.bandwidth {
        Key::Absent => ReadFrom::Storage,
        Key::Broken => return Err(Broken),
        Key::Given(rate, _) => ReadFrom::Rate(*rate),
    };
    let cache = match &written.cache {
        Key::Absent => None,
        Key::Broken => return Err(Broken),
        Key::Given(cache, _) => Some(InputCache {
            epoch_items: cache.epoch_items.get().ok_or(Broken)?.0,
            rate: *cache.bandwidth.get().ok_or(Broken)?,
        }),
    };
    Ok(Some(InputRead { bytes: *written.bytes.get().ok_or(Broken)?, from, cache }))
}

fn stop(written: &written::Stop) -> Result<WorkerStop, Broken> {
    let instant = |at: Duration| Time::from_nanos(at.as_nanos());
    Ok(WorkerStop {
        from: instant(*written.from.get().ok_or(Broken)?),
        to: match &written.to {
            Key::Absent => Time::MAX,
            Key::Broken => return Err(Broken),
            Key::Given(to, _) => instant(*to),
        },
        workers: written.workers.or(Count(1)).ok_or(Broken)?.0,
    })
}

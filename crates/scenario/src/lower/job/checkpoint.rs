//! `[checkpoint]`: when a job saves, how, and how long that takes.

use pipestep_engine::{Bytes, Duration};
use pipestep_job::{
    Backlog, Checkpoint, Mode, NearTier, Recovery, Requests, Spread, Storage, Trigger, Write,
};
use pipestep_model::{OPTIMIZER_BYTES, WEIGHT_BYTES};

use super::faults::recovery;
use super::{Broken, spread};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::File;
use crate::format::job::{self as written, BacklogWord, BufferPlace, Counted, SaveMode, TriggerWord};
use crate::job::SaveSteps;
use crate::lower::Models;
use crate::read::{Count, Key, Problems, Word};
use crate::units::Share;

/// The checkpoints of a file, and their interval if it is counted in steps.
pub(super) fn lower(
    file: &File,
    models: &Models,
    storage: Option<Storage>,
    problems: &mut Problems,
) -> Result<Option<(Checkpoint, Option<SaveSteps>)>, Broken> {
    let Some((written, span)) = file.checkpoint.given()? else {
        return Ok(None);
    };
    let mode = mode(written, problems);
    check_device(file, written, problems)?;
    let size = size(models, written, span, problems);
    let write = write(written, span, storage, problems);
    let requests = requests(written, problems);
    let near = near(file, written, storage, problems);
    let commit_delay = written.commit_delay.or(Duration::ZERO).ok_or(Broken)?;
    let (requests, save_steps) = requests?;
    let checkpoint =
        Checkpoint { mode: mode?, size: size?, write: write?, requests, commit_delay, near: near? };
    Ok(Some((checkpoint, save_steps)))
}

/// Buffers on the device are part of a step, if there is one.
fn check_device(file: &File, written: &written::Checkpoint, problems: &mut Problems) -> Result<(), Broken> {
    match &written.buffers_on {
        Key::Broken => Err(Broken),
        Key::Given(Word(BufferPlace::Device), span) if file.pipeline.is_absent() => {
            let message = "`checkpoint.buffers_on`: buffers on the device enter the memory of a step, and there is \
                           no `[pipeline]`";
            problems
                .push(Diagnostic::new(*span, message).help("leave out `buffers_on`, or write `[pipeline]`"));
            Err(Broken)
        }
        Key::Absent | Key::Given(..) => Ok(()),
    }
}

fn mode(written: &written::Checkpoint, problems: &mut Problems) -> Result<Mode, Broken> {
    let mode = written.mode.or(Word(SaveMode::Async)).ok_or(Broken)?.0;
    let only_async = [
        ("staging", written.staging.span()),
        ("backlog", written.backlog.span()),
        ("buffers", written.buffers.span()),
        ("buffer_size", written.buffer_size.span()),
        ("buffers_on", written.buffers_on.span()),
    ];
    if mode == SaveMode::Sync {
        let mut given = only_async.into_iter().filter_map(|(name, span)| Some((name, span?))).peekable();
        if given.peek().is_none() {
            return Ok(Mode::Sync);
        }
        for (name, span) in given {
            let message = format!("`checkpoint.{name}`: a synchronous save has no snapshot in a buffer");
            let problem = Diagnostic::new(span, message).related(written.mode.span(), "synchronous");
            problems.push(problem.help(format!("leave out `{name}`, or write `mode = \"async\"`")));
        }
        return Err(Broken);
    }
    let backlog = written.backlog.or(Word(BacklogWord::Block)).ok_or(Broken)?.0;
    let buffers = written.buffers.or(Count(2)).ok_or(Broken)?.0;
    if let (BacklogWord::Queue, Some(span)) = (backlog, written.buffers.span()) {
        let message = "`checkpoint.buffers`: with `backlog = \"queue\"` there are as many as it takes";
        let problem = Diagnostic::new(span, message).related(written.backlog.span(), "the queue");
        problems.push(problem.help("leave out `buffers`, or choose `block`, `skip` or `replace`"));
        return Err(Broken);
    }
    if written.buffer_size.is_broken() {
        return Err(Broken);
    }
    Ok(Mode::Async {
        staging: written.staging.or(Duration::ZERO).ok_or(Broken)?,
        backlog: match backlog {
            BacklogWord::Block => Backlog::Block { buffers },
            BacklogWord::Queue => Backlog::Queue,
            BacklogWord::Skip => Backlog::Skip { buffers },
            BacklogWord::Replace => Backlog::Replace { buffers },
        },
        buffer: written.buffer_size.get().copied(),
    })
}

/// The size of a checkpoint: as written, or by the parameters of the model.
fn size(
    models: &Models,
    written: &written::Checkpoint,
    span: Span,
    problems: &mut Problems,
) -> Result<Option<Bytes>, Broken> {
    match &written.size {
        Key::Given(size, _) => return Ok(Some(*size)),
        Key::Broken => return Err(Broken),
        Key::Absent => {}
    }
    let Some(decoder) = models.decoder? else {
        return Ok(None);
    };
    let size = decoder.parameters().ok();
    let size = size.and_then(|count| count.checked_mul(WEIGHT_BYTES + OPTIMIZER_BYTES));
    if size.is_none() {
        problems.push(Diagnostic::new(span, "`[checkpoint]`: the model's size exceeds 64 bits"));
        return Err(Broken);
    }
    Ok(size.map(Bytes::new))
}

fn write(
    written: &written::Checkpoint,
    span: Span,
    storage: Option<Storage>,
    problems: &mut Problems,
) -> Result<Write, Broken> {
    match (&written.bandwidth, &written.write_time) {
        (Key::Broken, _) | (_, Key::Broken) => Err(Broken),
        (Key::Given(_, rate_at), Key::Given(_, time_at)) => {
            let message = "`checkpoint.write_time` and `checkpoint.bandwidth` say the same twice";
            let problem = Diagnostic::new(*time_at, message).related(Some(*rate_at), "the bandwidth");
            problems.push(problem.help("leave one of them out"));
            Err(Broken)
        }
        (Key::Absent, Key::Given(time, _)) => spread(time).map(Write::Time),
        (Key::Given(rate, _), Key::Absent) => Ok(Write::Rate(*rate)),
        (Key::Absent, Key::Absent) => storage.map(|_| Write::Storage).ok_or_else(|| {
            let message = "`[checkpoint]` needs `bandwidth` or `write_time`";
            problems.push(Diagnostic::new(span, message).help("write `bandwidth = \"7 GB/s\"`"));
            Broken
        }),
    }
}

/// When saves are asked for. What is counted in steps gets its times later.
fn requests(
    written: &written::Checkpoint,
    problems: &mut Problems,
) -> Result<(Requests, Option<SaveSteps>), Broken> {
    let word = written.trigger.or(Word(TriggerWord::Wall)).ok_or(Broken)?.0;
    let (trigger, in_steps) = match word {
        TriggerWord::Wall => (Trigger::Wall, false),
        TriggerWord::WallSinceResume => (Trigger::WallSinceResume, false),
        TriggerWord::Work => (Trigger::Work, false),
        TriggerWord::Steps => (Trigger::Work, true),
    };
    let trigger_at = written.trigger.span();
    let every = counted(&written.every, "every", "20 s", in_steps, trigger_at, problems);
    let first = counted(&written.first, "first", "20 s", in_steps, trigger_at, problems);
    if written.count.is_broken() {
        return Err(Broken);
    }
    let count = written.count.get().map(|count| count.0);
    let every = every?.ok_or(Broken)?;
    let (mut saves, mut between, mut start) = (None, Spread::Fixed(Duration::ZERO), None);
    match every {
        Counted::Amount(chance) => between = spread(chance)?,
        Counted::Steps(every) => saves = Some(SaveSteps { first: None, every: *every }),
    }
    match first? {
        None => {}
        Some(Counted::Amount(first)) => start = Some(*first),
        Some(Counted::Steps(first)) => saves = saves.map(|saves| SaveSteps { first: Some(*first), ..saves }),
    }
    Ok((Requests { trigger, first: start, every: between, count }, saves))
}

/// A number of steps where the trigger counts them, an amount elsewhere.
fn counted<'k, T>(
    key: &'k Key<Counted<T>>,
    name: &str,
    example: &str,
    in_steps: bool,
    trigger_at: Option<Span>,
    problems: &mut Problems,
) -> Result<Option<&'k Counted<T>>, Broken> {
    let Some((value, span)) = key.given()? else {
        return Ok(None);
    };
    let problem = match (value, in_steps) {
        (Counted::Amount(_), false) | (Counted::Steps(_), true) => return Ok(Some(value)),
        (Counted::Steps(count), false) => {
            let message =
                format!("`checkpoint.{name}`: expected a time with a unit, found the bare number `{count}`");
            Diagnostic::new(span, message)
                .help(format!("write `\"{example}\"`, or count in steps with `trigger = \"steps\"`"))
        }
        (Counted::Amount(_), true) => {
            let message = format!("`checkpoint.{name}`: expected a whole number of steps, found a time");
            Diagnostic::new(span, message)
                .related(trigger_at, "counts steps")
                .help(format!("write `{name} = 100`, or another `trigger`"))
        }
    };
    problems.push(problem);
    Err(Broken)
}

fn near(
    file: &File,
    written: &written::Checkpoint,
    storage: Option<Storage>,
    problems: &mut Problems,
) -> Result<Option<NearTier>, Broken> {
    let Some((near, span)) = written.near.given()? else {
        return Ok(None);
    };
    let is_sync = written.mode.get().is_some_and(|mode| mode.0 == SaveMode::Sync);
    if is_sync && near.write.is_absent() {
        let message = "`[checkpoint.near]` needs `write`: how long a synchronous save to it takes";
        problems.push(Diagnostic::new(span, message).help("write `write = \"2 s\"`"));
        return Err(Broken);
    }
    if let (false, Some(write_at)) = (is_sync, near.write.span()) {
        let message = "`checkpoint.near.write`: an asynchronous save to the near place takes `staging`";
        let problem = Diagnostic::new(write_at, message);
        problems.push(problem.help("leave out `write`, or write `mode = \"sync\"`"));
        return Err(Broken);
    }
    let survives = near.survives.or(Share { numerator: 1, denominator: 1 }).ok_or(Broken)?;
    let same = match file.faults.get().map(|faults| &faults.recovery) {
        None => Recovery::Fixed(Spread::ZERO),
        Some(key) => recovery(key, "faults.recovery", storage, &mut Problems::new())?,
    };
    Ok(Some(NearTier {
        write: near.write.or(Duration::ZERO).ok_or(Broken)?,
        far_every: near.far_every.get().ok_or(Broken)?.0,
        survives: survives.as_f64(),
        recovery: match &near.recovery {
            Key::Absent => same,
            key => recovery(key, "checkpoint.near.recovery", storage, problems)?,
        },
    }))
}

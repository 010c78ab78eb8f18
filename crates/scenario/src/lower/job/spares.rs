//! `[faults.spares]`: machines in reserve, and what the job does without.

use pipestep_engine::Duration;
use pipestep_job::{Shrink, Spares, WhenOut};

use super::{Broken, spread};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::File;
use crate::format::job::{self as written, WhenOutWord};
use crate::read::{Count, Key, Problems, Word};

/// The spares of a file.
pub(super) fn lower(
    file: &File,
    key: &Key<written::Spares>,
    problems: &mut Problems,
) -> Result<Option<Spares>, Broken> {
    let Some((written, span)) = key.given()? else {
        return Ok(None);
    };
    let when_out = when_out(file, written, span, problems);
    let count = *written.count.get().ok_or(Broken)?;
    let repair = spread(written.repair.get().ok_or(Broken)?)?;
    Ok(Some(Spares { count, repair, when_out: when_out? }))
}

fn when_out(
    file: &File,
    written: &written::Spares,
    whole: Span,
    problems: &mut Problems,
) -> Result<WhenOut, Broken> {
    if written.when_out.or(Word(WhenOutWord::Wait)).ok_or(Broken)?.0 == WhenOutWord::Wait {
        // How it would shrink may stay written, so that both can be tried.
        return Ok(WhenOut::Wait);
    }
    let replicas = replicas(file, written, whole, problems);
    Ok(WhenOut::Shrink(Shrink {
        least: written.min_replicas.or(Count(1)).ok_or(Broken)?.0,
        machines: written.machines_per_replica.or(Count(1)).ok_or(Broken)?.0,
        regroup: written.regroup.or(Duration::ZERO).ok_or(Broken)?,
        replicas: replicas?,
    }))
}

/// How many replicas there are: as written here, or as the tables say that have told already.
fn replicas(
    file: &File,
    written: &written::Spares,
    whole: Span,
    problems: &mut Problems,
) -> Result<u32, Broken> {
    let stragglers = file.stragglers.get().map(|stragglers| &stragglers.ranks);
    let parallel = file.parallel.get().map(|parallel| &parallel.data);
    let mut told = [stragglers, parallel].into_iter().flatten().filter_map(|key| match key {
        Key::Given(count, span) => Some((count.0, *span)),
        Key::Absent | Key::Broken => None,
    });
    let told = told.next();
    match (&written.replicas, told) {
        (Key::Broken, _) => Err(Broken),
        (Key::Given(count, span), Some((other, other_at))) if count.0 != other => {
            let message = format!(
                "`faults.spares.replicas`: {} replicas here, and {other} data-parallel ranks there",
                count.0
            );
            let problem = Diagnostic::new(*span, message).related(Some(other_at), "the ranks");
            problems.push(problem.help("leave out `replicas`"));
            Err(Broken)
        }
        (Key::Given(count, _), _) => Ok(count.0),
        (Key::Absent, Some((other, _))) => Ok(other),
        (Key::Absent, None) => {
            let message = "`faults.spares.when_out`: nothing says how many replicas the job has";
            let at = written.when_out.span().unwrap_or(whole);
            problems.push(Diagnostic::new(at, message).help("write `replicas = 64`"));
            Err(Broken)
        }
    }
}

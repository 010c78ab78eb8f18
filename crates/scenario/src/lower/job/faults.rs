//! `[faults]`: what breaks, when, and how the job comes back.

use pipestep_engine::{Duration, Time};
use pipestep_job::{Cause, FailurePreset, FaultSource, Faults, Recovery, Spread, Storage};

use super::{Broken, between, spares, spread, spread_or};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::File;
use crate::format::job::{self as written, RecoveryTime};
use crate::read::{Count, Key, Problems};
use crate::units::Share;

/// The faults of a file.
pub(super) fn lower(
    file: &File,
    storage: Option<Storage>,
    problems: &mut Problems,
) -> Result<Faults, Broken> {
    let Some((written, span)) = file.faults.given()? else {
        return Ok(Faults::none());
    };
    let at = match &written.at {
        Key::Absent => Vec::new(),
        Key::Broken => return Err(Broken),
        Key::Given(at, _) => at.iter().map(|at| Time::from_nanos(at.as_nanos())).collect(),
    };
    let sources = sources(written, span, problems);
    let recovery = recovery(&written.recovery, "faults.recovery", storage, problems);
    let spares = spares::lower(file, &written.spares, problems);
    Ok(Faults {
        at,
        detection: written.detection.or(Duration::ZERO).ok_or(Broken)?,
        downtime: spread_or(&written.downtime, Spread::ZERO)?,
        recovery_can_fail: written.recovery_can_fail.or(false).ok_or(Broken)?,
        spares: spares?,
        sources: sources?,
        recovery: recovery?,
    })
}

/// How long it takes to come back.
pub(super) fn recovery(
    key: &Key<RecoveryTime>,
    path: &str,
    storage: Option<Storage>,
    problems: &mut Problems,
) -> Result<Recovery, Broken> {
    let Some((time, span)) = key.given()? else {
        return Ok(Recovery::Fixed(Spread::ZERO));
    };
    let read = match time {
        RecoveryTime::Takes(chance) => return spread(chance).map(Recovery::Fixed),
        RecoveryTime::Reads(read) => read,
    };
    if read.bandwidth.is_broken() {
        return Err(Broken);
    }
    let restart = read.restart.or(Duration::ZERO).ok_or(Broken)?;
    match (read.bandwidth.get().copied(), storage) {
        (Some(bandwidth), _) => Ok(Recovery::Read { bandwidth, restart }),
        (None, Some(_)) => Ok(Recovery::Storage { restart }),
        (None, None) => {
            let message = format!("`{path}`: nothing says how fast a checkpoint is read");
            let help = "write `bandwidth = \"15 GB/s\"` here, or `[storage]`";
            problems.push(Diagnostic::new(span, message).help(help));
            Err(Broken)
        }
    }
}

/// The random sources: those of the whole job, those of single devices, and further ones.
fn sources(
    written: &written::Faults,
    whole: Span,
    problems: &mut Problems,
) -> Result<Vec<FaultSource>, Broken> {
    let preset = match &written.preset {
        Key::Broken => return Err(Broken),
        key => key.get().map(|preset| preset.0),
    };
    let of_job = match &written.mtbf {
        Key::Absent => None,
        Key::Broken => return Err(Broken),
        Key::Given(mtbf, _) => Some(FaultSource::single("job", between(mtbf)?, 1, true)),
    };
    let mut of_devices = devices(written, preset, of_job.is_some(), whole, problems)?;
    let mut of_job = of_job;
    if let Some(preset) = preset
        && let Some(source) = of_devices.as_mut().or(of_job.as_mut())
    {
        source.causes = preset.causes();
    }
    let mut sources: Vec<FaultSource> = of_job.into_iter().chain(of_devices).collect();
    match &written.sources {
        Key::Absent => {}
        Key::Broken => return Err(Broken),
        Key::Given(further, span) => {
            for source in further {
                let source = source_of(source)?;
                if sources.iter().any(|other| other.name == source.name) {
                    // Each source draws from the stream of its name.
                    let message = format!("`faults.sources`: two sources are called `{}`", source.name);
                    problems.push(Diagnostic::new(*span, message).help("give each its own `name`"));
                    return Err(Broken);
                }
                sources.push(source);
            }
        }
    }
    Ok(sources)
}

/// The failures of single devices, as written or as a preset says.
fn devices(
    written: &written::Faults,
    preset: Option<&FailurePreset>,
    has_job: bool,
    whole: Span,
    problems: &mut Problems,
) -> Result<Option<FaultSource>, Broken> {
    if written.devices.is_broken() {
        return Err(Broken);
    }
    let count = written.devices.get().map(|count| count.0).or(preset.map(|preset| preset.devices));
    let (between, span) = match (&written.device_mtbf, preset) {
        (Key::Broken, _) => return Err(Broken),
        (Key::Given(mtbf, span), _) => (between(mtbf)?, *span),
        (Key::Absent, Some(preset)) if !has_job => {
            let nanos = (preset.device_mtbf_seconds() * 1e9).round();
            (Spread::Exponential { mean: Duration::from_nanos(nanos as u64) }, whole)
        }
        (Key::Absent, _) => {
            if let Some(span) = written.devices.span() {
                let message = "`faults.devices`: nothing says how often a device fails";
                problems.push(Diagnostic::new(span, message).help("write `device_mtbf = \"337 d\"`"));
                return Err(Broken);
            }
            return Ok(None);
        }
    };
    let Some(count) = count else {
        let message = "`faults.device_mtbf` needs `devices`: how many there are";
        problems.push(Diagnostic::new(span, message).help("write `devices = 1024`"));
        return Err(Broken);
    };
    Ok(Some(FaultSource::single("device", between, count, true)))
}

fn source_of(written: &written::Source) -> Result<FaultSource, Broken> {
    let name = written.name.get().ok_or(Broken)?;
    let mtbf = between(written.mtbf.get().ok_or(Broken)?)?;
    let loses_machine = written.loses_machine.or(false).ok_or(Broken)?;
    let near_survives = share(&written.near_survives)?;
    let downtime = downtime(&written.downtime)?;
    let own = Cause { name: name.clone(), weight: 1, near_survives, loses_machine, downtime };
    let causes = match &written.causes {
        Key::Absent => vec![own],
        Key::Broken => return Err(Broken),
        Key::Given(causes, _) => {
            causes.iter().map(|cause| cause_of(cause, &own)).collect::<Result<_, _>>()?
        }
    };
    let devices = written.devices.or(Count(1)).ok_or(Broken)?.0;
    Ok(FaultSource { name: name.clone(), between: mtbf, devices, causes })
}

/// A cause; what it does not say is as its source says.
fn cause_of(written: &written::Cause, source: &Cause) -> Result<Cause, Broken> {
    Ok(Cause {
        name: written.name.get().ok_or(Broken)?.clone(),
        weight: written.weight.or(Count(1)).ok_or(Broken)?.0,
        near_survives: share(&written.near_survives)?.or(source.near_survives),
        loses_machine: written.loses_machine.or(source.loses_machine).ok_or(Broken)?,
        downtime: downtime(&written.downtime)?.or(source.downtime),
    })
}

fn share(key: &Key<Share>) -> Result<Option<f64>, Broken> {
    if key.is_broken() { Err(Broken) } else { Ok(key.get().map(|share| share.as_f64())) }
}

fn downtime(key: &Key<crate::chance::Chance<written::JobTime>>) -> Result<Option<Spread>, Broken> {
    match key {
        Key::Absent => Ok(None),
        Key::Broken => Err(Broken),
        Key::Given(chance, _) => spread(chance).map(Some),
    }
}

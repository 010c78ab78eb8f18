//! `[input]`: what feeds the steps of a job.

use pipestep_engine::{Bytes, Duration, Time};
use pipestep_job::{
    DeviceCopy, Input, InputCache, InputRead, Packing, ReadFrom, Rest, Sample, Samples, TokenLengths,
    WorkerStop,
};

use super::{Broken, spread};
use crate::chance::{Chance, Shape};
use crate::diagnostic::Diagnostic;
use crate::format::File;
use crate::format::input::{self as written, SampleLengths, SampleTokens, WrittenSample};
use crate::read::{Count, Key, Problems};

/// The input of a file. The length of a step is put in when it is known.
pub(super) fn lower(file: &File, problems: &mut Problems) -> Result<Option<Input>, Broken> {
    let Some((written, _)) = file.input.given()? else {
        return Ok(None);
    };
    let read = read(written, problems);
    let copy = copy(&written.copy, problems);
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
        read: read?,
        readers: readers(&written.readers)?,
        packing: packing(&written.packing)?,
        copy: copy?,
        stops,
    }))
}

fn read(input: &written::Input, problems: &mut Problems) -> Result<Option<InputRead>, Broken> {
    let Some((written, span)) = input.read.given()? else {
        return Ok(None);
    };
    if matches!((&written.bytes, &input.packing), (Key::Absent, Key::Absent)) {
        let problem = Diagnostic::new(span, "`[input.read]` needs `bytes` where nothing is packed");
        problems.push(problem.help("write the bytes of a delivery, such as `bytes = \"4 MB\"`"));
        return Err(Broken);
    }
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
    Ok(Some(InputRead { bytes: written.bytes.or(Bytes::ZERO).ok_or(Broken)?, from, cache }))
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

fn readers(key: &Key<Count>) -> Result<Option<u32>, Broken> {
    if key.is_broken() { Err(Broken) } else { Ok(key.get().map(|count| count.0)) }
}

fn packing(key: &Key<written::Packing>) -> Result<Option<Packing>, Broken> {
    let Some((written, _)) = key.given()? else {
        return Ok(None);
    };
    let stored = written.bytes_per_token.or(Bytes::ZERO).ok_or(Broken)?;
    let cpu = written.cpu_per_sample.or(Duration::ZERO).ok_or(Broken)?;
    let split = written.split.or(false).ok_or(Broken)?;
    Ok(Some(Packing {
        tokens: written.tokens.get().ok_or(Broken)?.0,
        samples: match written.samples.get().ok_or(Broken)? {
            SampleLengths::Listed(samples) => {
                let listed = samples.iter().map(|sample| listed(sample, stored, cpu));
                Samples::Listed(listed.collect::<Result<_, _>>()?)
            }
            SampleLengths::Drawn(chance) => drawn(chance, stored, cpu)?,
        },
        rest: if split { Rest::Split } else { Rest::Padded },
    }))
}

/// A sample of a list; what it does not say is as the packing says.
fn listed(written: &WrittenSample, stored: Bytes, cpu: Duration) -> Result<Sample, Broken> {
    let tokens = written.tokens().ok_or(Broken)?;
    let stored = Bytes::new(stored.get().saturating_mul(tokens));
    let Some(full) = written.full() else { return Ok(Sample { tokens, stored, cpu }) };
    Ok(Sample { tokens, stored: full.stored.or(stored).ok_or(Broken)?, cpu: full.cpu.or(cpu).ok_or(Broken)? })
}

fn drawn(chance: &Chance<SampleTokens>, stored: Bytes, cpu: Duration) -> Result<Samples, Broken> {
    let lengths = match chance.shape {
        Shape::Fixed(tokens) => {
            let stored = Bytes::new(stored.get().saturating_mul(tokens));
            return Ok(Samples::Listed(vec![Sample { tokens, stored, cpu }]));
        }
        Shape::Exponential { mean } => TokenLengths::Exponential { mean: mean as f64 },
        Shape::LognormalMean { mean, variation } => TokenLengths::Lognormal { mean: mean as f64, variation },
        Shape::LognormalMedian { median, sigma } => {
            let square = sigma * sigma;
            let mean = median as f64 * (square / 2.0).exp();
            TokenLengths::Lognormal { mean, variation: square.exp_m1().sqrt() }
        }
        Shape::Normal { mean, deviation } => {
            TokenLengths::Normal { mean: mean as f64, deviation: deviation as f64 }
        }
        Shape::Uniform { low, high } => TokenLengths::Uniform { low, high },
        // The families of `SampleTokens` are those above.
        Shape::Weibull { .. } | Shape::Pareto { .. } | Shape::Empirical(_) | Shape::List(_) => {
            return Err(Broken);
        }
    };
    Ok(Samples::Drawn { lengths, stored, cpu })
}

/// The copy to the device: a time, or bytes at a rate.
fn copy(key: &Key<written::DeviceCopy>, problems: &mut Problems) -> Result<Option<DeviceCopy>, Broken> {
    let Some((written, span)) = key.given()? else {
        return Ok(None);
    };
    if written.time.is_broken() || written.bytes.is_broken() || written.bandwidth.is_broken() {
        return Err(Broken);
    }
    let slots = written.slots.or(Count(2)).ok_or(Broken)?.0;
    let of_rate = written.bytes.get().zip(written.bandwidth.get());
    let stray = written.bytes.span().or(written.bandwidth.span());
    let time = match (written.time.get().copied(), of_rate, stray) {
        (Some(time), _, None) => Ok(time),
        (None, Some((&bytes, &rate)), _) => rate
            .time_for(bytes)
            .map_err(|overflow| Diagnostic::new(span, format!("`[input.copy]`: {overflow}"))),
        (Some(_), _, Some(stray)) => {
            let message = "`[input.copy]` gives its time twice";
            let problem = Diagnostic::new(stray, message).related(written.time.span(), "the time");
            Err(problem.help("leave out `time`, or `bytes` and `bandwidth`"))
        }
        (None, None, _) => {
            let message = "`[input.copy]` needs `time`, or `bytes` and `bandwidth`";
            Err(Diagnostic::new(span, message).help("write `time = \"20 ms\"`"))
        }
    };
    match time {
        Ok(time) => Ok(Some(DeviceCopy { time, slots })),
        Err(problem) => {
            problems.push(problem);
            Err(Broken)
        }
    }
}

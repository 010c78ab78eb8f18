//! What repeats is passed over, and nothing is lost by it: every job comes to the same as when each of its steps and
//! deliveries is followed.

use pipestep_engine::{Bytes, Duration, Rate, Time};
use pipestep_job::{
    Backlog, Detail, DeviceCopy, Input, InputCache, InputRead, JobInputs, Mode, Packing, Ranks, Ratio,
    ReadFrom, Recovery, Response, Rest, Sample, Samples, Shrink, SlowDetection, SlowRanks, Spares, Spread,
    Storage, WhenOut, WorkerStop, Write, simulate, simulate_every_step,
};
use proptest::prelude::*;

use crate::support::{adds_up, queued, seconds};

const fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

fn rate(bytes_a_nanosecond: u64) -> Rate {
    Rate::new(bytes_a_nanosecond, 1).unwrap()
}

/// Input of fixed lengths only.
fn any_input() -> impl Strategy<Value = Input> {
    let counts = (1_u32..5, 1_u32..5, 1_u32..4, 0_u32..12);
    let times = (1_u64..40, 0_u64..60);
    let read = proptest::option::of((0_u64..60, any::<bool>(), proptest::option::of((1_u64..200, 1_u64..9))));
    let stages = (
        proptest::option::of(1_u32..4),
        proptest::option::of((0_u64..30, 1_u32..4)),
        proptest::option::of((
            any::<bool>(),
            proptest::collection::vec((1_u64..20, 0_u64..30, 0_u64..20), 1..7),
        )),
    );
    let stops = proptest::collection::vec((0_u64..3_000, 0_u64..2_000, 1_u32..4), 0..3);
    (counts, times, read, stages, stops).prop_map(|(counts, (step, make), read, stages, stops)| {
        let (items_per_step, workers, delivery, extra) = counts;
        let (readers, copy, packing) = stages;
        let sample = |(tokens, stored, cpu): (u64, u64, u64)| Sample {
            tokens,
            stored: Bytes::new(stored),
            cpu: nanos(cpu),
        };
        let stop = |(from, length, stopped): (u64, u64, u32)| WorkerStop {
            from: Time::from_nanos(from),
            to: Time::from_nanos(from + length),
            workers: stopped.min(workers),
        };
        Input {
            step: nanos(step),
            items_per_step,
            workers,
            make: Spread::Fixed(nanos(make)),
            delivery,
            prefetch: items_per_step + extra,
            read: read.map(|(bytes, shared, cache)| InputRead {
                bytes: Bytes::new(bytes),
                from: if shared { ReadFrom::Storage } else { ReadFrom::Rate(rate(3)) },
                cache: cache.map(|(epoch_items, fast)| InputCache { epoch_items, rate: rate(fast) }),
            }),
            readers,
            packing: packing.map(|(split, samples)| Packing {
                tokens: 20,
                samples: Samples::Listed(samples.into_iter().map(sample).collect()),
                rest: if split { Rest::Split } else { Rest::Padded },
            }),
            copy: copy.map(|(time, slots)| DeviceCopy { time: nanos(time), slots }),
            stops: stops.into_iter().map(stop).collect(),
        }
    })
}

fn same(job: &JobInputs) {
    for detail in [Detail::Full, Detail::Summary] {
        let (mut skipped, mut followed) =
            match (simulate(job, 0, detail), simulate_every_step(job, 0, detail)) {
                (Ok(skipped), Ok(followed)) => (skipped, followed),
                (skipped, followed) => {
                    assert_eq!(skipped, followed);
                    return;
                }
            };
        adds_up(&skipped);
        // The curve of the buffer keeps means, which are rounded.
        let curves = [&mut skipped, &mut followed].map(|outcome| std::mem::take(&mut outcome.buffer_curve));
        assert_eq!(curves[0].len(), curves[1].len());
        for (one, other) in curves[0].iter().zip(&curves[1]) {
            assert_eq!((one.from, one.to), (other.from, other.to));
        }
        assert_eq!(skipped, followed);
    }
}

#[test]
fn months_of_steps_that_wait_the_same_way_are_counted_exactly() {
    // Four workers take 1.01 s for what a step of 1 s takes: every step but the first waits 10 ms.
    let step = seconds(1.0);
    let mut job = JobInputs::of_work(step.times(8_000_000).unwrap());
    job.input = Some(Input {
        step,
        items_per_step: 4,
        workers: 4,
        make: Spread::Fixed(seconds(1.01)),
        delivery: 1,
        prefetch: 4,
        read: None,
        readers: None,
        packing: None,
        copy: None,
        stops: Vec::new(),
    });
    let outcome = simulate(&job, 0, Detail::Full).unwrap();
    adds_up(&outcome);
    let input = outcome.input.unwrap();
    assert_eq!((input.steps, input.steps_waited), (8_000_000, 8_000_000));
    assert_eq!(outcome.lost.input_wait, seconds(1.01 + 7_999_999.0 * 0.01));
    assert_eq!(outcome.elapsed, seconds(8_000_000.0 + 1.01 + 79_999.99));
    // Every wait and every step is there, and takes no room.
    assert_eq!(outcome.timeline.len(), 16_000_000);
    assert!(outcome.buffer_curve.len() <= 2_048);
    let level = outcome.buffer_curve[1_000];
    assert_eq!((level.low, level.high), (0, 4));
}

#[test]
fn a_job_of_more_steps_and_deliveries_than_events_could_follow_ends() {
    // The textbook's 384 sequences a step from four workers at two a second, over a hundred million steps, saved and
    // interrupted now and then: every delivery by itself would be too many.
    let step = seconds(52.8);
    let mut job = JobInputs::of_work(step.times(100_000_000).unwrap());
    job.input = Some(Input {
        step,
        items_per_step: 384,
        workers: 4,
        make: Spread::Fixed(seconds(0.5)),
        delivery: 1,
        prefetch: 768,
        read: None,
        readers: None,
        packing: None,
        copy: None,
        stops: Vec::new(),
    });
    job.checkpoint = Some(queued(step.times(1_000_000).unwrap(), seconds(0.5), seconds(16.0)));
    job.faults.at =
        (1..20).map(|month| Time::from_nanos(seconds(2.5e8 * f64::from(month)).as_nanos())).collect();
    let outcome = simulate(&job, 0, Detail::Full).unwrap();
    adds_up(&outcome);
    assert_eq!(outcome.failures_counted, 19);
    // After each start the first step waits 48 s for its 384 sequences, and nobody ever waits again.
    let input = outcome.input.unwrap();
    assert_eq!((input.steps_waited, input.longest_wait), (20, seconds(48.0)));
    assert_eq!(outcome.lost.input_wait, seconds(20.0 * 48.0));
}

#[test]
fn a_step_cut_by_a_dropped_save_is_not_taken_for_the_next_ones() {
    // Steps of 22 ns, by 5/3 for want of replicas, are rounded once more where a request comes in between.
    let mut job = JobInputs::of_work(nanos(2_535));
    job.horizon = Some(Time::from_nanos(5_035));
    let mut checkpoint = queued(nanos(57), nanos(7), nanos(297));
    checkpoint.mode =
        Mode::Async { staging: nanos(7), backlog: Backlog::Replace { buffers: 1 }, buffer: None };
    job.checkpoint = Some(checkpoint);
    job.faults.at = vec![Time::from_nanos(2_760), Time::from_nanos(2_880)];
    job.faults.downtime = Spread::Fixed(nanos(7));
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(nanos(37)));
    let shrink = Shrink { replicas: 5, least: 1, machines: 1, regroup: nanos(0) };
    job.faults.spares =
        Some(Spares { count: 0, repair: Spread::Fixed(nanos(523)), when_out: WhenOut::Shrink(shrink) });
    job.stragglers.ranks = Some(Ranks {
        count: 4,
        slow: Some(SlowRanks {
            at: vec![Time::ZERO],
            between: None,
            factor: Ratio::new(103, 100).unwrap(),
            lasts: None,
        }),
        detection: Some(SlowDetection { threshold: 0.2, window: 1 }),
        ..Ranks::steady(nanos(21))
    });
    job.storage = Some(Storage { read: rate(2), write: rate(7) });
    job.input = Some(Input {
        step: nanos(21),
        items_per_step: 2,
        workers: 1,
        make: Spread::Fixed(nanos(1)),
        delivery: 1,
        prefetch: 2,
        read: Some(InputRead { bytes: Bytes::new(39), from: ReadFrom::Storage, cache: None }),
        readers: None,
        packing: None,
        copy: None,
        stops: Vec::new(),
    });
    same(&job);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn what_is_passed_over_is_what_would_have_happened(
        job in crate::faults::any_job(),
        input in any_input(),
        length in 1_u64..40,
        shared in any::<bool>(),
    ) {
        let mut job = job;
        // Long enough for hundreds of steps between the other events.
        job.work = job.work.map(|work| nanos(work.as_nanos() * length));
        job.horizon = job.horizon.map(|horizon| Time::from_nanos(horizon.as_nanos() * length));
        if let Some(checkpoint) = &mut job.checkpoint {
            let every = checkpoint.requests.every.fixed().unwrap();
            checkpoint.requests.every = Spread::Fixed(nanos(every.as_nanos() * length));
            if shared {
                checkpoint.write = Write::Storage;
            }
        }
        if shared {
            job.faults.recovery = Recovery::Storage { restart: nanos(5) };
        }
        job.storage = Some(Storage { read: rate(2), write: rate(7) });
        job.input = Some(input);
        same(&job);
    }

    #[test]
    fn slow_ranks_and_missing_replicas_repeat_with_their_input(
        job in crate::faults::any_job(),
        input in any_input(),
        slow in (proptest::collection::vec(0_u64..9_000, 0..3), 100_u64..300, proptest::option::of(1_u64..3_000)),
        response in 0..4,
        window in 1_u32..9,
        spares in proptest::option::of((1_u32..6, 1_u64..4_000, 0_u64..60)),
    ) {
        let mut job = job;
        let (at, percent, lasts) = slow;
        job.horizon = job.horizon.map(|horizon| Time::from_nanos(horizon.as_nanos() * 5));
        job.work = job.work.map(|work| nanos(work.as_nanos() * 5));
        job.storage = Some(Storage { read: rate(2), write: rate(7) });
        job.stragglers.ranks = Some(Ranks {
            count: 4,
            slow: Some(SlowRanks {
                at: at.into_iter().map(Time::from_nanos).collect(),
                between: None,
                factor: Ratio::new(percent, 100).unwrap(),
                lasts: lasts.map(|lasts| Spread::Fixed(nanos(lasts))),
            }),
            detection: Some(SlowDetection { threshold: 0.2, window }),
            response: match response {
                0 => Response::Wait,
                1 => Response::Redistribute { pause: nanos(30) },
                2 => Response::Evict,
                _ => Response::Drop { slowest: 1 },
            },
            ..Ranks::steady(input.step)
        });
        job.faults.spares = spares.map(|(replicas, repair, regroup)| Spares {
            count: 0,
            repair: Spread::Fixed(nanos(repair)),
            when_out: WhenOut::Shrink(Shrink { replicas, least: 1, machines: 1, regroup: nanos(regroup) }),
        });
        job.input = Some(input);
        same(&job);
    }
}

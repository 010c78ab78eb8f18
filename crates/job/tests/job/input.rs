//! Input: the book's packs through storage, CPU, copy and step, and jobs that wait for their workers.

use pipestep_engine::{Bytes, Duration, Interval, Rate, Time};
use pipestep_job::{
    Activity, Backlog, Checkpoint, Detail, DeviceCopy, Input, InputError, InputRead, JobError, JobInputs,
    Mode, PackPoint, Packing, ReadFrom, Recovery, Requests, Rest, Sample, Samples, Spread, Storage, Supply,
    SupplyCheckpoints, TokenLengths, Trigger, WorkerStop, Write, simulate, supply,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{adds_up, data, queued, ratio, seconds, until};

fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap()
}

fn book_supply(scenario: &Value, samples: &Value) -> Supply {
    let rate = |key| Rate::per_second(count(scenario, key)).unwrap();
    let nanos = |key| Duration::from_nanos(count(scenario, key));
    let sample = |row: &Value| Sample {
        tokens: count(row, "tokens"),
        stored: Bytes::new(count(row, "stored_bytes")),
        cpu: Duration::from_nanos(count(row, "cpu_ns")),
    };
    let every = count(scenario, "checkpoint_every") as u32;
    Supply {
        samples: samples.as_array().unwrap().iter().map(sample).collect(),
        pack_tokens: count(scenario, "pack_tokens"),
        bytes_per_token: Bytes::new(21),
        host_slots: count(scenario, "host_slots") as u32,
        device_slots: count(scenario, "device_slots") as u32,
        storage: rate("storage_bytes_per_second"),
        copy: rate("h2d_bytes_per_second"),
        packing: nanos("packing_ns"),
        consume: nanos("consume_ns"),
        checkpoints: (every > 0).then(|| SupplyCheckpoints {
            every,
            snapshot: nanos("snapshot_ns"),
            slots: count(scenario, "snapshot_slots") as u32,
            size: Bytes::new(114_670_295_040),
            shared_storage: scenario["shared_storage"].as_bool().unwrap(),
        }),
    }
}

#[test]
fn packs_go_through_storage_cpu_copy_and_step_as_in_the_book() {
    let file = data("input_supply.json");
    for case in file["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let (scenario, want) = (&case["scenario"], &case["expect"]);
        let samples = &file["sample_sets"][scenario["samples"].as_str().unwrap()];
        let outcome = supply(&book_supply(scenario, samples)).unwrap();
        // Each read is rounded once.
        let slack = samples.as_array().unwrap().len() as f64;
        let near = |what: &str, got: u64, want: &Value| {
            assert!((got as f64 - ratio(want)).abs() <= slack, "{id} {what}: {got}, expected {want}");
        };
        let spans = |what: &str, got: &[Interval], want: &Value| {
            let want = want.as_array().unwrap();
            assert_eq!(got.len(), want.len(), "{id} {what}");
            for (span, want) in got.iter().zip(want) {
                near(what, span.start.as_nanos(), &want[0]);
                near(what, span.end.as_nanos(), &want[1]);
            }
        };
        let packs: Vec<Vec<usize>> = serde_json::from_value(want["packs"].clone()).unwrap();
        assert_eq!(outcome.packs, packs, "{id}");
        spans("consume", &outcome.consumed, &want["consume_ns"]);
        spans("write", &outcome.written, &want["write_ns"]);
        near("end", outcome.training_end.as_nanos(), &want["training_end_ns"]);
        near("durable", outcome.all_durable.as_nanos(), &want["all_durable_ns"]);
        near("wait", outcome.device_wait.as_nanos(), &want["device_wait_ns"]);
        near("snapshots", outcome.snapshot_time.as_nanos(), &want["snapshot_service_before_end_ns"]);
        assert_eq!(outcome.host_peak.get(), count(want, "host_peak_bytes"), "{id}");
        assert_eq!(outcome.device_peak.get(), count(want, "device_peak_bytes"), "{id}");
        assert_eq!(outcome.snapshot_peak.get(), count(want, "snapshot_peak_bytes"), "{id}");
    }
}

/// A job whose input goes through the same stages, one reader, one worker, one copy and one device; `None` where
/// writes and reads take turns on one storage, which a job lets them share.
fn as_job(supply: &Supply) -> Option<JobInputs> {
    // A sample that fills a pack ends the list, or the first ones would come into the last pack again.
    let full = Sample { tokens: supply.pack_tokens, stored: Bytes::ZERO, cpu: Duration::ZERO };
    let packing = Packing {
        tokens: supply.pack_tokens,
        samples: Samples::Listed([supply.samples.as_slice(), &[full]].concat()),
        rest: Rest::Padded,
    };
    let wire = supply.bytes_per_token.times(supply.pack_tokens).unwrap();
    let packs = pipestep_job::supply(supply).unwrap().packs.len() as u64;
    let mut job = JobInputs::of_work(supply.consume.times(packs).unwrap());
    job.input = Some(Input {
        step: supply.consume,
        items_per_step: 1,
        workers: 1,
        make: Spread::Fixed(supply.packing),
        delivery: 1,
        prefetch: supply.host_slots,
        read: Some(InputRead { bytes: Bytes::ZERO, from: ReadFrom::Rate(supply.storage), cache: None }),
        readers: Some(1),
        packing: Some(packing),
        copy: Some(DeviceCopy { time: supply.copy.time_for(wire).unwrap(), slots: supply.device_slots }),
        stops: Vec::new(),
    });
    let Some(saves) = supply.checkpoints else { return Some(job) };
    job.checkpoint = Some(Checkpoint {
        mode: Mode::Async {
            staging: saves.snapshot,
            backlog: Backlog::Block { buffers: saves.slots },
            buffer: None,
        },
        size: Some(saves.size),
        write: Write::Rate(supply.storage),
        requests: Requests {
            trigger: Trigger::Work,
            first: None,
            every: Spread::Fixed(supply.consume.times(saves.every.into()).unwrap()),
            count: None,
        },
        commit_delay: Duration::ZERO,
        near: None,
    });
    (!saves.shared_storage).then_some(job)
}

/// Steps, saves and waits of the job are those of the walk.
fn goes_as(supply: &Supply, job: &JobInputs) {
    let want = pipestep_job::supply(supply).unwrap();
    let outcome = simulate(job, 0, Detail::Full).unwrap();
    adds_up(&outcome);
    assert_eq!(outcome.elapsed, want.training_end.since(Time::ZERO));
    let waited = outcome.lost.input_wait.as_nanos() + outcome.pause_total.as_nanos();
    assert_eq!(waited, want.device_wait.as_nanos() + want.snapshot_time.as_nanos());
    let input = outcome.input.unwrap();
    assert_eq!(input.steps as usize, want.consumed.len());
    // When training starts and stops, steps that follow one another taken as one.
    let mut training: Vec<Interval> = Vec::new();
    for step in want.consumed {
        match training.last_mut() {
            Some(last) if last.end == step.start => last.end = step.end,
            _ => training.push(step),
        }
    }
    let spans = outcome.timeline.iter().filter(|span| span.activity == Activity::Training);
    assert_eq!(spans.map(|span| span.interval).collect::<Vec<_>>(), training);
    for (record, write) in outcome.checkpoints.iter().zip(&want.written) {
        assert!(record.upload_start.is_none_or(|start| start == write.start), "{record:?} {write:?}");
        assert!(record.upload_end.is_none_or(|end| end == write.end), "{record:?} {write:?}");
    }
}

#[test]
fn a_job_feeds_its_steps_as_the_book_does() {
    let file = data("input_supply.json");
    let mut compared = 0;
    for case in file["cases"].as_array().unwrap() {
        let (scenario, want) = (&case["scenario"], &case["expect"]);
        let samples = &file["sample_sets"][scenario["samples"].as_str().unwrap()];
        let supply = book_supply(scenario, samples);
        let Some(job) = as_job(&supply) else { continue };
        goes_as(&supply, &job);
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        // Each read is rounded once.
        let off = outcome.elapsed.as_nanos() as f64 - ratio(&want["training_end_ns"]);
        assert!(off.abs() <= supply.samples.len() as f64, "{}", case["id"]);
        compared += 1;
    }
    assert!(compared >= 9, "{compared}");
}

#[test]
fn a_sample_longer_than_a_pack_is_refused() {
    let file = data("input_supply.json");
    let mut inputs = book_supply(&file["cases"][0]["scenario"], &file["sample_sets"]["default8"]);
    inputs.pack_tokens = 400;
    let error = supply(&inputs).unwrap_err();
    let JobError::Input(InputError::SampleTooLong { tokens: 448, pack: 400 }) = error else {
        panic!("{error}");
    };
}

const SECOND: u64 = 1_000_000_000;

/// One worker that makes an item at a time, for steps of a second that take one each.
pub(crate) fn feed(make: Spread, prefetch: u32) -> Input {
    Input {
        step: seconds(1.0),
        items_per_step: 1,
        workers: 1,
        make,
        delivery: 1,
        prefetch,
        read: None,
        readers: None,
        packing: None,
        copy: None,
        stops: Vec::new(),
    }
}

pub(crate) fn fed(input: Input, horizon: f64) -> JobInputs {
    let mut job = until(Time::from_nanos(seconds(horizon).as_nanos()));
    job.input = Some(input);
    job
}

#[test]
fn workers_limit_the_steps_and_one_that_stops_slows_them_down() {
    // The textbook's 384 sequences a step and four workers at two a second, of which one stops.
    let mut input = feed(Spread::Fixed(seconds(0.5)), 2 * 384);
    (input.step, input.items_per_step, input.workers) = (seconds(52.8), 384, 4);
    let enough = simulate(&fed(input.clone(), 5_280.0 + 48.0), 0, Detail::Summary).unwrap();
    assert_eq!(enough.lost.input_wait, seconds(48.0));
    input.stops = vec![WorkerStop { from: Time::ZERO, to: Time::MAX, workers: 1 }];
    let slow = simulate(&fed(input, 6_400.0), 0, Detail::Summary).unwrap();
    // Six a second make a step of 64 s.
    assert_eq!(slow.input.unwrap().steps, 100);
    assert!(slow.input.unwrap().longest_wait >= seconds(11.0));
}

/// Input that reads all the time, and checkpoints on the same storage.
fn shared_storage_job() -> JobInputs {
    let gigabyte = Rate::per_second(SECOND).unwrap();
    let mut input = feed(Spread::ZERO, 2);
    input.read = Some(InputRead { bytes: Bytes::new(2 * SECOND), from: ReadFrom::Storage, cache: None });
    let mut job = fed(input, 100.0);
    job.storage = Some(Storage { read: gigabyte, write: gigabyte });
    let mut checkpoint =
        crate::support::with_size(queued(seconds(5.0), seconds(0.0), seconds(0.0)), 10 * SECOND);
    checkpoint.write = Write::Storage;
    checkpoint.requests.count = Some(1);
    job.checkpoint = Some(checkpoint);
    job
}

#[test]
fn reads_and_checkpoints_share_the_storage() {
    // A read of 2 s for each step of 1 s: the fifth step ends at 11 s. From then on the write of 10 s has
    // half of the storage, and reads take 4 s, until it is done at 31 s.
    let outcome = simulate(&shared_storage_job(), 0, Detail::Full).unwrap();
    adds_up(&outcome);
    let saved = outcome.checkpoints[0];
    assert_eq!(saved.capture, Some(Time::from_nanos(11 * SECOND)));
    assert_eq!(saved.durable, Some(Time::from_nanos(31 * SECOND)));
    // Ten steps of input until 31 s, of which two came in half the time before, and one every 2 s after.
    assert_eq!(outcome.input.unwrap().longest_wait, seconds(3.0));
    let mut alone = shared_storage_job();
    alone.checkpoint = None;
    let alone = simulate(&alone, 0, Detail::Full).unwrap();
    assert_eq!(alone.input.unwrap().steps - outcome.input.unwrap().steps, 5);
}

#[test]
fn a_restore_reads_from_the_storage_and_the_input_replays_what_was_handed_out() {
    let mut job = shared_storage_job();
    job.faults.at = vec![Time::from_nanos(50 * SECOND)];
    job.faults.recovery = Recovery::Storage { restart: seconds(3.0) };
    let outcome = simulate(&job, 0, Detail::Full).unwrap();
    adds_up(&outcome);
    // The restore has the storage to itself.
    assert_eq!(outcome.lost.recovery, seconds(13.0));
    let replay = outcome.failures[0].replay.unwrap();
    assert_eq!(replay.restored, 5);
    assert_eq!(replay.trained, outcome.input.unwrap().replayed + 5 - (replay.handed_out - replay.trained));
    assert!(replay.handed_out > replay.trained && replay.trained > replay.restored);
    // A save on the storage can also hold training up itself.
    let Some(checkpoint) = &mut job.checkpoint else { panic!("it has one") };
    checkpoint.mode = pipestep_job::Mode::Sync;
    let outcome = simulate(&job, 0, Detail::Full).unwrap();
    adds_up(&outcome);
    // The rest of a read and another fill the buffer, three seconds of reading beside the write.
    assert_eq!(outcome.pause_total, seconds(13.0));
}

#[test]
fn input_that_cannot_be_is_refused() {
    let mut job = fed(feed(Spread::ZERO, 1), 10.0);
    let Some(input) = &mut job.input else { panic!("it has one") };
    input.items_per_step = 2;
    assert_eq!(job.check(), Err(InputError::Prefetch { wanted: 2, prefetch: 1 }));
    let mut job = shared_storage_job();
    job.storage = None;
    assert_eq!(job.check(), Err(InputError::NoStorage { what: "checkpoint.write" }));
    // Nobody makes anything, ever.
    let mut input = feed(Spread::ZERO, 1);
    input.stops = vec![WorkerStop { from: Time::ZERO, to: Time::MAX, workers: 1 }];
    let mut job = fed(input, 1.0);
    (job.horizon, job.work) = (None, Some(seconds(1.0)));
    assert!(matches!(simulate(&job, 0, Detail::Summary), Err(JobError::NoInput { .. })));
}

/// Packs of 100 tokens from two samples of 60 and one of 30: next fit leaves holes, and cutting none.
fn packed(rest: Rest) -> JobInputs {
    let sample = |tokens| Sample { tokens, stored: Bytes::ZERO, cpu: seconds(0.1) };
    let mut input = feed(Spread::ZERO, 2);
    input.packing =
        Some(Packing { tokens: 100, samples: Samples::Listed([60, 60, 30].map(sample).to_vec()), rest });
    fed(input, 60.05)
}

#[test]
fn packing_pads_or_keeps_the_remainder() {
    // [60] [60, 30], and so on: 150 of 200 slots.
    let padded = simulate(&packed(Rest::Padded), 0, Detail::Full).unwrap().input.unwrap();
    let packs = padded.handed_out;
    assert_eq!(padded.packed.slots, 100 * packs);
    assert_eq!(padded.packed.tokens, 150 * (packs / 2) + 60 * (packs % 2));
    // Nothing stays empty: two packs have 200 tokens of 60 + 60 + 30 + 50 of the next.
    let split = simulate(&packed(Rest::Split), 0, Detail::Full).unwrap().input.unwrap();
    assert_eq!(split.packed.tokens, split.packed.slots);
    assert_eq!(split.packed.samples, (split.packed.slots * 3).div_ceil(150));
}

#[test]
fn a_resume_packs_the_same_samples_again() {
    let failing = |job: &JobInputs, at: f64| {
        let mut job = job.clone();
        job.checkpoint = Some(queued(seconds(7.0), Duration::ZERO, Duration::ZERO));
        job.faults.at = vec![Time::from_nanos(seconds(at).as_nanos())];
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        adds_up(&outcome);
        (outcome.failures[0].replay.unwrap(), outcome.input.unwrap())
    };
    // Samples begun by the end of so many packs: two in each where none is left empty, otherwise one and two in turn.
    let split = |packs: u64| 2 * packs;
    let padded = |packs: u64| 3 * (packs / 2) + packs % 2;
    for (rest, begun) in [(Rest::Split, &split as &dyn Fn(u64) -> u64), (Rest::Padded, &padded)] {
        let (replay, totals) = failing(&packed(rest), 25.3);
        // Saved after 21 steps, and in the 26th when it fails: 21 packs are behind the checkpoint.
        assert_eq!((replay.restored, replay.trained), (21, 25), "{rest:?}");
        assert_eq!(replay.packer, Some(PackPoint { sample: begun(21), offset: 0 }), "{rest:?}");
        assert_eq!(totals.replayed, replay.handed_out - 21, "{rest:?}");
        let last = totals.handed_out - replay.handed_out + 21;
        assert_eq!(totals.packed.samples, begun(replay.handed_out) + begun(last) - begun(21), "{rest:?}");
    }
    // Random lengths come again as they were: the same checkpoint, wherever the job fails after it.
    let mut random = packed(Rest::Split);
    if let Some(Packing { samples, .. }) = random.input.as_mut().and_then(|input| input.packing.as_mut()) {
        let lengths = TokenLengths::Lognormal { mean: 40.0, variation: 0.8 };
        *samples = Samples::Drawn { lengths, stored: Bytes::ZERO, cpu: seconds(0.01) };
    }
    let point = failing(&random, 22.3).0.packer;
    assert_eq!(failing(&random, 25.3).0.packer, point);
    assert!(point.is_some_and(|point| point.sample > 21 && point.offset > 0), "{point:?}");
}

#[test]
fn a_copy_to_the_device_hides_behind_the_step_or_does_not() {
    // Copies of 0.4 s beside steps of a second: the first alone is waited for.
    let mut input = feed(Spread::ZERO, 4);
    input.copy = Some(DeviceCopy { time: seconds(0.4), slots: 2 });
    let hidden = simulate(&fed(input.clone(), 100.4), 0, Detail::Full).unwrap();
    assert_eq!(hidden.lost.input_wait, seconds(0.4));
    // With one slot the next copy starts when the step before it ends.
    input.copy = Some(DeviceCopy { time: seconds(0.4), slots: 1 });
    let exposed = simulate(&fed(input.clone(), 140.0), 0, Detail::Full).unwrap();
    assert_eq!((exposed.lost.input_wait, exposed.useful), (seconds(40.0), seconds(100.0)));
    // Slower than the steps, it is what they wait for.
    input.copy = Some(DeviceCopy { time: seconds(1.5), slots: 2 });
    let slow = simulate(&fed(input, 151.0), 0, Detail::Full).unwrap();
    assert_eq!(slow.useful, seconds(100.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_job_and_a_walk_of_its_packs_agree(
        samples in proptest::collection::vec((1_u64..20, 0_u64..500, 0_u64..90), 1..40),
        slots in (1_u32..4, 1_u32..4, 1_u32..3),
        times in (0_u64..60, 1_u64..120, 0_u64..50),
        rates in (1_u64..9, 1_u64..9),
        saves in proptest::option::of((1_u32..5, 0_u64..2_000)),
    ) {
        let (host_slots, device_slots, snapshot_slots) = slots;
        let (packing, consume, snapshot) = times;
        let sample = |(tokens, stored, cpu)| Sample {
            tokens,
            stored: Bytes::new(stored),
            cpu: Duration::from_nanos(cpu),
        };
        let supply = Supply {
            samples: samples.into_iter().map(sample).collect(),
            pack_tokens: 20,
            bytes_per_token: Bytes::new(13),
            host_slots,
            device_slots,
            storage: Rate::new(rates.0, 1).unwrap(),
            copy: Rate::new(rates.1, 1).unwrap(),
            packing: Duration::from_nanos(packing),
            consume: Duration::from_nanos(consume),
            checkpoints: saves.map(|(every, size)| SupplyCheckpoints {
                every,
                snapshot: Duration::from_nanos(snapshot),
                slots: snapshot_slots,
                size: Bytes::new(size),
                shared_storage: false,
            }),
        };
        goes_as(&supply, &as_job(&supply).unwrap());
    }

    #[test]
    fn whatever_feeds_the_job_every_second_is_accounted_for(
        job in crate::faults::any_job(),
        workers in (1_u32..4, 1_u32..3, 1_u32..4, 0_u32..4),
        times in (1_u64..200, 1_u64..200, 0_u64..100),
        shared in any::<bool>(),
    ) {
        let (count, items_per_step, delivery, extra) = workers;
        let (step, make, read) = times;
        let mut job = job;
        job.input = Some(Input {
            step: Duration::from_nanos(step),
            items_per_step,
            workers: count,
            make: Spread::Exponential { mean: Duration::from_nanos(make) },
            delivery,
            prefetch: items_per_step + extra,
            read: Some(InputRead { bytes: Bytes::new(read), from: ReadFrom::Storage, cache: None }),
            readers: None,
            packing: None,
            copy: None,
            stops: vec![WorkerStop { from: Time::from_nanos(100), to: Time::from_nanos(900), workers: count.min(2) }],
        });
        let rate = |bytes| Rate::new(bytes, 1).unwrap();
        job.storage = Some(Storage { read: rate(1), write: rate(7) });
        if shared {
            if let Some(checkpoint) = &mut job.checkpoint {
                checkpoint.write = Write::Storage;
            }
            job.faults.recovery = Recovery::Storage { restart: Duration::from_nanos(5) };
        }
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        adds_up(&outcome);
        prop_assert_eq!(&outcome, &simulate(&job, 0, Detail::Full).unwrap());
        for failure in &outcome.failures {
            let replay = failure.replay.unwrap();
            prop_assert!(replay.restored <= replay.trained && replay.trained <= replay.handed_out);
        }
    }
}

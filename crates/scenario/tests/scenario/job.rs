//! What the tables of a job mean, against inputs built by hand and against known results.

use pipestep_engine::{Bytes, Duration, Rate, Time};
use pipestep_job::{
    Backlog, Cause, Checkpoint, Detail, FaultSource, Faults, Input, InputCache, InputRead, Jitter, JobInputs,
    Mode, NearTier, Ranks, Ratio, ReadFrom, Recovery, Requests, Response, Rest, Sample, Samples, Shrink,
    SlowDetection, SlowWindow, Spares, Spread, Storage, TokenLengths, Trigger, WhenOut, WorkerStop, Write,
    simulate,
};
use pipestep_scenario::JobScenario;

use crate::{MINIMAL, legal, parse};

const SECOND: u64 = 1_000_000_000;

fn seconds(count: u64) -> Duration {
    Duration::from_nanos(count * SECOND)
}

fn at(count: u64) -> Time {
    Time::from_nanos(count * SECOND)
}

fn rate(count: u64) -> Rate {
    Rate::per_second(count).expect("above zero")
}

fn job(text: &str, sets: &[&str]) -> JobScenario {
    legal(text, sets).job.expect("it has a job")
}

fn inputs(text: &str, sets: &[&str]) -> JobInputs {
    let job = job(text, sets);
    assert!(!job.needs_step());
    job.inputs(None).expect("legal")
}

/// The example of the reference, with every key.
const EXAMPLE: &str = r#"
[job]
work = "1000 s"
horizon = "2000 s"

[checkpoint]
mode = "async"
size = "112 GB"
bandwidth = "7 GB/s"
first = "20 s"
every = "30 s"
count = 2
trigger = "wall"
staging = "0.5 s"
backlog = "skip"
buffers = 3
commit_delay = "1 s"

[faults]
at = ["50 s", "10 s"]
downtime = "30 s"
recovery = "60 s"
recovery_can_fail = true

[stragglers]
windows = [{ from = "200 s", to = "400 s", factor = 1.25 }]
"#;

#[test]
fn a_job_stands_alone() {
    let scenario = legal(EXAMPLE, &[]);
    assert!(scenario.step.is_none());
    let checkpoint = Checkpoint {
        mode: Mode::Async {
            staging: Duration::from_nanos(SECOND / 2),
            backlog: Backlog::Skip { buffers: 3 },
            buffer: None,
        },
        size: Some(Bytes::new(112_000_000_000)),
        write: Write::Rate(rate(7_000_000_000)),
        requests: Requests {
            trigger: Trigger::Wall,
            first: Some(seconds(20)),
            every: Spread::Fixed(seconds(30)),
            count: Some(2),
        },
        commit_delay: seconds(1),
        near: None,
    };
    let faults = Faults {
        at: vec![at(50), at(10)],
        downtime: Spread::Fixed(seconds(30)),
        recovery: Recovery::Fixed(Spread::Fixed(seconds(60))),
        recovery_can_fail: true,
        ..Faults::none()
    };
    let mut expected = JobInputs::of_work(seconds(1000));
    expected.horizon = Some(at(2000));
    expected.checkpoint = Some(checkpoint);
    expected.faults = faults;
    let factor = Ratio::new(5, 4).expect("above zero");
    expected.stragglers.windows = vec![SlowWindow { from: at(200), to: at(400), factor }];
    assert_eq!(inputs(EXAMPLE, &[]), expected);
}

#[test]
fn what_is_left_out_of_a_job_has_its_default() {
    let text = "[job]\nwork = \"10 s\"\n[checkpoint]\nevery = \"1 s\"\nwrite_time = \"0.5 s\"";
    let read = inputs(text, &[]);
    let checkpoint = read.checkpoint.expect("there is one");
    let backlog = Backlog::Block { buffers: 2 };
    assert_eq!(checkpoint.mode, Mode::Async { staging: Duration::ZERO, backlog, buffer: None });
    assert_eq!((checkpoint.size, checkpoint.commit_delay), (None, Duration::ZERO));
    assert_eq!((checkpoint.requests.trigger, checkpoint.requests.first), (Trigger::Wall, None));
    assert_eq!(read.faults, Faults::none());
    let job = job(text, &[]);
    assert_eq!((job.runs, job.set_aside, job.steps), (1, Duration::ZERO, None));
}

#[test]
fn a_start_is_a_date_as_a_string_or_as_tomls_own() {
    let text = "[job]\nwork = \"10 s\"";
    let start =
        |value: &str| job(text, &[&format!("job.start={value}")]).start.expect("it was given").to_string();
    assert_eq!(job(text, &[]).start, None);
    assert_eq!(start("2026-03-01"), "2026-03-01T00:00:00");
    assert_eq!(start("\"2026-03-01\""), "2026-03-01T00:00:00");
    assert_eq!(start("2026-03-01T09:30:00-05:00"), "2026-03-01T09:30:00-05:00");
    assert_eq!(start("\"2026-03-01 09:30Z\""), "2026-03-01T09:30:00Z");
    for wrong in ["\"next week\"", "09:30:00", "2026", "\"2026-02-30\""] {
        let set = pipestep_scenario::Override::set(format!("job.start={wrong}"));
        let problems = parse(text, "test.toml", &[set]).expect_err("no date").to_string();
        assert!(problems.contains("`job.start`: expected a date"), "{problems}");
    }
}

/// 112 GB at 7 GB/s every 20 s, and a failure at 50 s: back to 20 s, 30 s on the clock, 29 s of work.
#[test]
fn a_scenario_of_the_textbook_has_its_result() {
    let sets = ["checkpoint.every=20 s", "checkpoint.commit_delay=0 s", "faults.at=[\"50 s\"]"];
    let outcome = simulate(&inputs(EXAMPLE, &sets), 0, Detail::Full).expect("it ends");
    assert_eq!(outcome.failures[0].redo_wall, seconds(30));
    assert_eq!(outcome.failures[0].redo_useful, seconds(29));
}

#[test]
fn factors_are_exact_whatever_their_decimals() {
    let factor = |text: &str| {
        let set = format!("stragglers.windows=[{{ from = \"1 s\", to = \"2 s\", factor = {text} }}]");
        inputs("[job]\nwork = \"10 s\"", &[&set]).stragglers.windows[0].factor
    };
    assert_eq!(Some(factor("1.1")), Ratio::new(11, 10));
    assert_eq!(Some(factor("\"4/3\"")), Ratio::new(4, 3));
    assert_eq!(Some(factor("1.0000001")), Ratio::new(10_000_001, 10_000_000));
}

#[test]
fn work_in_steps_and_tokens_takes_the_length_of_a_step() {
    let text = format!("{MINIMAL}[job]\nsteps = 31790");
    let counted = job(&text, &[]);
    assert!(counted.needs_step());
    let step = Duration::from_nanos(52_800_000_000);
    let work = counted.inputs(Some(step)).expect("legal").work;
    assert_eq!(work, Some(step.times(31_790).expect("small")));
    assert!(counted.inputs(None).is_err());

    let alone = "[job]\ntokens = 100_000_000_000\ntokens_per_step = 3_145_728\nstep = \"52.8 s\"\nset_aside = \"5 d\"";
    let alone = job(alone, &[]);
    assert_eq!((alone.steps, alone.set_aside), (Some(31_790), seconds(5 * 86_400)));
    assert_eq!(alone.inputs(None).expect("legal").work, work);

    // The model of the file knows the tokens: 8 micro-batches of 2 x 128.
    let model =
        "[job]\ntokens = 4097\n[model]\npreset = \"qwen3-8b\"\nsequence_length = 128\nmicro_batch_size = 2";
    let model = job(&format!("{MINIMAL}{model}"), &[]);
    assert_eq!((model.tokens_per_step, model.steps), (Some(2048), Some(3)));
}

#[test]
fn saves_every_so_many_steps() {
    let text = "[job]\nsteps = 1000\nstep = \"2 s\"\n\
        [checkpoint]\ntrigger = \"steps\"\nevery = 100\nfirst = 50\nwrite_time = \"1 s\"";
    let requests = job(text, &[]).inputs(None).expect("legal").checkpoint.expect("there is one").requests;
    assert_eq!(requests.trigger, Trigger::Work);
    assert_eq!((requests.first, requests.every), (Some(seconds(100)), Spread::Fixed(seconds(200))));
}

#[test]
fn a_checkpoint_without_a_size_is_that_of_the_model() {
    let text = "[job]\nwork = \"1000 s\"\n[model]\npreset = \"qwen3-8b\"\nsequence_length = 128\n\
        [storage]\npreset = \"superpod-good-1su\"\n[checkpoint]\nevery = \"60 s\"\n\
        [faults]\nrecovery = { restart = \"10 s\" }";
    let read = inputs(text, &[]);
    let checkpoint = read.checkpoint.expect("there is one");
    assert_eq!(checkpoint.size, Some(Bytes::new(114_670_295_040)));
    // What says no rate of its own shares the storage.
    assert_eq!(checkpoint.write, Write::Storage);
    assert_eq!(read.faults.recovery, Recovery::Storage { restart: seconds(10) });
    let storage = Storage { read: rate(15_000_000_000), write: rate(7_000_000_000) };
    assert_eq!(read.storage, Some(storage));
    let own = inputs(text, &["storage.write=9 GB/s", "checkpoint.bandwidth=1 GB/s"]);
    assert_eq!(own.storage, Some(Storage { write: rate(9_000_000_000), ..storage }));
    assert_eq!(own.checkpoint.expect("there is one").write, Write::Rate(rate(1_000_000_000)));
}

#[test]
fn two_tiers() {
    let text = "[job]\nwork = \"1000 s\"\n[checkpoint]\nmode = \"sync\"\nevery = \"60 s\"\nwrite_time = \"16 s\"\n\
        [checkpoint.near]\nwrite = \"2 s\"\nfar_every = 10\nsurvives = 0.75\n[faults]\nrecovery = \"90 s\"";
    let near = inputs(text, &[]).checkpoint.expect("there is one").near;
    let recovery = Recovery::Fixed(Spread::Fixed(seconds(90)));
    let expected = NearTier { write: seconds(2), far_every: 10, survives: 0.75, recovery };
    assert_eq!(near, Some(expected));
    let near = inputs(text, &["checkpoint.near.recovery=5 s"]).checkpoint.expect("there is one").near;
    let recovery = Recovery::Fixed(Spread::Fixed(seconds(5)));
    assert_eq!(near, Some(NearTier { recovery, ..expected }));
}

#[test]
fn buffers_on_the_device_are_held_by_the_ranks_of_the_step() {
    let job = "[job]\nwork = \"1000 s\"\n[checkpoint]\nevery = \"60 s\"\nwrite_time = \"16 s\"\nbuffers_on = \"device\"\n";
    let held = |text: &str, sets: &[&str]| -> Vec<u64> {
        let step = legal(text, sets).step.expect("it has a step");
        step.inputs.costs().ranks.iter().map(|rank| rank.held.buckets.get()).collect()
    };
    // Two buffers of a quarter each, rounded up.
    let plain = format!("{MINIMAL}{job}");
    assert_eq!(held(&plain, &["checkpoint.size=101 B"]), [52; 4]);
    assert_eq!(held(&plain, &["checkpoint.size=101 B", "checkpoint.buffers_on=host"]), [0; 4]);
    // With a model by its parameters, 14 bytes each: the ends hold the embedding and the head.
    let model = format!("{plain}[model]\npreset = \"qwen3-8b\"\nsequence_length = 128\n");
    let ranks = held(&model, &["checkpoint.buffers=1"]);
    assert_eq!(ranks.iter().sum::<u64>(), 114_670_295_040);
    assert!(ranks[0] > ranks[1] && ranks[1] == ranks[2] && ranks[3] > ranks[2], "{ranks:?}");
}

#[test]
fn random_failures_by_device_by_job_and_by_source() {
    let text = r#"
[job]
work = "30 d"
[faults]
mtbf = { distribution = "weibull", mean = "7.9 h", shape = 0.7 }
device_mtbf = "337 d"
devices = 1024
downtime = { distribution = "lognormal", mean = "5 min", variation = 0.5 }
detection = "30 s"
seed = 7
runs = 100
[faults.spares]
count = 4
repair = "1 d"
[[faults.sources]]
name = "loss spike"
mtbf = { distribution = "uniform", low = "1 d", high = "2 d" }
near_survives = 1
causes = [{ name = "data", weight = 3 }, { name = "chip", loses_machine = true, near_survives = 0 }]
"#;
    let faults = inputs(text, &[]).faults;
    let [of_job, of_devices, spikes] = &faults.sources[..] else { panic!("{:?}", faults.sources) };
    let hours = |tenths: u64| seconds(tenths * 360);
    let weibull = Spread::Weibull { mean: hours(79), shape: 0.7 };
    assert_eq!(*of_job, FaultSource::single("job", weibull, 1, true));
    let mean = seconds(337 * 86_400);
    assert_eq!(*of_devices, FaultSource::single("device", Spread::Exponential { mean }, 1024, true));
    let cause = |name: &str, weight, near_survives, loses_machine| Cause {
        name: name.to_owned(),
        weight,
        near_survives: Some(near_survives),
        loses_machine,
        downtime: None,
    };
    assert_eq!(spikes.causes, [cause("data", 3, 1.0, false), cause("chip", 1, 0.0, true)]);
    assert_eq!(faults.detection, seconds(30));
    assert_eq!(faults.downtime, Spread::Lognormal { mean: seconds(300), variation: 0.5 });
    assert_eq!(
        faults.spares,
        Some(Spares { count: 4, repair: Spread::Fixed(seconds(86_400)), when_out: WhenOut::Wait })
    );
    let job = job(text, &[]);
    assert_eq!((job.runs, job.inputs(None).expect("legal").seed), (100, 7));
}

#[test]
fn a_job_that_can_shrink_knows_its_replicas() {
    let text = "[job]\nwork = \"10 d\"\n[faults.spares]\ncount = 2\nrepair = \"1 d\"\nwhen_out = \"shrink\"";
    let when_out = |sets: &[&str]| inputs(text, sets).faults.spares.expect("there are some").when_out;
    let shrink = Shrink { replicas: 64, least: 1, machines: 1, regroup: Duration::ZERO };
    assert_eq!(when_out(&["faults.spares.replicas=64"]), WhenOut::Shrink(shrink));
    let all = [
        "faults.spares.replicas=64",
        "faults.spares.min_replicas=48",
        "faults.spares.machines_per_replica=4",
        "faults.spares.regroup=1 min",
    ];
    let written = Shrink { least: 48, machines: 4, regroup: seconds(60), ..shrink };
    assert_eq!(when_out(&all), WhenOut::Shrink(written));
    // The ranks of `[stragglers]` are its replicas.
    let ranks = job(text, &["stragglers.ranks=64", "job.step=10 s"]).inputs(None).expect("legal");
    assert_eq!(ranks.faults.spares.expect("there are some").when_out, WhenOut::Shrink(shrink));
    // How it would shrink may stay written.
    let waits = [all.as_slice(), &["faults.spares.when_out=wait"]].concat();
    assert_eq!(when_out(&waits), WhenOut::Wait);
    let wrong = [
        (&["job.work=10 d"][..], "nothing says how many replicas"),
        (
            &["faults.spares.replicas=64", "faults.spares.min_replicas=65"],
            "is 65 of 64 replicas, expected at most 64",
        ),
        (
            &["faults.spares.replicas=8", "stragglers.ranks=64"],
            "8 replicas here, and 64 data-parallel ranks there",
        ),
        (&["faults.spares.replicas=0"], "expected a whole number from 1"),
    ];
    for (sets, message) in wrong {
        let sets: Vec<_> = sets.iter().map(|&set| pipestep_scenario::Override::set(set)).collect();
        let problems = parse(text, "test.toml", &sets).expect_err("wrong").to_string();
        assert!(problems.contains(message), "{message}: {problems}");
    }
}

#[test]
fn a_published_record_of_failures_gives_rates_and_causes() {
    let text = "[job]\nwork = \"54 d\"\n[faults]\npreset = \"llama3\"";
    let sources = inputs(text, &[]).faults.sources;
    assert_eq!((sources.len(), sources[0].devices, sources[0].causes.len()), (1, 16_384, 18));
    let per_day = sources[0].rate() * 86_400.0;
    assert!((per_day - 419.0 / 54.0).abs() < 1e-9, "{per_day}");
    // A rate of the whole job takes the causes over.
    let of_job = inputs(text, &["faults.mtbf=3 h"]).faults.sources;
    assert_eq!((of_job.len(), of_job[0].devices, of_job[0].causes.len()), (1, 1, 18));
}

#[test]
fn a_median_and_a_sigma_are_the_same_lognormal() {
    let set = "faults.downtime={ distribution = \"lognormal\", median = \"100 s\", sigma = 0.5 }";
    let read = inputs("[job]\nwork = \"10 s\"", &[set]).faults.downtime;
    let Spread::Lognormal { mean, variation } = read else { panic!("{read:?}") };
    assert!((mean.as_secs_f64() - 100.0 * 0.125_f64.exp()).abs() < 1e-6);
    assert!((variation - 0.25_f64.exp_m1().sqrt()).abs() < 1e-12);
}

#[test]
fn ranks_that_a_step_waits_for() {
    let text = r#"
[job]
steps = 1000
step = "10 s"
[stragglers]
ranks = 64
overhead = "0.5 s"
jitter = { distribution = "two-point", factor = 2, probability = "1/1000" }
threshold = 0.1
window = 5
response = "stale"
staleness = 3
[stragglers.slow]
at = ["1 h"]
mtbf = "30 d"
factor = "3/2"
"#;
    let ranks = job(text, &[]).inputs(None).expect("legal").stragglers.ranks.expect("there are");
    let slow = ranks.slow.clone().expect("there are");
    assert_eq!((slow.at, slow.lasts), (vec![at(3600)], None));
    assert_eq!(slow.between, Some(Spread::Exponential { mean: seconds(30 * 86_400) }));
    assert_eq!(Some(slow.factor), Ratio::new(3, 2));
    let expected = Ranks {
        count: 64,
        step: seconds(10),
        overhead: Duration::from_nanos(SECOND / 2),
        jitter: Jitter::TwoPoint { factor: 2.0, probability: 0.001 },
        slow: ranks.slow.clone(),
        detection: Some(SlowDetection { threshold: 0.1, window: 5 }),
        response: Response::Stale { bound: 3 },
    };
    assert_eq!(ranks, expected);
    // Behind a simulated step, its length counts.
    let behind = text.replace("step = \"10 s\"\n", "");
    let behind = job(&format!("{MINIMAL}{behind}"), &[]);
    assert!(behind.needs_step());
    let ranks = behind.inputs(Some(seconds(20))).expect("legal").stragglers.ranks.expect("there are");
    assert_eq!(ranks.step, seconds(20));
}

#[test]
fn what_feeds_the_steps() {
    let text = r#"
[job]
steps = 1000
step = "10 s"
[storage]
preset = "superpod-good-1su"
[input]
items_per_step = 384
workers = 8
make = "50 ms"
prefetch = 768
read = { bytes = "4 MB" }
stops = [{ from = "1 h" }, { from = "1 h", to = "2 h", workers = 3 }]
"#;
    let input = job(text, &[]).inputs(None).expect("legal").input.expect("there is one");
    let expected = Input {
        step: seconds(10),
        items_per_step: 384,
        workers: 8,
        make: Spread::Fixed(Duration::from_nanos(SECOND / 20)),
        delivery: 1,
        prefetch: 768,
        read: Some(InputRead { bytes: Bytes::new(4_000_000), from: ReadFrom::Storage, cache: None }),
        readers: None,
        packing: None,
        copy: None,
        stops: vec![
            WorkerStop { from: at(3600), to: Time::MAX, workers: 1 },
            WorkerStop { from: at(3600), to: at(7200), workers: 3 },
        ],
    };
    assert_eq!(input, expected);
    let own =
        ["input.read.bandwidth=1 GB/s", "input.read.cache={ epoch_items = 1000, bandwidth = \"5 GB/s\" }"];
    let read = job(text, &own).inputs(None).expect("legal").input.and_then(|input| input.read);
    let read = read.expect("there is one");
    assert_eq!(read.from, ReadFrom::Rate(rate(1_000_000_000)));
    assert_eq!(read.cache, Some(InputCache { epoch_items: 1000, rate: rate(5_000_000_000) }));
}

#[test]
fn what_only_the_step_shows_is_refused_with_its_place() {
    let scenario = legal(&format!("{MINIMAL}[job]\nsteps = 18446744073709551615"), &[]);
    let job = scenario.job.as_ref().expect("it has a job");
    let error = job.inputs(Some(seconds(1))).expect_err("too long");
    let text = scenario.refused_job(&error).to_string();
    assert!(text.contains("test.toml:9:1") && text.contains("overflows"), "{text}");
    // With the length in the file it is refused at once.
    assert!(parse("[job]\nstep = \"1 s\"\nsteps = 18446744073709551615", "test.toml", &[]).is_err());
}

/// The book's worked examples of an input pipeline, as a user would write them.
const PACKS: &str = r#"
[job]
steps = 4
step = "2 ms"
[input]
items_per_step = 1
workers = 1
make = "0.1 ms"
prefetch = 2
readers = 1
read = { bandwidth = "2 GB/s" }
copy = { bytes = "10752 B", bandwidth = "12 GB/s" }
[input.packing]
tokens = 512
samples = [
    { tokens = 128, stored = "512 B", cpu = "164 us" },
    { tokens = 256, stored = "1024 B", cpu = "228 us" },
    { tokens = 192, stored = "768 B", cpu = "196 us" },
    { tokens = 320, stored = "1280 B", cpu = "260 us" },
    { tokens = 64, stored = "256 B", cpu = "132 us" },
    { tokens = 448, stored = "1792 B", cpu = "324 us" },
    { tokens = 256, stored = "1024 B", cpu = "228 us" },
    { tokens = 256, stored = "1024 B", cpu = "228 us" },
]
"#;

#[test]
fn the_books_packs_come_when_it_says() {
    let outcome = simulate(&job(PACKS, &[]).inputs(None).expect("legal"), 0, Detail::Full).expect("it ends");
    assert_eq!((outcome.elapsed.as_nanos(), outcome.lost.input_wait.as_nanos()), (8_493_664, 493_664));
    let packed = outcome.input.expect("there is one").packed;
    // Four packs of 384, 512, 512 and 512 tokens are trained on, and the first one again is on its way.
    assert!(packed.tokens < packed.slots, "{packed:?}");
    // One slot on the host and one on the device, packs of one sample, a snapshot after every two of twelve steps.
    let sets = [
        "job.steps=12",
        "input.prefetch=1",
        "input.copy.slots=1",
        "input.packing.samples=[{ tokens = 512, stored = \"8192 B\", cpu = \"100 us\" }]",
        "checkpoint={ every = 2, trigger = \"steps\", size = \"114670295040 B\", bandwidth = \"2 GB/s\" }",
        "checkpoint.staging=1 ms",
        "checkpoint.buffers=8",
    ];
    let outcome =
        simulate(&job(PACKS, &sets).inputs(None).expect("legal"), 0, Detail::Full).expect("it ends");
    assert_eq!((outcome.elapsed.as_nanos(), outcome.lost.input_wait.as_nanos()), (29_210_368, 210_368));
    assert_eq!(outcome.pause_total.as_nanos(), 5_000_000);
}

#[test]
fn samples_are_listed_or_drawn() {
    let packing = |sets: &[&str]| {
        let input = job(PACKS, sets).inputs(None).expect("legal").input.expect("there is one");
        input.packing.expect("there is one")
    };
    let written = packing(&[]);
    assert_eq!((written.tokens, written.rest), (512, Rest::Padded));
    let plain = packing(&[
        "input.packing.samples=[100, { tokens = 200, cpu = \"7 us\" }]",
        "input.packing.bytes_per_token=4 B",
        "input.packing.cpu_per_sample=3 us",
        "input.packing.split=true",
    ]);
    let sample = |tokens: u64, stored: u64, micros: u64| Sample {
        tokens,
        stored: Bytes::new(stored),
        cpu: Duration::from_nanos(micros * 1_000),
    };
    assert_eq!(plain.samples, Samples::Listed(vec![sample(100, 400, 3), sample(200, 800, 7)]));
    assert_eq!(plain.rest, Rest::Split);
    let drawn = |text: &str| match packing(&[&format!("input.packing.samples={text}")]).samples {
        Samples::Drawn { lengths, .. } => lengths,
        Samples::Listed(samples) => panic!("{samples:?}"),
    };
    let lognormal = drawn("{ distribution = \"lognormal\", mean = 300, variation = 0.5 }");
    assert_eq!(lognormal, TokenLengths::Lognormal { mean: 300.0, variation: 0.5 });
    let uniform = drawn("{ distribution = \"uniform\", low = 3, high = 9 }");
    assert_eq!(uniform, TokenLengths::Uniform { low: 3, high: 9 });
    let fixed = packing(&["input.packing.samples=64"]).samples;
    assert_eq!(fixed, Samples::Listed(vec![sample(64, 0, 0)]));
}

//! What `[rl]` means, against inputs built by hand and against known results.

use pipestep_engine::{Bytes, Duration, Rate, Time};
use pipestep_rl::*;
use pipestep_scenario::RlScenario;

use crate::{MINIMAL, legal};

fn seconds(count: u64) -> Duration {
    Duration::from_nanos(count * 1_000_000_000)
}

fn rounds(text: &str, sets: &[&str]) -> RlScenario {
    legal(text, sets).rl.expect("it has rounds")
}

fn inputs(text: &str, sets: &[&str]) -> RlInputs {
    let rounds = rounds(text, sets);
    assert!(!rounds.needs_step());
    rounds.inputs(None).expect("legal")
}

/// 40 s of rollout, 16 s of update, 4 s of synchronisation.
const SHORT: &str = r#"
[rl]
mode = "sync"
batch = 8
rounds = 5
[rl.rollout]
engines = 2
slots = 4
token_time = "1 s"
lengths = 40
[rl.update]
time = "16 s"
[rl.sync]
time = "4 s"
"#;

#[test]
fn rounds_of_the_textbook_have_their_result() {
    assert_eq!(simulate(&inputs(SHORT, &[])).expect("it ends").round, seconds(60));
    assert_eq!(simulate(&inputs(SHORT, &["rl.mode=one-step-off"])).expect("it ends").round, seconds(44));
}

#[test]
fn what_is_left_out_of_rounds_has_its_default() {
    let read = inputs(SHORT, &[]);
    assert_eq!((read.launch, read.warmup, read.seed), (8, 1, 0));
    assert_eq!((read.keep, read.discard_older_than), (Keep::All, None));
    assert_eq!(read.scoring_start, ScoringStart::WholeBatch);
    assert_eq!((read.placement, read.faults, read.prices), (Placement::Separate, Faults::none(), None));
    let rollout = Rollout {
        engines: 2,
        slots: 4,
        token_time: TokenTime::Linear { base: seconds(1), per_response: Duration::ZERO },
        lengths: Distribution::fixed(40),
        prompt_tokens: 0,
        prefill_per_token: Duration::ZERO,
        resume: Duration::ZERO,
        copies: 1,
        speed: Fraction::ONE,
    };
    assert_eq!(read.rollout, rollout);
    assert_eq!(inputs(SHORT, &["rl.mode=stream"]).scoring_start, ScoringStart::AsFinished);
}

#[test]
fn several_responses_to_a_prompt() {
    let read = inputs(SHORT, &["rl.group={ responses = 4 }"]);
    assert_eq!(read.group, Group { responses: 4, launch: 4, cut: GroupCut::Each });
    let read = inputs(SHORT, &["rl.group={ responses = 4, launch = 6, cut = \"shortest\" }"]);
    assert_eq!(read.group, Group { responses: 4, launch: 6, cut: GroupCut::Shortest });
    assert_eq!(inputs(SHORT, &[]).group, Group::SINGLE);
}

#[test]
fn samples_bring_a_record_of_their_routing() {
    let set = "rl.update.record={ layers = 48, top_k = 8, identity = \"24 B\", rate = \"1 GB/s\" }";
    let record = inputs(SHORT, &[set]).update.record.expect("there is one");
    let rate = Rate::per_second(1_000_000_000).expect("above zero");
    let (identity, header) = (Bytes::new(24), Bytes::ZERO);
    assert_eq!(record, RoutingRecord { layers: 48, top_k: 8, bytes_per_id: 2, identity, header, rate });
    assert_eq!(inputs(SHORT, &[]).update.record, None);
}

#[test]
fn other_jobs_are_as_this_one_but_for_what_is_written() {
    let sharing = r#"
[rl.sharing]
handoff = "5 s"
[[rl.sharing.jobs]]
name = "as this one"
[[rl.sharing.jobs]]
name = "another"
batch = 16
lengths = [10, 20]
prompt_tokens = 7
update = { per_token = "1 ms" }
sync = "1 s"
"#;
    let text = format!("{SHORT}{sharing}");
    let read = inputs(&text, &["rl.launch=10"]);
    let found = read.sharing.clone().expect("two jobs");
    assert_eq!(found.handoff, seconds(5));
    let alone = RlInputs { sharing: None, ..read };
    assert_eq!(found.jobs[0].name, "as this one");
    assert_eq!(found.jobs[0].inputs, RlInputs { seed: 1, ..alone.clone() });
    let other = &found.jobs[1].inputs;
    assert_eq!((other.batch, other.launch, other.seed, other.rounds), (16, 16, 2, alone.rounds));
    assert_eq!(other.rollout.lengths.shape, Shape::List(vec![10, 20]));
    assert_eq!((other.rollout.prompt_tokens, other.rollout.engines), (7, 2));
    let per_token = Duration::from_nanos(1_000_000);
    assert_eq!(other.update.time, UpdateTime::PerToken { fixed: Duration::ZERO, per_token });
    assert_eq!(other.sync.time, SyncTime::Fixed(seconds(1)));
}

/// Every key of the stages and of what surrounds them.
const LONG: &str = r#"
[rl]
mode = "async"
batch = 512
warmup = 2
seed = 7
keep = 0.75
keep_by = "randomly"
discard_older_than = 4
staleness = 0.5
sync_every = 2
in_flight = "continue"
kv_cache = "recomputed"
scoring_start = "as-finished"

[[rl.scoring]]
name = "rules"
workers = 64
time = "0.5 s"

[[rl.scoring]]
name = "verifier"
kind = "verifier"
workers = 16
time = { fixed = "1 s", per_token = "1 ms" }
speed = "3/2"

[rl.rollout]
engines = 64
slots = 256
token_time = [{ running = 1, time = "20 ms" }, { running = 256, time = "45 ms" }]
lengths = { distribution = "lognormal", median = 2048, sigma = 0.8, cap = 16384 }
prompt_tokens = 512
prefill_per_token = "0.05 ms"
resume = "10 ms"
copies = 2
speed = 1.5

[rl.update]
mini_steps = 2
time = ["16 s", "17 s"]
handoff = "1 s"
prepare = "4 s"
finish = "2 s"

[rl.sync]
style = "staggered"
[rl.sync.transfer]
common = "16 GB"
experts = "400 GB"
expert_count = 128
ranks = 16
content = "own-shards"
fan_out = "broadcast"
send = "50 GB/s"
receive = "25 GB/s"
setup = "0.1 s"

[rl.faults]
engines = [{ engine = 3, at = "100 s", down = "60 s", responses = "kept" }]
random = { mean_time = "24 h", down = "60 s" }
mean_time_to_interruption = "1 h"
scorers = [{ pool = "verifier", at = "100 s" }]
restarts = [{ at = "1 h", down = "10 min", rollout = "kept" }]

[rl.prices]
engine = 32
worker = [0, 0.5]
"#;

#[test]
fn every_key_of_the_stages() {
    let read = inputs(LONG, &[]);
    let rule = AsyncRule {
        staleness: Fraction::new(1, 2).expect("a half"),
        sync_every: 2,
        in_flight: InFlight::Continue(KvCache::Recomputed),
    };
    assert_eq!(read.mode, Mode::Async(rule));
    assert_eq!(Some(read.keep), Fraction::new(3, 4).map(Keep::Randomly));
    assert_eq!((read.warmup, read.seed, read.discard_older_than), (2, 7, Some(4)));
    let points = [(1, 20_000_000), (256, 45_000_000)].map(|(n, nanos)| (n, Duration::from_nanos(nanos)));
    assert_eq!(read.rollout.token_time, TokenTime::Table(points.into()));
    let lengths = Distribution { shape: Shape::Lognormal { median: 2048.0, sigma: 0.8 }, cap: Some(16_384) };
    assert_eq!((read.rollout.lengths, read.rollout.copies), (lengths, 2));
    assert_eq!(Some(read.rollout.speed), Fraction::new(3, 2));
    let rules = ScoringTime::Sampled(Distribution::fixed(500_000_000));
    assert_eq!((read.scoring[0].kind, &read.scoring[0].time), (ScorerKind::Rules, &rules));
    let verifier = ScoringTime::PerToken { fixed: seconds(1), per_token: Duration::from_nanos(1_000_000) };
    assert_eq!((read.scoring[1].kind, &read.scoring[1].time), (ScorerKind::Verifier, &verifier));
    assert_eq!(read.update.time, UpdateTime::Each(vec![seconds(16), seconds(17)]));
    assert_eq!(
        (read.update.handoff, read.update.prepare, read.update.finish),
        (seconds(1), seconds(4), seconds(2))
    );
}

#[test]
fn every_key_of_what_surrounds_them() {
    let read = inputs(LONG, &[]);
    let transfer = Transfer {
        payload: Payload {
            common: Bytes::new(16_000_000_000),
            experts: Bytes::new(400_000_000_000),
            expert_count: 128,
            ranks: 16,
        },
        content: SyncContent::OwnShards,
        fan_out: FanOut::Broadcast,
        send: Rate::per_second(50_000_000_000).expect("above zero"),
        receive: Rate::per_second(25_000_000_000),
        setup: Duration::from_nanos(100_000_000),
    };
    assert_eq!((read.sync.style, read.sync.time), (SyncStyle::Staggered, SyncTime::Transfer(transfer)));
    let at = |count: u64| Time::from_nanos(count * 1_000_000_000);
    let faults = Faults {
        engine_failures: vec![EngineFailure {
            engine: 3,
            at: at(100),
            down: seconds(60),
            responses: Survival::Kept,
        }],
        random_engine_failures: Some(RandomFailures {
            mean_time: seconds(86_400),
            down: seconds(60),
            responses: Survival::Lost,
        }),
        mean_time_to_interruption: Some(seconds(3600)),
        scorer_stops: vec![ScorerStop { pool: 1, at: at(100), down: None }],
        restarts: vec![Restart { at: at(3600), down: seconds(600), rollout: Survival::Kept }],
    };
    assert_eq!(read.faults, faults);
    let prices = Prices { engine_hour: 32.0, trainer_hour: 0.0, worker_hour: vec![0.0, 0.5] };
    assert_eq!(read.prices, Some(prices));
}

#[test]
fn devices_that_take_turns() {
    let memory = r#"
[rl.memory]
capacity = "80 GB"
items = [
    { name = "training state", bytes = "59 GiB", held = "training", rate = "25 GB/s" },
    { name = "weights", bytes = "15 GiB", held = "rollout", read_from = "training state" },
    { name = "common", bytes = "2 GiB", held = "both" },
]
"#;
    let text = format!("{SHORT}{memory}");
    let sets = ["rl.placement=colocated", "rl.to_training=5 s"];
    let Placement::Colocated(switching) = inputs(&text, &sets).placement else { panic!("colocated") };
    assert_eq!((switching.to_training, switching.to_rollout), (seconds(5), Duration::ZERO));
    let memory = switching.memory.expect("there is some");
    assert_eq!(memory.items[1].read_from, Some(0));
    assert_eq!((memory.items[2].held, memory.order), (HeldIn::Both, SwitchOrder::LowestPeak));

    let moves = [
        "rl.memory.to_rollout=[{ load = \"weights\" }, { release = \"training state\" }]",
        "rl.memory.to_training=[{ release = \"weights\" }, { load = \"training state\" }]",
    ];
    let ordered = [&sets[..], &moves].concat();
    let Placement::Colocated(switching) = inputs(&text, &ordered).placement else { panic!("colocated") };
    let order = SwitchOrder::Given {
        to_rollout: vec![MemoryMove::Load(1), MemoryMove::Release(0)],
        to_training: vec![MemoryMove::Release(1), MemoryMove::Load(0)],
    };
    assert_eq!(switching.memory.expect("there is some").order, order);
}

#[test]
fn lengths_come_from_a_list_a_file_or_a_distribution() {
    let lengths = |set: &str| inputs(SHORT, &[&format!("rl.rollout.lengths={set}")]).rollout.lengths;
    assert_eq!(lengths("[10, 20, 30]").shape, Shape::List(vec![10, 20, 30]));
    let measured = lengths("{ distribution = \"empirical\", file = \"lengths.txt\", cap = 4096 }");
    assert_eq!(measured, Distribution { shape: Shape::Empirical(vec![120, 2048, 9000]), cap: Some(4096) });
    let tail = lengths("{ distribution = \"pareto\", minimum = 100, alpha = 1.5 }").shape;
    assert_eq!(tail, Shape::Pareto { minimum: 100.0, alpha: 1.5 });
    let Shape::Lognormal { median, sigma } =
        lengths("{ distribution = \"lognormal\", mean = 1000, variation = 1 }").shape
    else {
        panic!("lognormal")
    };
    assert!((median - 1000.0 / 2_f64.sqrt()).abs() < 1e-9 && (sigma - 2_f64.ln().sqrt()).abs() < 1e-12);
}

#[test]
fn an_update_takes_as_long_as_the_step_of_the_file() {
    let model = "[model]\npreset = \"qwen3-8b\"\nsequence_length = 128\n";
    let text = format!("{MINIMAL}{model}{}", SHORT.replace("[rl.update]\ntime = \"16 s\"", "[rl.update]"));
    let rounds = rounds(&text, &[]);
    assert!(rounds.needs_step());
    assert!(rounds.inputs(None).is_err());
    let read = rounds.inputs(Some(seconds(3))).expect("legal");
    assert_eq!(read.update.time, UpdateTime::Scaled { step: seconds(3), tokens: 8 * 128 });
    // The weights are those of the model, too.
    let sync = "[rl.sync.transfer]\nsend = \"50 GB/s\"";
    let text = text.replace("[rl.sync]\ntime = \"4 s\"", sync);
    let SyncTime::Transfer(transfer) =
        self::rounds(&text, &[]).inputs(Some(seconds(3))).expect("legal").sync.time
    else {
        panic!("a transfer")
    };
    assert_eq!(transfer.payload.common, Bytes::new(2 * 8_190_735_360));
}

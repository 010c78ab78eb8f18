//! Our own schedules against other programs' of the same name, and against the Zero Bubble paper's table 5:
//! equal, or no longer within no more memory.

use pipestep_schedule::{Timed, time};
use serde_json::Value;

use crate::support::{equal, plan, shape_of};

const PEERS: &str = include_str!("data/peers.json");
const TABLE5: &str = include_str!("data/zero_bubble_table5.json");
const V_HALF: &str = include_str!("data/vhalf_p4_m8_unit.json");

/// Names for which the makespan, the longest span and each rank's peak are to be equal.
const EXACT: [(&str, &str); 11] = [
    ("GPipe", "fill-drain"),
    ("1F1B", "1f1b"),
    ("Interleaved 1F1B", "interleaved"),
    ("Interleaved zero bubble", "interleaved-zb"),
    ("Looped BFS", "looped-bfs"),
    ("ZB-H1", "zb-h1"),
    ("ZB-H2", "zb-h2"),
    ("ZB-V (PyTorch)", "zb-v"),
    ("DualPipe", "dualpipe"),
    ("DualPipeV", "dualpipe-v"),
    ("Hanayo", "hanayo"),
];
/// Names for which ours is to be no longer, with no higher peak.
const NO_WORSE: [(&str, &str); 6] = [
    ("1F1B-V", "1f1b-v"),
    ("ZB-1p (automatic)", "zb-1p"),
    ("ZB-2p (automatic)", "zb-2p"),
    ("ZB-V", "zb-v-auto"),
    ("V-Half", "v-half"),
    ("V-Min", "v-min"),
];

fn nanoseconds(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1e6).round() as u64
}

/// Times our schedule under costs, half of the saved bytes freed at `I` for `zb-1p` and `zb-2p`.
fn timed(name: &str, numbers: [usize; 3], times: [u64; 3], message: u64) -> (Timed, Vec<f64>) {
    let [p, m, v] = numbers;
    let shape = shape_of(name, p, v, m);
    let halves = if matches!(name, "zb-1p" | "zb-2p") { 50 } else { 0 };
    let weights = equal(&shape, times, message, halves);
    let orders = plan(name, &shape, &weights, &[]).unwrap();
    orders.validate(&shape).unwrap();
    let timed = time(&orders, &shape, &weights).unwrap();
    let peaks = timed.peaks.iter().map(|&bytes| bytes as f64 / 12e6).collect();
    (timed, peaks)
}

#[test]
fn ours_are_as_good_as_other_programs() {
    let peers: Vec<Value> = serde_json::from_str(PEERS).unwrap();
    for peer in peers {
        let id = peer["id"].as_str().unwrap();
        let schedule = peer["schedule"].as_str().unwrap();
        let numbers = ["p", "m", "v"].map(|key| peer[key].as_u64().unwrap() as usize);
        let times = ["F", "B", "W"].map(|key| nanoseconds(&peer["durations_per_chunk"][key]));
        let named = |list: &[(&str, &'static str)]| {
            list.iter().find(|&&(theirs, _)| theirs == schedule).map(|&(_, ours)| ours)
        };
        let exact = named(&EXACT);
        let name = exact.or_else(|| named(&NO_WORSE)).unwrap_or_else(|| panic!("{schedule} is unknown"));
        let (timed, peaks) = timed(name, numbers, times, nanoseconds(&peer["comm"]));
        let (makespan, longest) = (nanoseconds(&peer["makespan"]), nanoseconds(&peer["longest"]));
        let list = |key: &str| -> Vec<f64> {
            peer[key].as_array().unwrap().iter().map(|peak| peak.as_f64().unwrap()).collect()
        };
        if exact.is_some() {
            assert!(timed.makespan.abs_diff(makespan) < 20_000, "{id}: makespan {}", timed.makespan);
            assert!(timed.longest_span.abs_diff(longest) < 20_000, "{id}: span {}", timed.longest_span);
            let near = |(ours, theirs): (&f64, &f64)| (ours - theirs).abs() < 1e-5;
            assert!(peaks.iter().zip(&list("peaks")).all(near), "{id}: peaks {peaks:?}");
        } else {
            let theirs =
                list(if name.starts_with("zb-1p") || name == "zb-2p" { "half_peaks" } else { "peaks" });
            let most = |peaks: &[f64]| peaks.iter().copied().fold(0.0, f64::max);
            assert!(timed.longest_span <= longest + 20_000, "{id}: span {}", timed.longest_span);
            assert!(most(&peaks) <= most(&theirs) + 1e-5, "{id}: peaks {peaks:?}");
        }
    }
}

#[test]
fn bubbles_are_those_of_zero_bubbles_table_5() {
    let table: Vec<Value> = serde_json::from_str(TABLE5).unwrap();
    for row in table {
        let [p, m] = ["p", "m"].map(|key| row[key].as_u64().unwrap() as usize);
        let [forward, input, weight, message] = [0, 1, 2, 3].map(|index| nanoseconds(&row["times"][index]));
        let ideal = (m as u64 * (forward + input + weight)) as f64;
        for (label, name, limit) in [
            ("1F1B", "1f1b", p),
            ("ZB-H1", "zb-h1", p),
            ("ZB-H2", "zb-h2", 2 * p - 1),
            ("ZB-1p", "zb-1p", p),
            ("ZB-2p", "zb-2p", 2 * p),
        ] {
            let (timed, peaks) = timed(name, [p, m, 1], [forward, input, weight], message);
            let bubble = 1.0 - ideal / timed.longest_span as f64;
            let printed = row["bubble"][label].as_f64().unwrap();
            let good = if name.ends_with('p') { bubble <= printed } else { (bubble - printed).abs() <= 0.0 };
            assert!(good || (bubble - printed).abs() < 6e-5, "{row} {name}: {bubble}, printed {printed}");
            assert!(peaks.iter().all(|&peak| peak <= limit as f64 + 1e-5), "{row} {name}: {peaks:?}");
        }
    }
}

/// V-Half and V-Min reach the papers' lower bound for equal passes, 6m + 6p - 1 - 3k with k chunks in memory.
#[test]
fn v_half_and_v_min_meet_the_bound() {
    for (p, m) in [(4, 8), (6, 12), (8, 24), (16, 64), (5, 11), (9, 27)] {
        for (name, micro_batches) in [("v-half", p / 2 + 1), ("v-min", (p + 4) / 3)] {
            let (timed, peaks) = timed(name, [p, m, 2], [1_000_000; 3], 0);
            let bound = (6 * m + 6 * p - 1 - 6 * micro_batches) as u64 * 1_000_000;
            assert_eq!(timed.makespan, bound, "{name} p={p} m={m}");
            assert!(peaks.iter().all(|&peak| peak <= micro_batches as f64), "{name} p={p} m={m}: {peaks:?}");
        }
    }
}

/// The timing itself, against the start and end of every operation of another program's schedule.
#[test]
fn times_are_another_programs() {
    let data: Value = serde_json::from_str(V_HALF).unwrap();
    let shape = shape_of("v-half", 4, 2, 8);
    let kinds = [("F", 'F'), ("B", 'I'), ("W", 'W')];
    let mut expected = Vec::new();
    let lists = data["devices"].as_array().unwrap().iter().map(|device| {
        let ops = device.as_array().unwrap().iter().map(|op| {
            let letter = kinds.iter().find(|(theirs, _)| op[0] == *theirs).unwrap().1;
            expected.push((nanoseconds(&op[3]), nanoseconds(&op[4])));
            format!("{}{letter}{}", op[2], op[1]).parse().unwrap()
        });
        ops.collect::<Vec<pipestep_schedule::Op>>()
    });
    let orders = pipestep_schedule::Orders::from_lists(lists.collect::<Vec<_>>());
    let timed = time(&orders, &shape, &equal(&shape, [1_000_000; 3], 0, 0)).unwrap();
    let found: Vec<(u64, u64)> = timed.starts.into_iter().zip(timed.ends).collect();
    assert_eq!(found, expected);
}

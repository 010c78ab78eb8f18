//! Colocated memory: the peaks of the books, and the order that is found.

use crate::common::*;
use pipestep_engine::{Bytes, Rate};
use pipestep_rl::*;
use serde_json::Value;

fn item(name: &str, bytes: u64, held: HeldIn) -> MemoryItem {
    MemoryItem { name: name.to_owned(), bytes: Bytes::new(bytes), held, read_from: None, rate: None }
}

/// Training state 0, weights 1 (read from it), KV pool 2, common 3.
fn colocated(training: u64, weights: u64, kv: u64, common: u64, capacity: u64) -> ColocatedMemory {
    let mut weights = item("rollout weights", weights, HeldIn::Rollout);
    weights.read_from = Some(0);
    ColocatedMemory {
        items: vec![
            item("training state", training, HeldIn::Training),
            weights,
            item("KV pool", kv, HeldIn::Rollout),
            item("common", common, HeldIn::Both),
        ],
        capacity: Bytes::new(capacity),
        order: SwitchOrder::LowestPeak,
    }
}

/// Loads everything before it releases anything.
fn restore_all() -> SwitchOrder {
    use MemoryMove::{Load, Release};
    SwitchOrder::Given {
        to_rollout: vec![Load(1), Load(2), Release(0)],
        to_training: vec![Release(1), Release(2), Load(0)],
    }
}

#[test]
fn the_book_s_switch_fits_only_in_stages() {
    use MemoryMove::{Load, Release};
    let case: Value = oracle(include_str!("../data/book_rl.json"))["colocated_memory_case"].clone();
    let given = |key: &str| whole(&case["scenario"][key]);
    let expect = |key: &str| Bytes::new(whole(&case["expect"][key]));
    let mut memory = colocated(
        given("training_live_bytes"),
        given("weights_bytes"),
        given("kv_pool_bytes"),
        given("common_bytes"),
        given("capacity_bytes"),
    );
    let staged = memory.plan().unwrap();
    assert_eq!((staged.training, staged.rollout), (expect("training"), expect("rollout")));
    let expected = [
        (Load(1), expect("sync_weights_before_release")),
        (Release(0), expect("after_release_before_kv")),
        (Load(2), expect("rollout")),
    ];
    assert_eq!(staged.to_rollout.moves, expected);
    assert_eq!(staged.to_rollout.peak, expect("staged_peak"));
    assert_eq!(staged.fits, case["expect"]["staged_fits"].as_bool().unwrap());

    memory.order = restore_all();
    let all = memory.plan().unwrap();
    assert_eq!(all.to_rollout.peak, expect("restore_all_before_release"));
    assert_eq!(all.fits, case["expect"]["restore_all_fits"].as_bool().unwrap());
}

#[test]
fn the_peaks_in_gib_are_those_of_the_textbook() {
    let file = oracle(include_str!("../data/rl_rounds.json"));
    let textbook = &file["textbook"]["weight_memory_gib"];
    let bytes = |key: &str| (textbook["inputs"][key].as_f64().unwrap() * f64::from(1 << 30)).round() as u64;
    let gib = |bytes: Bytes| bytes.get() as f64 / f64::from(1 << 30);
    let mut memory = colocated(
        bytes("training_state"),
        bytes("rollout_weights"),
        bytes("kv_pool"),
        bytes("common"),
        bytes("device"),
    );
    let expected = |key: &str| textbook["expected"][key].as_f64().unwrap();
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    let staged = memory.plan().unwrap();
    near(gib(staged.peak), expected("stage_weights_then_free_then_kv"));
    near(gib(staged.rollout), expected("rollout"));
    near(gib(staged.training), expected("training"));
    assert!(staged.fits);
    memory.order = restore_all();
    let all = memory.plan().unwrap();
    near(gib(all.peak), expected("load_all_then_free"));
    assert!(!all.fits);
}

/// Against all orders of small random switches.
#[test]
fn no_order_has_a_lower_peak_than_the_one_found() {
    let mut state = 7_u64;
    let mut next = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % bound
    };
    for _ in 0..200 {
        let items: Vec<MemoryItem> = (0..6_usize)
            .map(|index| {
                let held = [HeldIn::Training, HeldIn::Rollout, HeldIn::Both][next(3) as usize];
                let mut item = item(&format!("item {index}"), next(50), held);
                item.read_from = (index > 0 && next(3) == 0).then(|| next(index as u64) as usize);
                item
            })
            .collect();
        let mut memory = ColocatedMemory { items, capacity: Bytes::new(60), order: SwitchOrder::LowestPeak };
        let Ok(found) = memory.plan() else {
            continue;
        };
        let moves: Vec<MemoryMove> = found.to_rollout.moves.iter().map(|&(step, _)| step).collect();
        let back: Vec<MemoryMove> = found.to_training.moves.iter().map(|&(step, _)| step).collect();
        for order in permutations(&moves) {
            memory.order = SwitchOrder::Given { to_rollout: order, to_training: back.clone() };
            if let Ok(other) = memory.plan() {
                assert!(other.to_rollout.peak >= found.to_rollout.peak, "{memory:?}");
            }
        }
    }
}

fn permutations(moves: &[MemoryMove]) -> Vec<Vec<MemoryMove>> {
    if moves.is_empty() {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for (index, &first) in moves.iter().enumerate() {
        let mut rest = moves.to_vec();
        rest.remove(index);
        for mut order in permutations(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

#[test]
fn moves_take_time_and_the_switch_with_them() {
    let mut memory = colocated(40, 15, 24, 4, 100);
    for item in &mut memory.items {
        item.rate = Rate::new(10, SECOND);
    }
    let plan = memory.plan().unwrap();
    assert_eq!(plan.to_rollout.time, nanos(79 * SECOND / 10));
    let mut inputs = cycle(Mode::Sync, 40, 16, 4);
    inputs.placement = Placement::Colocated(Switching {
        to_training: seconds(1),
        to_rollout: seconds(1),
        memory: Some(memory),
    });
    let outcome = simulate(&inputs).unwrap();
    assert_eq!(outcome.round, nanos((60 + 2) * SECOND + 2 * 79 * SECOND / 10));
    assert_eq!(outcome.memory, Some(plan));
}

#[test]
fn orders_that_contradict_themselves_are_refused() {
    use MemoryMove::{Load, Release};
    let refused = |to_rollout: Vec<MemoryMove>, part: &str| {
        let mut memory = colocated(40, 15, 24, 4, 100);
        memory.order = SwitchOrder::Given { to_rollout, to_training: vec![Release(1), Release(2), Load(0)] };
        let error = memory.plan().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("rollout"), "{error}");
    };
    refused(vec![Release(0), Load(1), Load(2)], "cannot be read");
    refused(vec![Load(1), Load(1)], "moved twice");
    refused(vec![Load(1), Release(0)], "`KV pool` is not moved");
    refused(vec![Load(3)], "not to be loaded");
    refused(vec![Release(9)], "not to be released");
}

//! Orders against PyTorch's own and a textbook's, operation by operation.

use pipestep_schedule::{Shape, Weights, find, time};

use crate::support::{fnv, of_class, plan, rows, shape_of, text};

const HASHES: &str = include_str!("data/pytorch_orders.txt");
const SMALL: &str = include_str!("data/pytorch_small_orders.txt");
const REFUSALS: &str = include_str!("data/pytorch_refusals.txt");
const BOOK: &str = include_str!("data/book_orders.txt");

#[test]
fn small_orders_are_pytorchs() {
    for case in SMALL.split("# ").skip(1) {
        let (head, expected) = case.split_once('\n').unwrap();
        let words: Vec<&str> = head.split(' ').collect();
        let (name, options) = of_class(words[0]);
        let [p, m, v] = [1, 2, 3].map(|index| words[index].parse::<usize>().unwrap());
        let shape = shape_of(name, p, v, m);
        let orders = plan(name, &shape, &Weights::unit(&shape), options).unwrap();
        assert_eq!(text(&orders), expected.trim_end(), "{head}");
    }
}

#[test]
fn all_orders_peaks_and_makespans_are_pytorchs() {
    let cases = rows(HASHES);
    assert!(cases.len() > 450, "{}", cases.len());
    for words in cases {
        let (name, options) = of_class(words[0]);
        let [p, m, v, makespan] = [1, 2, 3, 5].map(|index| words[index].parse::<usize>().unwrap());
        let shape = shape_of(name, p, v, m);
        let weights = Weights::unit(&shape);
        let orders = plan(name, &shape, &weights, options).unwrap();
        assert_eq!(format!("{:016x}", fnv(&text(&orders))), words[6], "{words:?}");
        let timed = time(&orders, &shape, &weights).unwrap();
        let peak = timed.peaks.iter().max().unwrap();
        // PyTorch counts both parts of a pair at once; the order alone frees one before, or adds one after.
        if words[0] != "DualPipeV" {
            assert_eq!(peak.to_string(), words[4], "{words:?}");
            assert_eq!(timed.makespan, makespan as u64, "{words:?}");
        }
    }
}

#[test]
fn what_pytorchs_classes_refuse_is_refused() {
    for words in rows(REFUSALS) {
        let (name, options) = of_class(words[0]);
        let [p, m, v] = [1, 2, 3].map(|index| words[index].parse::<u64>().unwrap());
        let entry = find(name).unwrap().entry();
        let shape = Shape::new(p, v, m, entry.placement).unwrap();
        let chunks_fit = entry.chunks.allows(v);
        let planned = chunks_fit.then(|| plan(name, &shape, &Weights::unit(&shape), options));
        match words[4] {
            "two-stages" => assert!(!chunks_fit, "{words:?}"),
            // Our 1F1B also takes fewer micro-batches than ranks.
            "m-lt-stages" => assert!(planned.unwrap().unwrap().validate(&shape).is_ok(), "{words:?}"),
            _ => assert!(planned.unwrap().is_err(), "{words:?}"),
        }
    }
}

#[test]
fn orders_are_the_textbooks() {
    for words in rows(BOOK) {
        let [p, m, v] = [1, 2, 3].map(|index| words[index].parse::<usize>().unwrap());
        let shape = shape_of(words[0], p, v, m);
        let orders = plan(words[0], &shape, &Weights::unit(&shape), &[]).unwrap();
        assert_eq!(format!("{:016x}", fnv(&text(&orders))), words[4], "{words:?}");
    }
}

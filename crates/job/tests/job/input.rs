//! Input: the book's packs through storage, CPU, copy and step.

use pipestep_engine::{Bytes, Duration, Interval, Rate};
use pipestep_job::{InputError, JobError, Sample, Supply, SupplyCheckpoints, supply};
use serde_json::Value;

use crate::support::{data, ratio};

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

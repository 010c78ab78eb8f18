//! Published figures, from a scenario's text to the result.
//!
//! Table 5 of the Zero Bubble paper (Qi et al. 2023, arXiv:2401.10241): bubble rates of six schedules for the
//! times of table 9. "Bubble rate" there is by the longest span of a rank.

use pipestep::scenario::{no_files, parse};
use pipestep::step::{Summary, summary};

/// One row of tables 5 and 9.
struct Row {
    ranks: u64,
    micro_batches: u64,
    /// Chunks a rank that the interleaved entry stands for, by the layers of the model.
    chunks: u64,
    /// `T_F`, `T_B`, `T_W` and `T_comm` in ns.
    times: [u64; 4],
    /// 1F1B, interleaved, ZB-H1, ZB-H2, ZB-1p, ZB-2p, as printed.
    rates: [f64; 6],
}

/// By model: 1.5B, 6.2B, 14.6B, 28.3B.
#[rustfmt::skip]
const ROWS: [Row; 12] = [
    Row { ranks: 8, micro_batches: 24, chunks: 3, times: [18_522_000, 18_086_000, 9_337_000, 601_000], rates: [0.2431, 0.1055, 0.1585, 0.1083, 0.1585, 0.0433] },
    Row { ranks: 8, micro_batches: 32, chunks: 3, times: [18_513_000, 18_086_000, 9_331_000, 626_000], rates: [0.1985, 0.0818, 0.1242, 0.0837, 0.1242, 0.0039] },
    Row { ranks: 8, micro_batches: 64, chunks: 3, times: [18_546_000, 18_097_000, 9_321_000, 762_000], rates: [0.124, 0.0443, 0.0674, 0.0444, 0.0674, 0.0026] },
    Row { ranks: 8, micro_batches: 24, chunks: 4, times: [29_718_000, 29_444_000, 19_927_000, 527_000], rates: [0.2347, 0.0808, 0.1323, 0.0698, 0.1323, 0.0029] },
    Row { ranks: 8, micro_batches: 32, chunks: 4, times: [29_802_000, 29_428_000, 19_530_000, 577_000], rates: [0.1898, 0.0628, 0.1045, 0.0559, 0.1045, 0.0022] },
    Row { ranks: 8, micro_batches: 64, chunks: 4, times: [29_935_000, 29_621_000, 19_388_000, 535_000], rates: [0.1091, 0.032, 0.0554, 0.0294, 0.0554, 0.001] },
    Row { ranks: 16, micro_batches: 48, chunks: 3, times: [11_347_000, 11_248_000, 8_132_000, 377_000], rates: [0.2552, 0.1104, 0.1397, 0.0672, 0.1397, 0.0066] },
    Row { ranks: 16, micro_batches: 64, chunks: 3, times: [11_307_000, 11_254_000, 8_101_000, 379_000], rates: [0.2082, 0.0852, 0.1088, 0.0516, 0.1088, 0.0054] },
    Row { ranks: 16, micro_batches: 128, chunks: 3, times: [11_325_000, 11_308_000, 8_109_000, 378_000], rates: [0.1251, 0.0445, 0.0576, 0.0266, 0.0576, 0.0028] },
    Row { ranks: 32, micro_batches: 96, chunks: 2, times: [10_419_000, 10_207_000, 7_715_000, 408_000], rates: [0.2646, 0.1493, 0.1421, 0.0641, 0.1421, 0.0038] },
    Row { ranks: 32, micro_batches: 128, chunks: 2, times: [10_408_000, 10_204_000, 7_703_000, 408_000], rates: [0.2168, 0.1164, 0.1106, 0.049, 0.1106, 0.0029] },
    Row { ranks: 32, micro_batches: 256, chunks: 2, times: [10_402_000, 10_248_000, 7_698_000, 460_000], rates: [0.1352, 0.0624, 0.0594, 0.0257, 0.0594, 0.0018] },
];

/// Half a unit of the last digit printed, and what the printed times were rounded by.
const PRINTED: f64 = 0.000_06;
/// Bytes that a rank keeps of a micro-batch; divides by every number of chunks.
const SAVED: u64 = 12_000_000;

impl Row {
    /// The step of this row under a schedule.
    fn simulate(&self, schedule: &str, chunks: u64, released: &str) -> Summary {
        let [forward, input, weight, message] = self.times;
        let text = format!(
            "[pipeline]\nranks = {}\nmicro_batches = {}\nschedule = \"{schedule}\"\nchunks = {chunks}\n\
             [time]\nforward = \"{forward} ns\"\nbackward = \"{} ns\"\n\
             weight_gradient_fraction = \"{weight}/{}\"\n\
             [transfer]\nactivation = \"{message} ns\"\ngradient = \"{message} ns\"\n\
             wraparound = \"{message} ns\"\nlinks = \"unlimited\"\n\
             [memory]\nsaved_per_micro_batch = \"{SAVED} B\"\nreleased_at_input_gradient = {released}\n",
            self.ranks,
            self.micro_batches,
            input + weight,
            input + weight,
        );
        let scenario = parse(&text, "table 5", &[], &no_files).unwrap_or_else(|errors| panic!("{errors}"));
        let step = scenario.step.expect("it has a pipeline");
        summary(&step.inputs, step.plan().expect("the shape is legal")).expect("it runs")
    }

    /// m (`T_F` + `T_B` + `T_W`).
    fn ideal(&self) -> u64 {
        self.micro_batches * self.times[..3].iter().sum::<u64>()
    }
}

/// The highest peak of a rank, in micro-batches.
fn peak(summary: &Summary) -> f64 {
    summary.highest_peak().1.get() as f64 / SAVED as f64
}

#[test]
fn fixed_schedules_have_the_printed_bubble_to_four_decimals() {
    for row in ROWS {
        for (schedule, printed) in [("1f1b", row.rates[0]), ("zb-h1", row.rates[2]), ("zb-h2", row.rates[3])]
        {
            let found = row.simulate(schedule, 1, "0.0").bubble().by_longest_span;
            let id = format!("{schedule}, p = {}, m = {}", row.ranks, row.micro_batches);
            assert!((found - printed).abs() <= PRINTED, "{id}: {found:.5}, printed {printed}");
        }
    }
}

#[test]
fn automatic_schedules_are_at_least_as_good_within_their_limits() {
    for row in ROWS {
        for (schedule, printed, limit) in
            [("zb-1p", row.rates[4], row.ranks), ("zb-2p", row.rates[5], 2 * row.ranks)]
        {
            let summary = row.simulate(schedule, 1, "0.5");
            let found = summary.bubble().by_longest_span;
            let id = format!("{schedule}, p = {}, m = {}", row.ranks, row.micro_batches);
            assert!(found <= printed + PRINTED, "{id}: {found:.5}, printed {printed}");
            assert!(peak(&summary) <= limit as f64 + 1e-5, "{id}: {} micro-batches", peak(&summary));
        }
    }
}

/// The paper's closed form for interleaved 1F1B lacks p `T_comm` of what the order takes: `docs/validation.md`.
#[test]
fn the_interleaved_entry_is_a_closed_form_and_the_simulation_takes_a_little_longer() {
    for row in ROWS {
        let [forward, input, weight, message] = row.times;
        let (p, v) = (row.ranks, row.chunks);
        let fill = (p - 1) * (forward + input + weight) / v;
        let closed = row.ideal() + fill + (2 * p * v - p - 2) * message;
        let rate = |span: u64| 1.0 - row.ideal() as f64 / span as f64;
        let id = format!("p = {p}, m = {}, v = {v}", row.micro_batches);
        let printed = row.rates[1];
        assert!((rate(closed) - printed).abs() <= PRINTED, "{id}: {:.5}, printed {printed}", rate(closed));

        let span = row.simulate("interleaved", v, "0.0").longest_span.as_nanos();
        // Chunks' shares of a rank's times are rounded, by half a nanosecond an operation at most.
        let rounding = 2 * row.micro_batches * v;
        assert!(span.abs_diff(closed + p * message) <= rounding, "{id}: {span} ns, closed form {closed} ns");
        assert!(rate(span) - printed < 0.003_6, "{id}: {:.5}, printed {printed}", rate(span));
    }
}

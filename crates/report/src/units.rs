//! Numbers as a reader wants them: exact where it matters, in the unit a person would choose.
//!
//! The rule: what is rounded says so by carrying the exact number beside it, or stands where only the size
//! matters (table cells, axes).

use pipestep_engine::{Bytes, Duration};

/// `965,758,976`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 sample`, `1,024 samples`: a number of things whose plural ends in s.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}

/// A unit of an axis or a label: its name and how many base units (ns or bytes) it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) size: f64,
}

const fn unit(name: &'static str, size: f64) -> Unit {
    Unit { name, size }
}

const BYTE_UNITS: [Unit; 4] = [unit("TB", 1e12), unit("GB", 1e9), unit("MB", 1e6), unit("kB", 1e3)];
const TIME_UNITS: [Unit; 7] = [
    unit("d", 86_400e9),
    unit("h", 3_600e9),
    unit("min", 60e9),
    unit("s", 1e9),
    unit("ms", 1e6),
    unit("us", 1e3),
    unit("ns", 1.0),
];

/// The unit in which amounts up to `largest` bytes read best: GB from 0.1 GB on, as the field does.
pub(crate) fn byte_unit(largest: u64) -> Unit {
    let reads_well = |unit: &&Unit| match unit.name {
        "TB" => largest as f64 >= unit.size,
        _ => largest as f64 >= unit.size / 10.0,
    };
    BYTE_UNITS.iter().find(reads_well).copied().unwrap_or(unit("B", 1.0))
}

/// The unit in which times up to `largest` read best on an axis: ten of it at least, so that ticks are round.
pub(crate) fn time_unit(largest: Duration) -> Unit {
    let nanos = largest.as_nanos() as f64;
    let reads_well = |unit: &&Unit| match unit.name {
        "d" | "h" | "min" => nanos >= 5.0 * unit.size,
        _ => nanos >= 10.0 * unit.size,
    };
    TIME_UNITS.iter().find(reads_well).copied().unwrap_or(unit("ns", 1.0))
}

/// `0.97 GB`, `112 GB`, `512 B`: two decimals at most.
pub(crate) fn bytes_short(bytes: Bytes) -> String {
    let unit = byte_unit(bytes.get());
    format!("{} {}", trimmed(bytes.get() as f64 / unit.size, 2), unit.name)
}

/// `965,758,976 B (0.97 GB)`.
pub(crate) fn bytes_exact(bytes: Bytes) -> String {
    let exact = format!("{} B", grouped(bytes.get()));
    match byte_unit(bytes.get()).name {
        "B" => exact,
        _ => format!("{exact} ({})", bytes_short(bytes)),
    }
}

/// `347 ms`; with the nanoseconds behind it where that is rounded: `1.235 s (1,234,567,890 ns)`.
pub(crate) fn time_exact(time: Duration) -> String {
    let shown = time.to_string();
    if is_exact(time) {
        return shown;
    }
    format!("{shown} ({} ns)", grouped(time.as_nanos()))
}

/// `504.32 ± 0.34 ms`: a mean in ns with its standard error, to two digits of that; five digits without an error.
pub(crate) fn time_with_error(nanos: f64, error: f64) -> String {
    let sizes = [86_400e9, 3_600e9, 1e9, 1e6, 1e3, 1.0].into_iter().zip(["d", "h", "s", "ms", "us", "ns"]);
    let (size, name) = sizes.into_iter().find(|(size, _)| nanos.abs() >= *size).unwrap_or((1.0, "ns"));
    let (value, error) = (nanos / size, error / size);
    let digits =
        |value: f64, count: f64| (count - 1.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    if error > 0.0 {
        let decimals = digits(error, 2.0);
        return format!("{value:.decimals$} ± {error:.decimals$} {name}");
    }
    format!("{} {name}", trimmed(value, if value == 0.0 { 0 } else { digits(value, 5.0) }))
}

/// Whether [`Duration`]'s text, which has three decimals, says it all.
fn is_exact(time: Duration) -> bool {
    let nanos = time.as_nanos();
    let sizes = [86_400_000_000_000, 3_600_000_000_000, 1_000_000_000, 1_000_000, 1_000_u64];
    let found = sizes.into_iter().find(|&size| nanos >= size);
    found.is_none_or(|size| nanos.is_multiple_of(size / 1_000))
}

/// A share as `30.6 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number with at most so many decimals and no zeros at the end.
pub(crate) fn trimmed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Round positions of ticks from `from` to `to`, about `wanted` of them, and the decimals their labels need.
pub(crate) fn ticks(from: f64, to: f64, wanted: usize) -> (Vec<f64>, usize) {
    let span = to - from;
    if !span.is_finite() || span <= 0.0 {
        return (vec![from], 0);
    }
    let rough = span / wanted.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = power * steps.into_iter().find(|step| power * step >= rough * 0.999).unwrap_or(10.0);
    // The slack keeps a last tick that rounding has pushed a hair past the end.
    let (first, last) = ((from / step - 1e-9).ceil() as i64, (to / step + 1e-9).floor() as i64);
    let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    ((first..=last).map(|index| index as f64 * step).collect(), decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!(
            [0, 1, 1_024].map(|count| counted(count, "point")),
            ["0 points", "1 point", "1,024 points"]
        );
    }

    #[test]
    fn numbers_of_the_headline() {
        assert_eq!(bytes_exact(Bytes::new(965_758_976)), "965,758,976 B (0.97 GB)");
        assert_eq!(bytes_exact(Bytes::new(2_566_434_816)), "2,566,434,816 B (2.57 GB)");
        assert_eq!(time_exact(Duration::from_nanos(347_000_000)), "347 ms");
        assert_eq!(percent(0.305_78), "30.6 %");
    }

    #[test]
    fn means_have_two_digits_of_their_error() {
        assert_eq!(time_with_error(504_319_000.0, 340_876.0), "504.32 ± 0.34 ms");
        assert_eq!(time_with_error(31.165 * 86_400e9, 588e9), "31.1650 ± 0.0068 d");
        assert_eq!(time_with_error(1_999.0, 15_000.0), "2 ± 15 us");
        assert_eq!(time_with_error(514_594_000.0, 0.0), "514.59 ms");
        assert_eq!((time_with_error(0.0, 0.0), time_with_error(42.0, 0.0)), ("0 ns".into(), "42 ns".into()));
    }

    #[test]
    fn bytes_come_in_a_unit_that_reads_well() {
        let shown = |bytes| bytes_exact(Bytes::new(bytes));
        assert_eq!(shown(0), "0 B");
        assert_eq!(shown(99), "99 B");
        assert_eq!(shown(1_048_576), "1,048,576 B (1.05 MB)");
        assert_eq!(shown(241_000_000), "241,000,000 B (0.24 GB)");
        assert_eq!(shown(112_000_000_000), "112,000,000,000 B (112 GB)");
        assert_eq!(shown(1_400_000_000_000), "1,400,000,000,000 B (1.4 TB)");
    }

    #[test]
    fn a_rounded_time_says_its_nanoseconds() {
        let shown = |nanos| time_exact(Duration::from_nanos(nanos));
        assert_eq!(shown(1_500_000_000), "1.5 s");
        assert_eq!(shown(1_234_567_890), "1.235 s (1,234,567,890 ns)");
        assert_eq!(shown(3_600_000_000_001), "1 h (3,600,000,000,001 ns)");
    }

    #[test]
    fn axes_take_the_unit_of_the_field() {
        let name = |nanos| time_unit(Duration::from_nanos(nanos)).name;
        assert_eq!((name(347_000_000), name(5), name(16_000)), ("ms", "ns", "us"));
        assert_eq!((name(30_000_000_000), name(600_000_000_000)), ("s", "min"));
        assert_eq!(name(30 * 86_400_000_000_000), "d");
        assert_eq!((byte_unit(965_758_976).name, byte_unit(50_000_000).name), ("GB", "MB"));
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(
            ticks(0.0, 347.0, 8),
            (vec![0.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0][..7].into(), 0)
        );
        assert_eq!(ticks(0.0, 0.3, 3).1, 1);
        assert_eq!(ticks(5.0, 5.0, 8).0, [5.0]);
    }

    proptest! {
        #[test]
        fn ticks_are_never_many_and_never_outside(from in -1e9..1e9_f64, span in 1e-3..1e12_f64, wanted in 1_usize..20) {
            let (at, _) = ticks(from, from + span, wanted);
            prop_assert!(at.len() <= wanted + 2, "{at:?}");
            let slack = span * 1e-6;
            prop_assert!(at.iter().all(|&t| t >= from - slack && t <= from + span + slack));
        }

        #[test]
        fn grouping_loses_no_digit(number: u64) {
            prop_assert_eq!(grouped(number).replace(',', ""), number.to_string());
        }
    }
}

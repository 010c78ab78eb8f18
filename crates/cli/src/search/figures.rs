//! Values of an objective as a reader wants them: as many digits as count, errors in the unit of what they belong to.

use pipestep_engine::{Bytes, Duration};
use pipestep_report::Measure;
use pipestep_scenario::Objective;
use pipestep_step::Summary;

/// Units of time and how many nanoseconds they have.
const TIME_UNITS: [(&str, f64); 6] =
    [("d", 86_400e9), ("h", 3_600e9), ("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// What the best settings are called.
pub(crate) const fn superlative(objective: Objective) -> &'static str {
    match objective {
        Objective::StepTime => "shortest steps",
        Objective::JobTime => "shortest jobs",
        Objective::UsefulFraction => "highest useful fractions",
        Objective::SamplesPerSecond => "most useful samples a second",
        Objective::TokensPerSecond => "most useful tokens a second",
        Objective::CostPerSample => "cheapest samples",
    }
}

/// The heading of its column.
pub(crate) const fn column(objective: Objective) -> &'static str {
    match objective {
        Objective::StepTime => "makespan",
        Objective::JobTime => "wall time",
        Objective::UsefulFraction => "useful",
        Objective::SamplesPerSecond => "samples/s",
        Objective::TokensPerSecond => "tokens/s",
        Objective::CostPerSample => "per 1000 samples",
    }
}

/// Its axis in a picture.
pub(crate) const fn words(objective: Objective) -> &'static str {
    match objective {
        Objective::StepTime => "makespan",
        Objective::JobTime => "wall time of the job",
        Objective::UsefulFraction => "useful fraction of the job",
        Objective::SamplesPerSecond => "useful samples a second",
        Objective::TokensPerSecond => "useful tokens a second",
        Objective::CostPerSample => "cost of 1000 samples",
    }
}

/// What its numbers are.
pub(crate) const fn measure(objective: Objective) -> Measure {
    match objective {
        Objective::StepTime | Objective::JobTime => Measure::Time,
        Objective::UsefulFraction => Measure::Share,
        _ => Measure::Number,
    }
}

/// A value of the objective.
pub(crate) fn show(objective: Objective, value: f64) -> String {
    match measure(objective) {
        Measure::Time => Duration::from_nanos(value.round().max(0.0) as u64).to_string(),
        Measure::Share => format!("{:.2} %", 100.0 * value),
        _ => digits(value, 4),
    }
}

/// A difference of it, without its error.
pub(crate) fn show_difference(objective: Objective, value: f64) -> String {
    let (unit, size) = unit(objective, value);
    format!("{}{unit}", digits(value / size, 4))
}

/// A standard error: two digits say enough.
pub(crate) fn show_error(objective: Objective, error: f64) -> String {
    let (unit, size) = unit(objective, error);
    format!("{}{unit}", digits(error / size, 2))
}

/// A difference with its standard error, to as many decimals as the error has two digits.
pub(crate) fn with_error(objective: Objective, value: f64, error: f64) -> String {
    let (unit, size) = unit(objective, value.abs().max(error));
    let (value, error) = (value / size, error / size);
    let decimals = (1 - error.abs().log10().floor() as i32).clamp(0, 9) as usize;
    format!("{value:.decimals$}{unit} ± {error:.decimals$}{unit}")
}

/// The unit in which a value reads best, with the blank before it, and its size.
fn unit(objective: Objective, value: f64) -> (String, f64) {
    match measure(objective) {
        Measure::Time => {
            let found = TIME_UNITS.iter().find(|(_, size)| value.abs() >= *size).unwrap_or(&TIME_UNITS[5]);
            (format!(" {}", found.0), found.1)
        }
        Measure::Share => (" %".to_owned(), 0.01),
        _ => (String::new(), 1.0),
    }
}

/// So many digits that count, without zeros behind them.
pub(crate) fn digits(value: f64, count: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let decimals = (count - 1 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// An amount of a key in its unit.
pub(crate) fn show_amount(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Time if (1e9..1e14).contains(&value) => format!("{} s", digits(value / 1e9, 4)),
        Measure::Time => Duration::from_nanos(value.round() as u64).to_string(),
        Measure::Bytes => Bytes::new(value.round() as u64).to_string(),
        Measure::Share | Measure::Number | Measure::Count => digits(value, 4),
    }
}

/// The three parts of a makespan, in ns, which add up to it.
pub(crate) fn step_parts(summary: &Summary) -> [(&'static str, u64); 3] {
    let busiest = summary.ranks.iter().map(|rank| rank.busy.as_nanos()).max().unwrap_or(0);
    let (free, all) = (summary.zero_transfer_makespan.as_nanos(), summary.makespan.as_nanos());
    [
        ("work of the busiest rank", busiest),
        ("waiting of that rank", free.saturating_sub(busiest)),
        ("for transfers", all.saturating_sub(free)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_two_digits_and_the_unit_of_what_they_belong_to() {
        let job = |value, error| with_error(Objective::JobTime, value, error);
        assert_eq!(job(114_134e9, 1_414e9), "1.321 d ± 0.016 d");
        assert_eq!(job(470.117e9, 300.206e9), "470 s ± 300 s");
        assert_eq!(job(-36e9, 4_000e9), "-0.0 h ± 1.1 h");
        assert_eq!(with_error(Objective::UsefulFraction, 0.001_234, 0.000_05), "0.1234 % ± 0.0050 %");
        assert_eq!(with_error(Objective::SamplesPerSecond, 0.5456, 0.010_28), "0.546 ± 0.010");
    }

    #[test]
    fn values_have_the_digits_that_count() {
        assert_eq!(
            (digits(0.0, 4), digits(12_345.6, 4), digits(0.012_345, 2)),
            ("0".into(), "12346".into(), "0.012".into())
        );
        assert_eq!(show_error(Objective::JobTime, 456.557e9), "457 s");
        assert_eq!(show_difference(Objective::JobTime, 19_793e9), "5.498 h");
        assert_eq!(show_amount(Measure::Time, 955.5e9), "955.5 s");
        assert_eq!(show_amount(Measure::Time, 2e6), "2 ms");
    }
}

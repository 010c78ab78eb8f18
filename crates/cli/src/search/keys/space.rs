//! What a search over keys may try: every combination of the values of its keys and the shares of its devices.
//!
//! A key, and a split as a whole, is one [`Dimension`]; a setting makes one [`Choice`] of each.

use std::borrow::Cow;

use anyhow::{Result, bail};
use pipestep_report::Measure;
use pipestep_scenario::{Axis, Override, Split, Sweep};

use crate::sweep::{bare, number, places, short};

/// More settings than this are refused.
const MOST_SETTINGS: u64 = 200_000;

/// One value of a dimension.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// `KEY=VALUE` for each key that it sets.
    pub(crate) sets: Vec<String>,
    /// In words: `every 954 s`, `rollout 12, training 4`.
    pub(crate) label: String,
    /// As a number in base units (ns, bytes), if it is one.
    pub(crate) number: Option<f64>,
}

/// A setting: one choice of each dimension.
pub(crate) type Setting = Vec<Choice>;

/// The unit of a range, between whose values there are others.
#[derive(Clone, Debug, PartialEq)]
struct Unit {
    name: String,
    /// In base units.
    size: f64,
}

/// One thing that is varied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dimension {
    /// The dotted key, or what the first part of a split is called.
    pub(crate) name: String,
    /// What its numbers are; none if not all of its choices are numbers.
    pub(crate) measure: Option<Measure>,
    pub(crate) choices: Vec<Choice>,
    /// Whether it is one key, and not a split.
    pub(crate) is_key: bool,
    unit: Option<Unit>,
}

/// All dimensions.
#[derive(Clone, Debug)]
pub(crate) struct KeySpace {
    pub(crate) dimensions: Vec<Dimension>,
    sizes: Vec<u64>,
    /// How many settings there are.
    pub(crate) settings: u64,
}

impl KeySpace {
    /// What `vary` and `split` allow; `None` where there is nothing of either.
    ///
    /// # Errors
    /// Too many settings.
    pub(crate) fn new(vary: &Sweep, split: Option<&Split>) -> Result<Option<Self>> {
        let mut dimensions: Vec<Dimension> = vary.axes.iter().map(Dimension::of_axis).collect();
        dimensions.extend(split.map(Dimension::of_split).transpose()?);
        if dimensions.is_empty() {
            return Ok(None);
        }
        let sizes: Vec<u64> = dimensions.iter().map(|dimension| dimension.choices.len() as u64).collect();
        let product = sizes.iter().try_fold(1_u64, |all, &size| all.checked_mul(size));
        match product {
            Some(settings) if settings <= MOST_SETTINGS => Ok(Some(Self { dimensions, sizes, settings })),
            _ => bail!("more than {MOST_SETTINGS} settings: write fewer values in `[search]`"),
        }
    }

    /// The setting of a number, the last dimension fastest.
    pub(crate) fn setting(&self, number: u64) -> Setting {
        let places = places(&self.sizes, number);
        self.dimensions.iter().zip(places).map(|(one, place)| one.choices[place as usize].clone()).collect()
    }
}

/// `KEY=VALUE` for each key that a setting sets.
pub(crate) fn sets(setting: &[Choice]) -> Vec<String> {
    setting.iter().flat_map(|choice| choice.sets.iter().cloned()).collect()
}

/// The same as overrides.
pub(crate) fn overrides(setting: &[Choice]) -> impl Iterator<Item = Override> {
    sets(setting).into_iter().map(|set| Override::from(set, "search"))
}

/// What a setting is called.
pub(crate) fn name(setting: &[Choice]) -> String {
    let labels: Vec<&str> = setting.iter().map(|choice| choice.label.as_str()).collect();
    labels.join(", ")
}

impl Dimension {
    fn of_axis(axis: &Axis) -> Self {
        let short = short(&axis.key);
        let read: Vec<Option<(f64, Measure)>> =
            axis.values.iter().map(|value| number(bare(&value))).collect();
        let measures: Option<Vec<Measure>> =
            read.iter().map(|read| read.map(|(_, measure)| measure)).collect();
        let measure = measures.filter(|all| all.windows(2).all(|pair| pair[0] == pair[1]));
        let measure = measure.and_then(|all| all.first().copied());
        let choice = |(value, read): (Cow<'_, str>, Option<(f64, Measure)>)| {
            let value = value.as_ref();
            let shown = bare(value);
            let is_plain = measure.is_none() && !matches!(shown, "true" | "false");
            // Amounts and words need no inner quotes, which are a nuisance in a shell.
            let is_amount = matches!(read, Some((_, measure)) if measure != Measure::Number);
            let is_word = |text: &str| {
                let letters = |letter: char| letter.is_ascii_alphabetic() || letter == '-';
                text.starts_with(|c: char| c.is_ascii_alphabetic())
                    && text.chars().all(letters)
                    && !matches!(text, "true" | "false" | "inf" | "nan")
            };
            let is_bare = is_amount || is_word(shown);
            Choice {
                sets: vec![format!("{}={}", axis.key, if is_bare { shown } else { value })],
                label: if is_plain { shown.to_owned() } else { format!("{short} {shown}") },
                number: read.filter(|_| measure.is_some()).map(|(number, _)| number),
            }
        };
        let choices: Vec<Choice> = axis.values.iter().zip(read).map(choice).collect();
        let unit = axis.values.get(0).zip(choices.first().and_then(|choice| choice.number));
        let unit = unit
            .and_then(|(value, number)| Unit::of(bare(&value), number))
            .filter(|_| axis.values.is_range());
        Self { name: axis.key.clone(), measure, choices, is_key: true, unit }
    }

    fn of_split(split: &Split) -> Result<Self> {
        let mut all = Vec::new();
        share_out(split.devices / split.by, split.parts.len(), &mut Vec::new(), &mut all)?;
        let choice = |shares: Vec<u32>| {
            let devices = || shares.iter().map(|&share| share * split.by);
            let parts = || split.parts.iter().zip(devices());
            let sets = parts().flat_map(|(part, devices)| {
                part.each.iter().map(move |(key, each)| {
                    let (numerator, denominator) = (u64::from(devices) * each.numerator, each.denominator);
                    format!("{key}={}", quotient(numerator, denominator))
                })
            });
            let labels: Vec<String> =
                parts().map(|(part, devices)| format!("{} {devices}", part.name)).collect();
            Choice {
                sets: sets.collect(),
                label: labels.join(" + "),
                number: devices().next().map(f64::from),
            }
        };
        let first = split.parts.first().map_or("", |part| part.name.as_str());
        Ok(Self {
            name: format!("devices for {first}, of {}", split.devices),
            measure: Some(Measure::Number),
            choices: all.into_iter().map(choice).collect(),
            is_key: false,
            unit: None,
        })
    }

    /// Whether there are further values between its own.
    pub(crate) fn is_continuous(&self) -> bool {
        self.unit.is_some()
    }

    /// The choice nearest to a number of base units, to four digits in the unit of the range.
    pub(crate) fn at(&self, number: f64) -> Option<Choice> {
        let unit = self.unit.as_ref()?;
        let amount = number / unit.size;
        if !amount.is_finite() || amount <= 0.0 {
            return None;
        }
        let decimals = (3 - amount.log10().floor() as i32).max(0) as usize;
        let text = format!("{amount:.decimals$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        let shown = format!("{text} {}", unit.name);
        let (number, _) = crate::sweep::number(&shown)?;
        Some(Choice {
            sets: vec![format!("{}={shown}", self.name)],
            label: format!("{} {shown}", short(&self.name)),
            number: Some(number),
        })
    }
}

impl Unit {
    /// That of an amount with a unit; none of a bare number.
    fn of(value: &str, number: f64) -> Option<Self> {
        let at = value.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let amount: f64 = value[..at].parse().ok()?;
        (amount > 0.0).then(|| Self { name: value[at..].trim().to_owned(), size: number / amount })
    }
}

/// Every way to give `parts` parts one or more of `left` each.
fn share_out(left: u32, parts: usize, so_far: &mut Vec<u32>, all: &mut Vec<Vec<u32>>) -> Result<()> {
    if all.len() as u64 > MOST_SETTINGS {
        bail!("more than {MOST_SETTINGS} ways to share the devices: raise `search.split.by`");
    }
    if parts == 1 {
        all.push(so_far.iter().copied().chain([left]).collect());
        return Ok(());
    }
    for share in 1..=left.saturating_sub(parts as u32 - 1) {
        so_far.push(share);
        share_out(left - share, parts - 1, so_far, all)?;
        so_far.pop();
    }
    Ok(())
}

/// A quotient as TOML: a whole number, a decimal where that is exact, a fraction in a string otherwise.
fn quotient(numerator: u64, denominator: u64) -> String {
    if numerator.is_multiple_of(denominator) {
        return (numerator / denominator).to_string();
    }
    let exact = (1..=6).find(|&digits| (numerator * 10_u64.pow(digits)).is_multiple_of(denominator));
    match exact {
        Some(digits) => {
            let digits = digits as usize;
            format!("{:.digits$}", numerator as f64 / denominator as f64)
        }
        None => format!("\"{numerator}/{denominator}\""),
    }
}

#[cfg(test)]
mod tests {
    use pipestep_scenario::SearchSpace;

    use super::*;

    fn space(vary: &[&str]) -> KeySpace {
        let axes = vary.iter().map(|text| Axis::vary(text).expect("it is right")).collect();
        KeySpace::new(&Sweep { axes }, None).expect("few").expect("some")
    }

    #[test]
    fn choices_have_words_and_numbers() {
        let space = space(&["checkpoint.every=300 s,10 min", "checkpoint.mode=sync,async"]);
        let names: Vec<String> = (0..space.settings).map(|number| name(&space.setting(number))).collect();
        assert_eq!(
            names,
            ["every 300 s, sync", "every 300 s, async", "every 10 min, sync", "every 10 min, async"]
        );
        assert_eq!(sets(&space.setting(2)), ["checkpoint.every=10 min", "checkpoint.mode=sync"]);
        assert_eq!(space.dimensions[0].choices[1].number, Some(600e9));
        assert_eq!((space.dimensions[0].is_continuous(), space.dimensions[1].measure), (false, None));
    }

    #[test]
    fn only_ranges_with_units_have_values_between() {
        let space = space(&["checkpoint.every=300 s..3000 s*2", "rl.batch=8..64*2"]);
        assert_eq!((space.dimensions[0].is_continuous(), space.dimensions[1].is_continuous()), (true, false));
        let between = space.dimensions[0].at(954.321_987e9).expect("a time");
        assert_eq!(
            (between.sets[0].as_str(), between.label.as_str()),
            ("checkpoint.every=954.3 s", "every 954.3 s")
        );
        assert_eq!(between.number, Some(954.3e9));
        assert_eq!(
            space.dimensions[0].at(12_345.6e9).map(|choice| choice.label),
            Some("every 12346 s".to_owned())
        );
        assert_eq!((space.dimensions[0].at(0.0), space.dimensions[1].at(9.0)), (None, None));
    }

    #[test]
    fn devices_are_shared_out_in_every_way() {
        let text = "[search.split]\ndevices = 8\nby = 2\nparts = [\n\
                    { name = \"rollout\", each = { \"rl.rollout.engines\" = 0.5 } },\n\
                    { name = \"training\", each = { \"rl.update.speed\" = \"1/3\", rl.prices.trainer = 0.3 } }]";
        let split = SearchSpace::read(text, "test.toml", &[]).expect("it is right").split;
        let space = KeySpace::new(&Sweep::default(), split.as_ref()).expect("few").expect("some");
        let all: Vec<Setting> = (0..space.settings).map(|number| space.setting(number)).collect();
        assert_eq!(
            all.iter().map(|one| name(one)).collect::<Vec<_>>(),
            ["rollout 2 + training 6", "rollout 4 + training 4", "rollout 6 + training 2"]
        );
        assert_eq!(sets(&all[0]), ["rl.rollout.engines=1", "rl.update.speed=2", "rl.prices.trainer=1.8"]);
        assert_eq!(sets(&all[1])[1], "rl.update.speed=\"4/3\"");
    }

    #[test]
    fn three_parts_share_too_and_too_many_ways_are_refused() {
        let mut all = Vec::new();
        share_out(4, 3, &mut Vec::new(), &mut all).expect("few");
        assert_eq!(all, [[1, 1, 2], [1, 2, 1], [2, 1, 1]]);
        let error = share_out(100_000, 3, &mut Vec::new(), &mut Vec::new()).expect_err("too many");
        assert!(error.to_string().contains("ways to share"), "{error}");
    }
}

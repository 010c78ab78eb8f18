//! Distributions as they are written: a plain value is always the same, a table names a family and its
//! parameters.
//!
//! `{ distribution = "weibull", mean = "7.9 h", shape = 0.7 }`. One reader serves times, tokens and factors;
//! each place says which families its world can draw from.

use std::marker::PhantomData;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Span};
use crate::read::{FromItem, Key, Place, Problems, Real, choose, join, read_key};
use crate::table::check_keys;
use crate::tree::{Item, Node, Table};

/// A family of distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Exponential,
    Weibull,
    Lognormal,
    Normal,
    Uniform,
    Pareto,
    Empirical,
    List,
}

impl Family {
    const fn word(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Weibull => "weibull",
            Self::Lognormal => "lognormal",
            Self::Normal => "normal",
            Self::Uniform => "uniform",
            Self::Pareto => "pareto",
            Self::Empirical => "empirical",
            Self::List => "list",
        }
    }

    /// Its parameters; where a family can be written in two ways, those of both.
    const fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Exponential => &["mean"],
            Self::Weibull => &["mean", "shape"],
            Self::Lognormal => &["mean", "variation", "median", "sigma"],
            Self::Normal => &["mean", "deviation"],
            Self::Uniform => &["low", "high"],
            Self::Pareto => &["minimum", "alpha"],
            Self::Empirical | Self::List => &["values", "file"],
        }
    }
}

/// The parameters that are plain numbers and not amounts of what is drawn.
const NUMBERS: [&str; 4] = ["shape", "variation", "sigma", "alpha"];

/// What is drawn somewhere: its amounts, and the families that can be written for it.
pub(crate) trait Drawn {
    /// What a draw is.
    type Amount: FromItem + Copy;
    /// The families that its world knows.
    const FAMILIES: &'static [Family];
    /// An amount in TOML.
    const EXAMPLE: &'static str;
    /// What an amount is, for errors about a line of a file.
    const EXPECTED: &'static str;
    /// The mean of a distribution that does not say it, if there is a usual one.
    const MEAN: Option<Self::Amount>;
    /// Whether draws can be cut off at a `cap`.
    const CAPPED: bool;

    /// An amount as a line of a file.
    fn parse(text: &str) -> Option<Self::Amount>;
}

/// Where the values of an empirical distribution or a list are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values<A> {
    /// In the scenario.
    Here(Vec<A>),
    /// In a file, one a line.
    File(String, Span),
}

/// A distribution as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape<A> {
    Fixed(A),
    Exponential {
        mean: A,
    },
    Weibull {
        mean: A,
        shape: f64,
    },
    /// By its mean and its deviation over its mean.
    LognormalMean {
        mean: A,
        variation: f64,
    },
    /// By its median and the deviation of its logarithm.
    LognormalMedian {
        median: A,
        sigma: f64,
    },
    Normal {
        mean: A,
        deviation: A,
    },
    Uniform {
        low: A,
        high: A,
    },
    Pareto {
        minimum: A,
        alpha: f64,
    },
    Empirical(Values<A>),
    List(Values<A>),
}

/// A distribution of what `D` says, with its cap.
pub(crate) struct Chance<D: Drawn> {
    pub shape: Shape<D::Amount>,
    pub cap: Option<D::Amount>,
    drawn: PhantomData<D>,
}

impl<D: Drawn> Chance<D> {
    fn of(shape: Shape<D::Amount>) -> Self {
        Self { shape, cap: None, drawn: PhantomData }
    }
}

impl<D: Drawn> FromItem for Chance<D> {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        match &item.node {
            Node::Table(table) => read_table::<D>(item, table, place, problems),
            Node::List(_) if D::FAMILIES.contains(&Family::List) => {
                let values = Vec::from_item(item, place, problems)?;
                if values.is_empty() {
                    problems.push(place.wrong(item, "at least one value"));
                    return None;
                }
                Some(Self::of(Shape::List(Values::Here(values))))
            }
            Node::Text(text) if D::FAMILIES.contains(&Family::Empirical) && names_a_file(text) => {
                let message = format!("`{}`: expected a value or a distribution, found a file", place.path);
                let help = format!("write `{{ distribution = \"empirical\", file = \"{text}\" }}`");
                problems.push(Diagnostic::new(item.span, message).help(help));
                None
            }
            _ => D::Amount::from_item(item, place, problems).map(|amount| Self::of(Shape::Fixed(amount))),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let amount = D::Amount::schema(generator);
        let mut families = Vec::new();
        for family in D::FAMILIES {
            let mut properties = Map::new();
            properties.insert("distribution".to_owned(), serde_json::json!({ "const": family.word() }));
            for &name in family.parameters() {
                let schema: Value = match name {
                    "values" => serde_json::json!({ "type": "array", "items": amount, "minItems": 1 }),
                    "file" => serde_json::json!({ "type": "string" }),
                    name if NUMBERS.contains(&name) => Real::schema(generator).into(),
                    _ => amount.clone().into(),
                };
                properties.insert(name.to_owned(), schema);
            }
            if D::CAPPED {
                properties.insert("cap".to_owned(), amount.clone().into());
            }
            families.push(serde_json::json!({
                "type": "object", "properties": properties, "required": ["distribution"],
                "additionalProperties": false
            }));
        }
        if D::FAMILIES.contains(&Family::List) {
            families.insert(0, serde_json::json!({ "type": "array", "items": amount, "minItems": 1 }));
        }
        families.insert(0, amount.into());
        json_schema!({ "anyOf": families })
    }

    fn list_keys(path: &str, keys: &mut Vec<String>) {
        keys.push(path.to_owned());
        let mut names = vec!["distribution"];
        names.extend(D::FAMILIES.iter().flat_map(|family| family.parameters().iter().copied()));
        if D::CAPPED {
            names.push("cap");
        }
        for (at, name) in names.iter().enumerate() {
            if !names[..at].contains(name) {
                keys.push(join(path, name));
            }
        }
    }
}

/// Whether a text looks like a file's name and not like an amount.
fn names_a_file(text: &str) -> bool {
    let extension = std::path::Path::new(text).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extension.chars().all(|letter| letter.is_ascii_alphabetic()))
}

fn read_table<D: Drawn>(
    item: &Item,
    table: &Table,
    place: &Place<'_>,
    problems: &mut Problems,
) -> Option<Chance<D>> {
    let words = D::FAMILIES.iter().map(|family| family.word());
    let Some(entry) = table.get("distribution") else {
        let message = format!("`{}`: a distribution needs `distribution`, its family", place.path);
        let words: Vec<String> = words.map(|word| format!("`\"{word}\"`")).collect();
        let help =
            format!("the families are {}; or write a plain value, as in `{}`", words.join(", "), D::EXAMPLE);
        problems.push(Diagnostic::new(item.span, message).help(help));
        return None;
    };
    let path = join(place.path, "distribution");
    let example = format!("\"{}\"", D::FAMILIES[0].word());
    let number = choose(&entry.item, &Place { path: &path, example: &example }, words, problems)?;
    let family = D::FAMILIES[number];
    let mut known: Vec<String> = vec!["distribution".to_owned()];
    known.extend(family.parameters().iter().map(|&name| name.to_owned()));
    if D::CAPPED {
        known.push("cap".to_owned());
    }
    let before = problems.len();
    check_keys(table, &known, place, problems);
    let mut reader = Reader::<D> { item, table, place, family, problems, drawn: PhantomData };
    let shape = reader.shape();
    let cap = match read_key::<D::Amount>(table, "cap", D::EXAMPLE, place, problems) {
        Key::Absent => None,
        Key::Broken => return None,
        Key::Given(cap, _) => Some(cap),
    };
    let shape = shape?;
    (problems.len() == before).then_some(Chance { shape, cap, drawn: PhantomData })
}

/// Reads the parameters of one family.
struct Reader<'r, 'p, D: Drawn> {
    item: &'r Item,
    table: &'r Table,
    place: &'r Place<'p>,
    family: Family,
    problems: &'r mut Problems,
    drawn: PhantomData<D>,
}

impl<D: Drawn> Reader<'_, '_, D> {
    fn shape(&mut self) -> Option<Shape<D::Amount>> {
        Some(match self.family {
            Family::Exponential => Shape::Exponential { mean: self.mean()? },
            Family::Weibull => {
                let (mean, shape) = (self.mean(), self.number("shape"));
                Shape::Weibull { mean: mean?, shape: shape? }
            }
            Family::Lognormal => return self.lognormal(),
            Family::Normal => {
                let (mean, deviation) = (self.mean(), self.amount("deviation"));
                Shape::Normal { mean: mean?, deviation: deviation? }
            }
            Family::Uniform => {
                let (low, high) = (self.amount("low"), self.amount("high"));
                Shape::Uniform { low: low?, high: high? }
            }
            Family::Pareto => {
                let (minimum, alpha) = (self.amount("minimum"), self.number("alpha"));
                Shape::Pareto { minimum: minimum?, alpha: alpha? }
            }
            Family::Empirical => Shape::Empirical(self.values()?),
            Family::List => Shape::List(self.values()?),
        })
    }

    fn lognormal(&mut self) -> Option<Shape<D::Amount>> {
        let has = |name| self.table.get(name).is_some();
        let by_median = has("median") || has("sigma");
        if by_median && (has("mean") || has("variation")) {
            let message = format!("`{}`: a lognormal has either a mean or a median", self.place.path);
            let help = "write `mean` and `variation` (deviation over mean), or `median` and `sigma` (deviation of \
                        the logarithm)";
            self.problems.push(Diagnostic::new(self.item.span, message).help(help));
            return None;
        }
        if by_median {
            let (median, sigma) = (self.amount("median"), self.number("sigma"));
            return Some(Shape::LognormalMedian { median: median?, sigma: sigma? });
        }
        let (mean, variation) = (self.mean(), self.number("variation"));
        Some(Shape::LognormalMean { mean: mean?, variation: variation? })
    }

    fn amount(&mut self, name: &str) -> Option<D::Amount> {
        self.needed(name, D::EXAMPLE)
    }

    fn mean(&mut self) -> Option<D::Amount> {
        match (self.table.get("mean"), D::MEAN) {
            (None, Some(usual)) => Some(usual),
            _ => self.amount("mean"),
        }
    }

    fn number(&mut self, name: &str) -> Option<f64> {
        self.needed::<Real>(name, "0.5").map(|number| number.0)
    }

    fn needed<T: FromItem>(&mut self, name: &str, example: &str) -> Option<T> {
        match read_key(self.table, name, example, self.place, self.problems) {
            Key::Given(value, _) => Some(value),
            Key::Broken => None,
            Key::Absent => {
                self.missing(&format!("`{name}`"), &format!("{name} = {example}"));
                None
            }
        }
    }

    fn missing(&mut self, what: &str, example: &str) {
        let message = format!("`{}`: the family \"{}\" needs {what}", self.place.path, self.family.word());
        self.problems.push(Diagnostic::new(self.item.span, message).help(format!("write `{example}`")));
    }

    /// The values of an empirical distribution or a list.
    fn values(&mut self) -> Option<Values<D::Amount>> {
        let example = format!("[{}]", D::EXAMPLE);
        let here: Key<Vec<D::Amount>> = read_key(self.table, "values", &example, self.place, self.problems);
        let file: Key<String> = read_key(self.table, "file", "\"lengths.txt\"", self.place, self.problems);
        match (here, file) {
            (Key::Given(values, span), Key::Absent) if values.is_empty() => {
                let message = format!("`{}.values`: expected at least one value", self.place.path);
                self.problems.push(Diagnostic::new(span, message));
                None
            }
            (Key::Given(values, _), Key::Absent) => Some(Values::Here(values)),
            (Key::Absent, Key::Given(name, span)) => Some(Values::File(name, span)),
            (Key::Given(..), Key::Given(_, span)) => {
                let message = format!("`{}`: `values` and `file` say the same twice", self.place.path);
                self.problems.push(Diagnostic::new(span, message).help("leave one of them out"));
                None
            }
            (Key::Absent, Key::Absent) => {
                self.missing("`values` or a `file`", &format!("values = {example}"));
                None
            }
            _ => None,
        }
    }
}

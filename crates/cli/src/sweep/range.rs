//! Values as they are typed after `--vary`: lists, and ranges of whole numbers.
//!
//! `LO..HI` counts in ones, `LO..HI:STEP` in steps, `LO..HI*F` multiplies; both ends belong to the range.

use anyhow::{Result, bail};

/// No key is given more values than this.
pub(crate) const MOST_VALUES: u64 = 1 << 20;

/// Splits a list at its commas, except those inside brackets and quotes, and counts out the ranges in it.
///
/// # Errors
/// What is wrong with it, in one line.
pub(crate) fn values(text: &str) -> Result<Vec<String>> {
    let mut values = Vec::new();
    for part in split(text) {
        let part = part.trim();
        if part.is_empty() {
            bail!("expected values with commas between them, found `{text}`");
        }
        match range(part)? {
            Some(numbers) => values.extend(numbers.iter().map(u64::to_string)),
            None => values.push(part.to_owned()),
        }
        if values.len() as u64 > MOST_VALUES {
            bail!("more than {MOST_VALUES} values");
        }
    }
    Ok(values)
}

/// The pieces between commas that stand outside of brackets, braces and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut pieces, mut from, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                pieces.push(&text[from..at]);
                from = at + 1;
            }
            (None, _) => {}
        }
    }
    pieces.push(&text[from..]);
    pieces
}

/// The numbers of a range, or `None` for a text that is none (a path may have two dots too).
fn range(text: &str) -> Result<Option<Vec<u64>>> {
    let Some((low, rest)) = text.split_once("..") else { return Ok(None) };
    let Ok(low) = low.trim().parse::<u64>() else { return Ok(None) };
    let number = |text: &str| match text.trim().parse::<u64>() {
        Ok(number) => Ok(number),
        Err(_) => bail!("expected a range such as `1..64`, `1..64:2` or `1..1024*2`, found `{text}`"),
    };
    let (high, next): (u64, Next) = match (rest.split_once(':'), rest.split_once('*')) {
        (Some((high, step)), _) => (number(high)?, Next::Plus(number(step)?)),
        (None, Some((high, factor))) => (number(high)?, Next::Times(number(factor)?)),
        (None, None) => (number(rest)?, Next::Plus(1)),
    };
    match next {
        _ if low > high => bail!("the range `{text}` is empty: write its lower end first"),
        Next::Plus(0) => bail!("the range `{text}` never moves: its step is 0"),
        Next::Times(0 | 1) => bail!("the range `{text}` never grows: its factor must be at least 2"),
        Next::Times(_) if low == 0 => bail!("the range `{text}` never grows: it begins at 0"),
        Next::Plus(step) if (high - low) / step >= MOST_VALUES => {
            bail!("the range `{text}` has more than {MOST_VALUES} values")
        }
        _ => {}
    }
    let following = |&now: &u64| {
        let next = match next {
            Next::Plus(step) => now.checked_add(step),
            Next::Times(factor) => now.checked_mul(factor),
        };
        next.filter(|&next| next <= high)
    };
    Ok(Some(std::iter::successors(Some(low), following).collect()))
}

/// How a range goes on.
#[derive(Clone, Copy)]
enum Next {
    Plus(u64),
    Times(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        assert_eq!(values(text).expect(text), expect, "{text}");
    }

    #[test]
    fn lists_and_ranges_mix() {
        check("1,2, 8", &["1", "2", "8"]);
        check("1..4", &["1", "2", "3", "4"]);
        check("1..6:2,9", &["1", "3", "5", "9"]);
        check("1..20*3", &["1", "3", "9"]);
        check("7..7", &["7"]);
        check("1f1b,zb-h1", &["1f1b", "zb-h1"]);
        check("[9, 9],[10,8]", &["[9, 9]", "[10,8]"]);
        check("\"a,b\",c", &["\"a,b\"", "c"]);
        check("../a.csv", &["../a.csv"]);
        check(&format!("1..{}*2", u64::MAX), &(0..64).map(|i| (1_u64 << i).to_string()).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_range_is_refused_with_the_reason() {
        for (text, said) in [
            ("1..", "expected a range"),
            ("1..x", "expected a range"),
            ("8..1", "is empty"),
            ("1..8:0", "never moves"),
            ("1..8*1", "never grows"),
            ("0..8*2", "begins at 0"),
            ("1,,2", "with commas between them"),
            ("0..99999999", "more than"),
        ] {
            let error = values(text).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}

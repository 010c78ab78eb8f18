//! Text for the terminal, in no more columns than it has.

/// No line of text for the terminal is longer than this.
pub const COLUMNS: usize = 100;
/// Where a value stands behind its name.
const INDENT: usize = 19;

/// A line, cut at the last column that it may have.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    line.chars().take(columns - 1).chain(['…']).collect()
}

/// `name   value`, the value broken between words where the line would be too long.
pub(crate) fn wrapped(name: &str, value: &str) -> String {
    broken(&format!("{name:INDENT$}"), INDENT, value)
}

/// A paragraph, its later lines indented.
pub(crate) fn paragraph(text: &str) -> String {
    broken("", 4, text)
}

/// A text in lines of at most `columns`, broken between words; a word that is longer has a line to itself. A number
/// stays with its unit.
pub fn folded(text: &str, columns: usize) -> Vec<String> {
    folded_behind(text, columns, columns)
}

/// The same with another width of the first line.
fn folded_behind(text: &str, first: usize, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        let room = if lines.len() <= 1 { first } else { columns };
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.extend([" ", word.as_str()]);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// A start and a text behind it, every line in the columns that there are.
fn broken(start: &str, indent: usize, text: &str) -> String {
    let room = |taken: usize| COLUMNS.saturating_sub(taken);
    let lines = folded_behind(text, room(start.chars().count()), room(indent));
    let all = start.to_owned() + &lines.join(&format!("\n{}", " ".repeat(indent)));
    all.lines().map(|line| cut(line, COLUMNS) + "\n").collect()
}

/// The words of a text, a number and its unit being one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if number.ends_with(|c: char| c.is_ascii_digit()) && is_unit(word) => {
                number.extend([" ", word]);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Whether a word is a unit, of a rate too, with or without the signs of its sentence.
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 17] = [
        "ns", "us", "ms", "s", "min", "h", "d", "%", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB",
    ];
    let bare = word.trim_matches(|c: char| !c.is_alphabetic() && c != '%');
    UNITS.contains(&bare.strip_suffix("/s").unwrap_or(bare))
}

/// Fails unless every line fits and none ends in a space.
#[cfg(test)]
pub(crate) fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= COLUMNS, "{} columns: {line}", line.chars().count());
        assert_eq!(line, line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_not_before_a_unit() {
        let words = ["word"; 15].join(" ");
        let text = wrapped("name", &format!("{words} 1,234 B (1.23 kB), 30.6 % and 8 ms"));
        assert_fits(&text);
        let indent = " ".repeat(19);
        let first = format!("name               {words}");
        assert!(first.chars().count() + " 1,234".len() <= COLUMNS, "the number alone would fit");
        assert_eq!(text, format!("{first}\n{indent}1,234 B (1.23 kB), 30.6 % and 8 ms\n"));
    }

    #[test]
    fn folding_keeps_numbers_with_units_and_rates() {
        assert_eq!(folded("at 7 GB/s, for 10 ms", 12), ["at 7 GB/s,", "for 10 ms"]);
        assert_eq!(folded("at 7 GB/s, for 10 ms", 10), ["at 7 GB/s,", "for 10 ms"]);
        assert_eq!(folded("takes 10 ms", 8), ["takes", "10 ms"]);
        assert_eq!(folded("a longer-than-that b", 6), ["a", "longer-than-that", "b"]);
        assert!(folded(" ", 6).is_empty());
    }

    #[test]
    fn a_word_longer_than_a_line_is_cut() {
        let text = paragraph(&format!("short {} short", "x".repeat(200)));
        assert_fits(&text);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains('…'));
    }
}

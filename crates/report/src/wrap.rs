//! Text for the terminal, in no more columns than it has.

/// No line is longer than this.
pub(crate) const COLUMNS: usize = 100;
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
    broken(format!("{name:INDENT$}"), INDENT, value)
}

/// A paragraph, its later lines indented.
pub(crate) fn paragraph(text: &str) -> String {
    broken(String::new(), 4, text)
}

/// A start and a text, broken between words. A number stays with its unit.
fn broken(start: String, indent: usize, text: &str) -> String {
    let mut done = String::new();
    let (mut line, mut is_empty) = (start, true);
    for word in words(text) {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            done.extend([cut(&line, COLUMNS).as_str(), "\n"]);
            (line, is_empty) = (" ".repeat(indent), true);
        }
        line.extend([if is_empty { "" } else { " " }, word.as_str()]);
        is_empty = false;
    }
    done + &cut(&line, COLUMNS) + "\n"
}

/// The words of a text, a number and its unit being one.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 13] = ["ns", "us", "ms", "s", "min", "h", "d", "%", "B", "kB", "MB", "GB", "TB"];
    let is_unit = |word: &str| UNITS.contains(&word.trim_matches(|c: char| !c.is_alphabetic() && c != '%'));
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(number) if number.ends_with(|c: char| c.is_ascii_digit()) && is_unit(word) => {
                number.extend([" ", word]);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
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
    fn a_word_longer_than_a_line_is_cut() {
        let text = paragraph(&format!("short {} short", "x".repeat(200)));
        assert_fits(&text);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains('…'));
    }
}

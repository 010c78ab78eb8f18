//! The shapes of what a search prints: tables with numbers to the right and words to the left, paragraphs, and points
//! of a list. No line is longer than a terminal.

use std::fmt::Write as _;

use pipestep_report::{COLUMNS, folded};

/// The last column is not made narrower than this.
const NARROWEST: usize = 24;

/// Rows under their headings, the columns `words` to the left and the others to the right. A column that is empty
/// everywhere is left out; the last one goes on in further lines where it is too long.
pub(super) fn table(headings: &[&str], words: &[usize], rows: &[Vec<String>]) -> String {
    let headings: Vec<String> = headings.iter().map(ToString::to_string).collect();
    let all = || std::iter::once(&headings).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let Some(last) = headings.len().checked_sub(1) else { return String::new() };
    let widths: Vec<usize> = (0..last).map(width).collect();
    let before: usize = 2 + widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>();
    let room = COLUMNS.saturating_sub(before).max(NARROWEST);
    let mut text = String::new();
    for row in all() {
        let mut line = String::from("  ");
        for (column, (cell, &width)) in
            row.iter().zip(&widths).enumerate().filter(|(_, (_, width))| **width > 0)
        {
            let _ = if words.contains(&column) {
                write!(line, "{cell:<width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        let parts = folded(&row[last], room);
        for (place, part) in parts.iter().enumerate() {
            let start = if place == 0 { line.as_str() } else { &" ".repeat(before) };
            let _ = writeln!(text, "{}", format!("{start}{part}").trim_end());
        }
        if parts.is_empty() {
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// A paragraph.
pub(super) fn paragraph(text: &str) -> String {
    folded(text, COLUMNS).join("\n") + "\n"
}

/// A point of a list.
pub(super) fn bullet(text: &str) -> String {
    format!("  * {}\n", folded(text, COLUMNS - 4).join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_go_on_below_and_empty_columns_go() {
        let row = |name: &str| vec!["1 ms".to_owned(), String::new(), name.to_owned()];
        let text = table(&["time", "", "setting"], &[1, 2], &[row("short"), row(&"many words ".repeat(20))]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[1]), ("  time  setting", "  1 ms  short"));
        assert!(lines.len() > 4 && lines.iter().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(lines[3].starts_with("        words many"), "{text}");
    }
}

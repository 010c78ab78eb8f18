//! The one font of all pictures, embedded: what is drawn must not depend on the fonts of a machine.

use std::sync::OnceLock;

use plotters::style::{FontStyle, IntoFont, register_font};

use crate::picture::SCALE;

/// The family under which the embedded font is known, and which an SVG names for its viewer to fill.
pub(crate) const FAMILY: &str = "sans-serif";

/// Gives plotters the embedded font, once; false if it cannot be read.
pub(crate) fn load_font() -> bool {
    static LOADED: OnceLock<bool> = OnceLock::new();
    let load = || register_font(FAMILY, FontStyle::Normal, notosans::REGULAR_TTF).is_ok();
    *LOADED.get_or_init(load)
}

/// How long a line of text is, in points.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    if !load_font() {
        return 0.6 * size * text.chars().count() as f64;
    }
    let font = (FAMILY, size * SCALE).into_font();
    font.box_size(text).map_or(0.0, |(width, _)| f64::from(width) / SCALE)
}

/// The text, cut at the end with an ellipsis where it is longer than `room`.
pub(crate) fn shortened(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    while !kept.is_empty() {
        kept.pop();
        let cut = kept.iter().collect::<String>().trim_end().to_owned() + "…";
        if text_width(&cut, size) <= room {
            return cut;
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_to_their_room() {
        let cut = shortened("a name that nobody can read in a hurry", 12.0, 100.0);
        assert!(cut.ends_with('…') && text_width(&cut, 12.0) <= 100.0, "{cut}");
        assert_eq!(shortened("short", 12.0, 100.0), "short");
    }
}

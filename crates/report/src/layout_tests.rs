//! What every picture must satisfy, whatever its size: labels stay inside and do not cover each other.

use crate::picture::{Picture, Shape, Text};

fn texts(picture: &Picture) -> Vec<&Text> {
    let shapes = picture.shapes().iter();
    shapes
        .filter_map(|shape| match shape {
            Shape::Text(text) if !text.words.is_empty() => Some(text),
            _ => None,
        })
        .collect()
}

/// The texts of a picture, in the order in which they were drawn.
pub(crate) fn words(picture: &Picture) -> Vec<&str> {
    texts(picture).into_iter().map(|text| text.words.as_str()).collect()
}

/// Panics if a label leaves the picture or two labels overlap, or a shape lies outside.
pub(crate) fn check_layout(picture: &Picture, what: &str) {
    let (width, height) = (f64::from(picture.size().0), f64::from(picture.size().1));
    let inside = |x: f64, y: f64| (-0.01..=width + 0.01).contains(&x) && (-0.01..=height + 0.01).contains(&y);
    for shape in picture.shapes() {
        let corners: Vec<(f64, f64)> = match shape {
            Shape::Box { corners: [left, top, right, bottom], .. } => vec![(*left, *top), (*right, *bottom)],
            Shape::Path { points, .. } => points.clone(),
            Shape::Dot { centre, .. } => vec![*centre],
            Shape::Text(text) => {
                let [left, top, right, bottom] = text.extent();
                vec![(left, top), (right, bottom)]
            }
        };
        assert!(corners.iter().all(|&(x, y)| inside(x, y)), "{what}: outside: {shape:?}");
    }
    let texts = texts(picture);
    for (index, one) in texts.iter().enumerate() {
        for other in &texts[..index] {
            let ([l1, t1, r1, b1], [l2, t2, r2, b2]) = (one.extent(), other.extent());
            let overlap = l1 < r2 && l2 < r1 && t1 < b2 && t2 < b1;
            assert!(
                !overlap,
                "{what}: `{}` at {:?} covers `{}` at {:?}",
                one.words, one.at, other.words, other.at
            );
        }
    }
}

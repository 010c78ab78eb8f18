//! A picture as a list of shapes in points, and its two encodings: PNG and SVG, both drawn by plotters.
//!
//! The charts of this crate put shapes into a [`Picture`]; only this file knows plotters. So the same shapes
//! become pixels and vectors, tests can ask whether a label leaves the picture or covers another one, and
//! nothing half-drawn can reach a file: encoding returns bytes or an error.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::font::{FAMILY, load_font};
use crate::stroke::Coverage;
use crate::theme::Colour;

/// Device pixels per point: text and bars stay sharp on dense screens and in print.
pub(crate) const SCALE: f64 = 2.0;
/// The largest side of a picture in points.
const LARGEST_SIDE: u32 = 8_000;

/// Why a picture could not be encoded.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// Larger than any picture of this crate should be.
    #[error("a picture of {width} x {height} points is too large: at most {LARGEST_SIDE} on a side")]
    Size {
        /// Points across.
        width: u32,
        /// Points down.
        height: u32,
    },
    /// The embedded font cannot be read.
    #[error("the embedded font cannot be read")]
    Font,
    /// A shape could not be drawn.
    #[error("drawing failed: {0}")]
    Draw(String),
    /// The pixels could not be encoded.
    #[error("encoding the PNG failed: {0}")]
    Png(#[from] png::EncodingError),
}

/// Which point of a text its position names, across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Across {
    Left,
    Middle,
    Right,
}

/// One shape; later ones cover earlier ones.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A filled rectangle: left, top, right, bottom.
    Box { corners: [f64; 4], fill: Colour },
    /// Straight lines from point to point.
    Path { points: Vec<(f64, f64)>, width: f64, colour: Colour },
    /// A filled circle.
    Dot { centre: (f64, f64), radius: f64, fill: Colour },
    /// One line of text, centred on `at` vertically.
    Text(Text),
}

/// One line of text.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) words: String,
    pub(crate) at: (f64, f64),
    pub(crate) size: f64,
    pub(crate) across: Across,
    pub(crate) colour: Colour,
    /// Reads upwards, turned by 90 degrees.
    pub(crate) upwards: bool,
}

/// A finished drawing.
#[derive(Clone, Debug)]
pub struct Picture {
    width: u32,
    height: u32,
    shapes: Vec<Shape>,
}

impl Picture {
    /// An empty white picture, measured in points.
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    /// Points across and down. A PNG has twice as many pixels either way.
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// A filled rectangle between two corners.
    pub(crate) fn fill(&mut self, corners: [f64; 4], fill: Colour) {
        self.shapes.push(Shape::Box { corners, fill });
    }

    /// Straight lines from point to point.
    pub(crate) fn path(&mut self, points: Vec<(f64, f64)>, width: f64, colour: Colour) {
        self.shapes.push(Shape::Path { points, width, colour });
    }

    /// The outline of a rectangle.
    pub(crate) fn frame(&mut self, [left, top, right, bottom]: [f64; 4], width: f64, colour: Colour) {
        let corners = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        self.path(corners, width, colour);
    }

    /// A cross that reaches so far from its centre.
    pub(crate) fn cross(&mut self, (x, y): (f64, f64), reach: f64, width: f64, colour: Colour) {
        for slope in [reach, -reach] {
            self.path(vec![(x - reach, y - slope), (x + reach, y + slope)], width, colour);
        }
    }

    /// Straight lines from point to point, dashed.
    pub(crate) fn dashed(&mut self, points: &[(f64, f64)], width: f64, colour: Colour) {
        for dash in dashes(points, 5.0, 4.0) {
            self.path(dash, width, colour);
        }
    }

    /// The same in stripes of so many points, the colours in turn.
    pub(crate) fn striped(&mut self, points: &[(f64, f64)], stripe: f64, width: f64, colours: &[Colour]) {
        if let [colour] = colours {
            return self.path(points.to_vec(), width, *colour);
        }
        let Some((first, others)) = colours.split_first() else { return };
        // Whole in the first colour, so that the paper does not shine through where two stripes meet.
        self.path(points.to_vec(), width, *first);
        let stripes = dashes(points, stripe, 0.0);
        for (index, colour) in others.iter().enumerate() {
            for stripe in stripes.iter().skip(index + 1).step_by(colours.len()) {
                self.path(stripe.clone(), width, *colour);
            }
        }
    }

    /// A filled circle.
    pub(crate) fn dot(&mut self, centre: (f64, f64), radius: f64, fill: Colour) {
        self.shapes.push(Shape::Dot { centre, radius, fill });
    }

    /// A line of text in the usual direction.
    pub(crate) fn text(
        &mut self,
        text: impl Into<String>,
        at: (f64, f64),
        size: f64,
        across: Across,
        colour: Colour,
    ) {
        let words = text.into();
        self.shapes.push(Shape::Text(Text { words, at, size, across, colour, upwards: false }));
    }

    /// A line of text that reads upwards, centred on `at`.
    pub(crate) fn text_upwards(
        &mut self,
        text: impl Into<String>,
        at: (f64, f64),
        size: f64,
        colour: Colour,
    ) {
        let (words, across) = (text.into(), Across::Middle);
        self.shapes.push(Shape::Text(Text { words, at, size, across, colour, upwards: true }));
    }

    /// Everything drawn so far.
    #[cfg(test)]
    pub(crate) fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// The picture as a PNG file.
    ///
    /// # Errors
    /// [`PictureError`]; nothing of the file exists then.
    pub fn to_png(&self) -> Result<Vec<u8>, PictureError> {
        let (width, height) = self.device_size()?;
        let mut pixels = vec![255; width as usize * height as usize * 3];
        {
            let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
            self.draw(&area, Some(Coverage::new(width, height)))?;
        }
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        writer.finish()?;
        Ok(bytes)
    }

    /// The picture as an SVG file. Text is left to the viewer's sans-serif font.
    ///
    /// # Errors
    /// [`PictureError`]; nothing of the file exists then.
    pub fn to_svg(&self) -> Result<String, PictureError> {
        let (width, height) = self.device_size()?;
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
            area.fill(&WHITE).map_err(draw_error)?;
            self.draw(&area, None)?;
        }
        // Coordinates keep the fine grid of the view box; the picture shows at its size in points.
        let fine = format!("width=\"{width}\" height=\"{height}\" viewBox");
        let shown = format!("width=\"{}\" height=\"{}\" viewBox", self.width, self.height);
        Ok(svg.replacen(&fine, &shown, 1))
    }

    fn device_size(&self) -> Result<(u32, u32), PictureError> {
        let (width, height) = (self.width, self.height);
        let allowed = 1..=LARGEST_SIDE;
        if !allowed.contains(&width) || !allowed.contains(&height) {
            return Err(PictureError::Size { width, height });
        }
        if !load_font() {
            return Err(PictureError::Font);
        }
        Ok((width * SCALE as u32, height * SCALE as u32))
    }

    fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, plotters::coord::Shift>,
        mut pixels: Option<Coverage>,
    ) -> Result<(), PictureError> {
        for shape in &self.shapes {
            draw_shape(area, shape, pixels.as_mut())?;
        }
        area.present().map_err(draw_error)
    }
}

/// `pixels` is there where the area consists of them.
fn draw_shape<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    shape: &Shape,
    pixels: Option<&mut Coverage>,
) -> Result<(), PictureError> {
    let done = match shape {
        Shape::Box { corners: [left, top, right, bottom], fill } => {
            let (left, top) = device((*left, *top));
            let (right, bottom) = device((*right, *bottom));
            // What is narrower than a pixel still shows.
            let corner = (right.max(left + 1), bottom.max(top + 1));
            area.draw(&Rectangle::new([(left, top), corner], rgb(*fill).filled()))
        }
        Shape::Path { points, width, colour } => {
            let width = (width * SCALE).round().max(1.0) as u32;
            if let Some(pixels) = pixels {
                let points: Vec<_> = points.iter().map(|&(x, y)| (x * SCALE, y * SCALE)).collect();
                let mut covered = pixels.of_path(&points, width).into_iter();
                covered.try_for_each(|(pixel, share)| area.draw_pixel(pixel, &rgb(*colour).mix(share)))
            } else {
                let points: Vec<_> = points.iter().copied().map(device).collect();
                area.draw(&PathElement::new(points, rgb(*colour).stroke_width(width)))
            }
        }
        Shape::Dot { centre, radius, fill } => {
            let radius = (radius * SCALE).round() as i32;
            area.draw(&Circle::new(device(*centre), radius, rgb(*fill).filled()))
        }
        Shape::Text(text) => draw_text(area, text, pixels.is_some()),
    };
    done.map_err(draw_error)
}

fn draw_text<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    text: &Text,
    as_pixels: bool,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let across = match text.across {
        Across::Left => HPos::Left,
        Across::Middle => HPos::Center,
        Across::Right => HPos::Right,
    };
    let mut font = (FAMILY, text.size * SCALE).into_font();
    if text.upwards {
        font = font.transform(FontTransform::Rotate270);
    }
    // The bitmap backend centres a line that is a little higher than its letters.
    let lower = if as_pixels && !text.upwards { text.size * 0.07 } else { 0.0 };
    let at = device((text.at.0, text.at.1 + lower));
    let style = font.color(&rgb(text.colour)).pos(Pos::new(across, VPos::Center));
    area.draw(&plotters::element::Text::new(text.words.as_str(), at, style))
}

#[cfg(test)]
impl Text {
    /// The box that the text covers: left, top, right, bottom.
    pub(crate) fn extent(&self) -> [f64; 4] {
        let (long, thick) = (crate::font::text_width(&self.words, self.size), self.size * 0.8);
        let (x, y) = self.at;
        if self.upwards {
            return [x - thick / 2.0, y - long / 2.0, x + thick / 2.0, y + long / 2.0];
        }
        let left = match self.across {
            Across::Left => x,
            Across::Middle => x - long / 2.0,
            Across::Right => x - long,
        };
        [left, y - thick / 2.0, left + long, y + thick / 2.0]
    }
}

/// How far two points are apart. (A square root is the same on every machine; a hypotenuse need not be.)
pub(crate) fn distance(one: (f64, f64), other: (f64, f64)) -> f64 {
    let (x, y) = (one.0 - other.0, one.1 - other.1);
    (x * x + y * y).sqrt()
}

/// The pieces of a path that a dashed line shows.
fn dashes(points: &[(f64, f64)], on: f64, off: f64) -> Vec<Vec<(f64, f64)>> {
    let mut dashes = Vec::new();
    let mut dash = Vec::new();
    // How far it is to the next change between drawn and not drawn.
    let (mut drawn, mut left) = (true, on);
    for ends in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (ends[0], ends[1]);
        let length = distance((x0, y0), (x1, y1));
        let at = |done: f64| (x0 + (x1 - x0) * done / length, y0 + (y1 - y0) * done / length);
        let mut done = 0.0;
        while done < length {
            if drawn && dash.is_empty() {
                dash.push(at(done));
            }
            let step = left.min(length - done);
            done += step;
            left -= step;
            if drawn {
                dash.push(at(done));
            }
            if left <= 0.0 {
                if drawn {
                    dashes.push(std::mem::take(&mut dash));
                }
                drawn = !drawn;
                left = if drawn { on } else { off };
            }
        }
    }
    dashes.extend((dash.len() > 1).then_some(dash));
    dashes
}

fn device((x, y): (f64, f64)) -> (i32, i32) {
    ((x * SCALE).round() as i32, (y * SCALE).round() as i32)
}

fn rgb(Colour(red, green, blue): Colour) -> RGBColor {
    RGBColor(red, green, blue)
}

#[expect(clippy::needless_pass_by_value, reason = "what `map_err` hands over")]
fn draw_error<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> PictureError {
    PictureError::Draw(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::INK;

    #[test]
    fn a_picture_becomes_a_png_and_an_svg_of_its_size() {
        let mut picture = Picture::new(120, 40);
        picture.fill([10.0, 10.0, 60.0, 30.0], INK);
        picture.text("<7 µs & 8>", (90.0, 20.0), 12.0, Across::Middle, INK);
        let png = picture.to_png().unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (240, 80));
        let svg = picture.to_svg().unwrap();
        assert!(svg.starts_with("<svg width=\"120\" height=\"40\" viewBox=\"0 0 240 80\""), "{svg}");
        assert!(
            svg.contains("sans-serif") && svg.contains("&lt;7 µs &amp; 8&gt;") && svg.ends_with("</svg>\n")
        );
    }

    #[test]
    fn boxes_cover_the_pixels_they_name() {
        let mut picture = Picture::new(4, 4);
        picture.fill([1.0, 1.0, 3.0, 2.0], Colour(0, 0, 0));
        let png = picture.to_png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let black = pixels.chunks(3).filter(|pixel| pixel == &[0, 0, 0]).count();
        assert_eq!(black, 4 * 2);
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(matches!(Picture::new(0, 10).to_png(), Err(PictureError::Size { .. })));
        assert!(matches!(Picture::new(10, 100_000).to_svg(), Err(PictureError::Size { .. })));
    }

    #[test]
    fn dashes_follow_the_corners_of_a_path() {
        let path = [(0.0, 0.0), (3.0, 0.0), (3.0, 20.0)];
        let dashes = dashes(&path, 5.0, 4.0);
        assert_eq!(dashes[0], [(0.0, 0.0), (3.0, 0.0), (3.0, 2.0)]);
        assert_eq!(dashes[1], [(3.0, 6.0), (3.0, 11.0)]);
        assert_eq!(dashes.len(), 3);
    }
}

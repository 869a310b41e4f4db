//! Small pictures, drawn pixel by pixel and encoded as PNG.

mod font;

use std::path::Path;

use crate::files::failure::{Exit, Failure};
use crate::show::histogram::Histogram;
use crate::show::numbers;

pub(crate) type Color = [u8; 3];

const BLACK: Color = [32, 32, 32];
const GREY: Color = [150, 150, 150];
const LIGHT: Color = [226, 226, 226];
const BLUE: Color = [58, 110, 165];

/// The size of a point of the font, in pixels.
const SCALE: usize = 2;
/// The width of a character, in pixels.
pub(crate) const CHARACTER: usize = (font::WIDTH + 1) * SCALE;
/// The height of a character, in pixels.
pub(crate) const LINE: usize = font::HEIGHT * SCALE;

/// A picture. It is white at first.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Picture {
    pub(crate) fn new(width: usize, height: usize) -> Picture {
        Picture { width, height, pixels: vec![255; width * height * 3] }
    }

    /// Colours a pixel. Pixels outside the picture are ignored.
    pub(crate) fn set(&mut self, x: usize, y: usize, color: Color) {
        if x < self.width && y < self.height {
            let at = (y * self.width + x) * 3;
            if let Some(pixel) = self.pixels.get_mut(at..at + 3) {
                pixel.copy_from_slice(&color);
            }
        }
    }

    /// Fills a rectangle.
    pub(crate) fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, color: Color) {
        for row in y..y + height {
            for column in x..x + width {
                self.set(column, row, color);
            }
        }
    }

    /// Draws a line of one pixel around a rectangle.
    pub(crate) fn frame(&mut self, x: usize, y: usize, width: usize, height: usize) {
        let (left, top) = (x.saturating_sub(1), y.saturating_sub(1));
        for y in [top, y + height] {
            self.fill(left, y, width + 2, 1, GREY);
        }
        for x in [left, x + width] {
            self.fill(x, top, 1, height + 2, GREY);
        }
    }

    /// Draws a text of digits and the few letters used in numbers.
    pub(crate) fn write(&mut self, x: usize, y: usize, text: &str) {
        for (at, c) in text.chars().enumerate() {
            for (row, bits) in font::glyph(c).into_iter().enumerate() {
                for column in 0..font::WIDTH {
                    if bits >> (font::WIDTH - 1 - column) & 1 == 1 {
                        let x = x + at * CHARACTER + column * SCALE;
                        self.fill(x, y + row * SCALE, SCALE, SCALE, BLACK);
                    }
                }
            }
        }
    }

    /// Draws a text that ends before a column.
    pub(crate) fn write_before(&mut self, x: usize, y: usize, text: &str) {
        self.write(x.saturating_sub(width_of(text)), y, text);
    }

    /// Encodes the picture as PNG. The path is for error messages.
    pub(crate) fn encode(&self, path: &Path) -> Result<Vec<u8>, Failure> {
        let failed = |error: png::EncodingError| {
            Failure::new(path, format!("the picture cannot be encoded: {error}"), Exit::Unreadable)
        };
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(&self.pixels).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(file)
    }
}

/// Returns the width of a text, in pixels.
pub(crate) fn width_of(text: &str) -> usize {
    text.chars().count() * CHARACTER
}

const BAR_AREA: usize = 720;
const PLOT_HEIGHT: usize = 360;
const MARGIN: usize = 16;

/// Draws a histogram over an axis with five values, with counts at its side.
pub(crate) fn histogram(histogram: &Histogram) -> Picture {
    let bins = histogram.counts.len().max(1);
    let bar = (BAR_AREA / bins).max(1);
    let plot = bar * bins;
    let most = histogram.counts.iter().copied().max().unwrap_or(0);
    let label = numbers::grouped(most);
    let left = MARGIN + width_of(&label).max(CHARACTER) + 10;
    let last = numbers::short(histogram.high);
    let right = MARGIN + width_of(&last) / 2;
    let (width, height) = (left + plot + right, MARGIN + PLOT_HEIGHT + 14 + LINE + MARGIN);
    let mut picture = Picture::new(width, height);
    let bottom = MARGIN + PLOT_HEIGHT;
    for quarter in 0..=4 {
        let y = bottom - PLOT_HEIGHT * quarter / 4;
        picture.fill(left, y, plot, 1, LIGHT);
        let text = numbers::grouped(most * quarter as u64 / 4);
        picture.write_before(left - 10, y.saturating_sub(LINE / 2), &text);
    }
    for (at, count) in histogram.counts.iter().enumerate() {
        let share = if most == 0 { 0.0 } else { *count as f64 / most as f64 };
        let tall = ((share * PLOT_HEIGHT as f64).round() as usize).max(usize::from(*count > 0));
        let gap = usize::from(bar > 3);
        picture.fill(left + at * bar, bottom - tall, bar - gap, tall, BLUE);
    }
    picture.fill(left, bottom, plot, 2, GREY);
    for quarter in 0..=4 {
        let x = left + plot * quarter / 4;
        picture.fill(x.saturating_sub(1), bottom, 2, 7, GREY);
        let share = quarter as f64 / 4.0;
        let value = histogram.low * (1.0 - share) + histogram.high * share;
        let text = numbers::short(value);
        picture.write(x.saturating_sub(width_of(&text) / 2), bottom + 14, &text);
    }
    picture
}

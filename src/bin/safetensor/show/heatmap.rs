//! Heat maps: a matrix as a picture, in which the colour of each cell shows the mean of its values.

use std::ops::Range;

use safetensors_zero::FileTensor;

use crate::files::failure::Failure;
use crate::files::values::{self, Buffers};
use crate::show::numbers;
use crate::show::picture::{width_of, Color, Picture, CHARACTER, LINE};
use crate::show::progress::Progress;

/// The greatest number of cells in each direction.
const MOST: u64 = 1024;
/// The size of the picture of a small matrix, in pixels. Its cells are as large as fit.
const PIXELS: u64 = 640;
/// The greatest share of cells beyond the ends of the colour scale.
const OUTERMOST: f64 = 0.005;

/// The colour of NaN and infinity.
const PINK: Color = [255, 0, 200];

/// The means of blocks of values.
#[derive(Debug)]
pub(crate) struct HeatMap {
    /// Rows and columns of the matrix.
    matrix: (u64, u64),
    /// The index of the first row in the tensor.
    first_row: u64,
    /// Rows and columns of the cells.
    cells: (usize, usize),
    sums: Vec<f64>,
    counts: Vec<u64>,
    /// Cells with a value that is not finite.
    flagged: Vec<bool>,
}

impl HeatMap {
    /// Reads elements of a tensor as a matrix whose columns are the last dimension of `shape`.
    pub(crate) fn of(
        tensor: &FileTensor<'_>,
        elements: &Range<u64>,
        shape: &[u64],
    ) -> Result<HeatMap, Failure> {
        let columns = shape.last().copied().unwrap_or(1);
        let count = elements.end - elements.start;
        if count == 0 {
            let sentence = format!("tensor {:?}: it has no values to draw", tensor.name());
            return Err(Failure::invalid(tensor.path(), sentence));
        }
        let matrix = (count / columns.max(1), columns);
        let mut map = HeatMap::new(matrix);
        map.first_row = elements.start / columns.max(1);
        let bytes = values::byte_range(tensor.dtype(), elements);
        let progress = Progress::new(bytes.end - bytes.start);
        let mut buffers = Buffers::default();
        progress.for_each_piece(elements.clone(), &[tensor.dtype()], |piece| {
            map.add(piece.start - elements.start, buffers.read(tensor, &piece)?);
            Ok(())
        })?;
        Ok(map)
    }

    fn new(matrix: (u64, u64)) -> HeatMap {
        let cells = (matrix.0.min(MOST) as usize, matrix.1.min(MOST) as usize);
        let count = cells.0 * cells.1;
        HeatMap {
            matrix,
            first_row: 0,
            cells,
            sums: vec![0.0; count],
            counts: vec![0; count],
            flagged: vec![false; count],
        }
    }

    /// Adds consecutive values, beginning at the element `first` of the matrix.
    fn add(&mut self, first: u64, values: &[f64]) {
        let (rows, columns) = self.matrix;
        let (mut row, mut column) = (first / columns, first % columns);
        let cell_of = |at: u64, len: u64, cells: usize| {
            (u128::from(at) * cells as u128 / u128::from(len)) as usize
        };
        let mut line = cell_of(row, rows, self.cells.0) * self.cells.1;
        for value in values {
            let cell = line + cell_of(column, columns, self.cells.1);
            self.add_one(cell, *value);
            column += 1;
            if column == columns {
                column = 0;
                row += 1;
                line = cell_of(row, rows, self.cells.0) * self.cells.1;
            }
        }
    }

    fn add_one(&mut self, cell: usize, value: f64) {
        if !value.is_finite() {
            if let Some(flag) = self.flagged.get_mut(cell) {
                *flag = true;
            }
            return;
        }
        if let (Some(sum), Some(count)) = (self.sums.get_mut(cell), self.counts.get_mut(cell)) {
            *sum += value;
            *count += 1;
        }
    }

    fn mean(&self, cell: usize) -> Option<f64> {
        let (sum, count) = (self.sums.get(cell)?, self.counts.get(cell)?);
        (*count > 0 && !*self.flagged.get(cell)?).then(|| sum / *count as f64)
    }

    /// Returns the value at the end of the colour scale. At most half a percent of the cells is
    /// beyond.
    fn end(&self) -> f64 {
        let means = (0..self.sums.len()).filter_map(|cell| self.mean(cell));
        let mut sizes: Vec<f64> = means.map(f64::abs).collect();
        sizes.sort_by(f64::total_cmp);
        let beyond = (sizes.len() as f64 * OUTERMOST) as usize;
        let end = sizes.iter().rev().nth(beyond).copied().unwrap_or(0.0);
        if end > 0.0 {
            end
        } else {
            sizes.last().copied().filter(|largest| *largest > 0.0).unwrap_or(1.0)
        }
    }

    /// Draws the matrix, with row and column numbers at its sides and the colour scale next to it.
    pub(crate) fn picture(&self) -> Picture {
        const MARGIN: usize = 16;
        const BAR: usize = 24;
        let (rows, columns) = self.cells;
        let size = (PIXELS / (rows.max(columns) as u64).max(1)).clamp(1, 64) as usize;
        let (wide, high) = (columns * size, rows * size);
        let first_row = numbers::grouped(self.first_row);
        let last_row = numbers::grouped(self.first_row + (self.matrix.0 - 1));
        let last_column = numbers::grouped(self.matrix.1 - 1);
        let left = MARGIN + width_of(&last_row) + 8;
        let top = MARGIN + LINE + 8;
        let end = self.end();
        let (low, high_label) = (numbers::short(-end), numbers::short(end));
        // The colour scale is tall enough for its three labels.
        let bar = high.max(8 * LINE);
        let bar_left = left + wide.max(width_of(&last_column) + 2 * CHARACTER) + 24;
        let width = bar_left + BAR + 8 + width_of(&low) + MARGIN;
        let mut picture = Picture::new(width, top + bar + MARGIN);
        for row in 0..rows {
            for column in 0..columns {
                let color =
                    self.mean(row * columns + column).map_or(PINK, |mean| color(mean / end));
                picture.fill(left + column * size, top + row * size, size, size, color);
            }
        }
        picture.frame(left, top, wide, high);
        picture.frame(bar_left, top, BAR, bar);
        picture.write(left, MARGIN, "0");
        let end_of_row = (left + wide).max(left + width_of(&last_column) + 2 * CHARACTER);
        if self.matrix.1 > 1 {
            picture.write_before(end_of_row, MARGIN, &last_column);
        }
        picture.write_before(left - 8, top, &first_row);
        if self.matrix.0 > 1 {
            picture.write_before(
                left - 8,
                (top + high).saturating_sub(LINE).max(top + LINE + 4),
                &last_row,
            );
        }
        for y in 0..bar {
            let share = 1.0 - 2.0 * y as f64 / (bar - 1) as f64;
            picture.fill(bar_left, top + y, BAR, 1, color(share));
        }
        let label = bar_left + BAR + 8;
        picture.write(label, top, &high_label);
        picture.write(label, top + (bar - LINE) / 2, "0");
        picture.write(label, top + bar - LINE, &low);
        picture
    }
}

/// Returns white for 0, red towards 1, blue towards -1, and dark colours at both ends.
fn color(share: f64) -> Color {
    const RED: [Color; 3] = [[255, 255, 255], [227, 96, 72], [103, 0, 31]];
    const BLUE: [Color; 3] = [[255, 255, 255], [67, 131, 190], [5, 30, 84]];
    let [near, middle, far] = if share < 0.0 { BLUE } else { RED };
    let size = share.abs().min(1.0) * 2.0;
    let (from, to, share) =
        if size < 1.0 { (near, middle, size) } else { (middle, far, size - 1.0) };
    let mut color = from;
    for (part, to) in color.iter_mut().zip(to) {
        *part = (f64::from(*part) * (1.0 - share) + f64::from(to) * share).round() as u8;
    }
    color
}

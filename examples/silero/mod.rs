//! Silero's voice-activity network (MIT), for 16 kHz: how likely a chunk of sound holds speech.
//!
//! Nothing here needs `std` or an allocator: the example `voice_activity` and the firmware in
//! `examples/firmware` are built of the same code. Weights come a piece at a time through
//! [`Weights`], so they may be in memory, in flash, or behind a bus; each is read once a chunk.
//!
//! The network: 512 samples, with the 64 before them and 64 reflected after them; a short-time
//! Fourier transform, written as a convolution, and its magnitudes; four convolutions, each with
//! ReLU; one step of an LSTM; ReLU, one row of weights, and the sigmoid.

pub mod weights;

use weights::{Tensor, Weights, PIECE};

/// Samples of a chunk.
pub const CHUNK: usize = 512;
/// Samples before a chunk that the network hears again.
const CONTEXT: usize = 64;
const HEARD: usize = CONTEXT + CHUNK;
const REFLECTED: usize = 64;

/// Frequencies of the transform, each of which has a real and an imaginary row.
const BINS: usize = 129;
/// The width of the LSTM.
const UNITS: usize = 128;
/// Frames of the transform; no layer has more places.
const FRAMES: usize = 4;

/// A convolution over time: each row of its weights is laid over the input at some places.
struct Layer {
    weight: Tensor,
    bias: Option<Tensor>,
    rows: usize,
    /// Elements of a row are `channels` times `taps`.
    channels: usize,
    taps: usize,
    stride: usize,
    /// Elements of one channel of the input, its padding included.
    width: usize,
}

impl Layer {
    const fn new(weight: Tensor, bias: Option<Tensor>, stride: usize, width: usize) -> Layer {
        let [rows, channels, taps] = weight.shape();
        Layer { weight, bias, rows, channels, taps, stride, width }
    }

    /// Elements of the whole input.
    const fn input(&self) -> usize {
        self.channels * self.width
    }

    /// Places at which a row is laid, and so elements of one channel of the output.
    const fn places(&self) -> usize {
        (self.width - self.taps) / self.stride + 1
    }

    /// Computes row after row, and gives each to `each`, with its number.
    fn run<W: Weights>(
        &self,
        weights: &mut W,
        input: &[f32],
        mut each: impl FnMut(usize, &[f32]),
    ) -> Result<(), W::Error> {
        let row_len = self.channels * self.taps;
        // Whole channels, if more than one fits.
        let piece_len = if self.taps < PIECE { PIECE - PIECE % self.taps } else { PIECE };
        for row in 0..self.rows {
            let mut sums = [0.0; FRAMES];
            let sums = &mut sums[..self.places()];
            if let Some(bias) = self.bias {
                sums.fill(weights.piece(bias, row, 1)?[0]);
            }
            for first in (0..row_len).step_by(piece_len) {
                let len = piece_len.min(row_len - first);
                let piece = weights.piece(self.weight, row * row_len + first, len)?;
                let (mut channel, mut tap) = (first / self.taps, first % self.taps);
                for taps in piece.chunks(self.taps) {
                    let heard = &input[channel * self.width + tap..][..self.width - tap];
                    for (place, sum) in sums.iter_mut().enumerate() {
                        let heard = &heard[place * self.stride..];
                        *sum += taps.iter().zip(heard).map(|(weight, x)| weight * x).sum::<f32>();
                    }
                    (channel, tap) = (channel + 1, 0);
                }
            }
            each(row, sums);
        }
        Ok(())
    }

    /// Computes all rows with ReLU into `out`, with `padding` zeros at both ends of each.
    fn relu<W: Weights>(
        &self,
        weights: &mut W,
        input: &[f32],
        out: &mut [f32],
        padding: usize,
    ) -> Result<(), W::Error> {
        let width = self.places() + 2 * padding;
        out.fill(0.0);
        self.run(weights, input, |row, values| {
            let places = &mut out[row * width + padding..][..values.len()];
            for (place, value) in places.iter_mut().zip(values) {
                *place = value.max(0.0);
            }
        })
    }
}

const TRANSFORM: Layer = Layer::new(Tensor::Stft, None, 128, HEARD + REFLECTED);
const CONV1: Layer = Layer::new(Tensor::Conv1, Some(Tensor::Conv1Bias), 1, FRAMES + 2);
const CONV2: Layer = Layer::new(Tensor::Conv2, Some(Tensor::Conv2Bias), 2, FRAMES + 2);
const CONV3: Layer = Layer::new(Tensor::Conv3, Some(Tensor::Conv3Bias), 2, 2 + 2);
const CONV4: Layer = Layer::new(Tensor::Conv4, Some(Tensor::Conv4Bias), 1, 1 + 2);
const LSTM_INPUT: Layer = Layer::new(Tensor::LstmInput, Some(Tensor::LstmInputBias), 1, 1);
const LSTM_STATE: Layer = Layer::new(Tensor::LstmState, Some(Tensor::LstmStateBias), 1, 1);
const LAST: Layer = Layer::new(Tensor::Last, Some(Tensor::LastBias), 1, 1);

/// What the network remembers between chunks, and room for what it computes: 10 KB.
pub struct Network {
    context: [f32; CONTEXT],
    /// The LSTM's output and its cell.
    state: [f32; UNITS],
    cell: [f32; UNITS],
    samples: [f32; TRANSFORM.input()],
    even: [f32; CONV1.input()],
    odd: [f32; CONV2.input()],
}

impl Network {
    /// A network that has heard nothing.
    pub const fn fresh() -> Network {
        Network {
            context: [0.0; CONTEXT],
            state: [0.0; UNITS],
            cell: [0.0; UNITS],
            samples: [0.0; TRANSFORM.input()],
            even: [0.0; CONV1.input()],
            odd: [0.0; CONV2.input()],
        }
    }

    /// The probability that the chunk holds speech. Chunks have to follow one another.
    pub fn hear<W: Weights>(
        &mut self,
        chunk: &[i16; CHUNK],
        weights: &mut W,
    ) -> Result<f32, W::Error> {
        self.take(chunk);
        self.magnitudes(weights)?;
        let Network { even, odd, .. } = self;
        CONV1.relu(weights, even, &mut odd[..CONV2.input()], 1)?;
        CONV2.relu(weights, odd, &mut even[..CONV3.input()], 1)?;
        CONV3.relu(weights, even, &mut odd[..CONV4.input()], 1)?;
        CONV4.relu(weights, odd, &mut even[..UNITS], 0)?;
        self.remember(weights)?;

        let Network { state, even, .. } = self;
        for (place, value) in even.iter_mut().zip(&*state) {
            *place = value.max(0.0);
        }
        let mut logit = 0.0;
        LAST.run(weights, even, |_, values| logit = values[0])?;
        Ok(sigmoid(logit))
    }

    /// Puts the samples together: those before, the chunk, and its end reflected.
    fn take(&mut self, chunk: &[i16; CHUNK]) {
        let (before, rest) = self.samples.split_at_mut(CONTEXT);
        before.copy_from_slice(&self.context);
        for (place, sample) in rest.iter_mut().zip(chunk) {
            *place = f32::from(*sample) / 32768.0;
        }
        let (heard, reflected) = self.samples.split_at_mut(HEARD);
        self.context.copy_from_slice(&heard[CHUNK..]);
        for (place, sample) in reflected.iter_mut().zip(heard.iter().rev().skip(1)) {
            *place = *sample;
        }
    }

    /// Transforms the samples into magnitudes, with a zero at both ends of each frequency.
    fn magnitudes<W: Weights>(&mut self, weights: &mut W) -> Result<(), W::Error> {
        let Network { samples, even, .. } = self;
        even.fill(0.0);
        TRANSFORM.run(weights, samples, |row, values| {
            // The real rows come first, then the imaginary ones.
            let bin = row % BINS;
            let places = &mut even[bin * CONV1.width + 1..][..FRAMES];
            for (place, value) in places.iter_mut().zip(values) {
                *place += value * value;
                if row >= BINS {
                    *place = libm::sqrtf(*place);
                }
            }
        })
    }

    /// One step of the LSTM, whose gates stand one after the other: input, forget, cell, output.
    fn remember<W: Weights>(&mut self, weights: &mut W) -> Result<(), W::Error> {
        let Network { state, cell, even, odd, .. } = self;
        let gates = &mut odd[..4 * UNITS];
        LSTM_INPUT.run(weights, even, |row, values| gates[row] = values[0])?;
        LSTM_STATE.run(weights, state, |row, values| gates[row] += values[0])?;
        for (unit, (state, cell)) in state.iter_mut().zip(cell).enumerate() {
            let gate = |number: usize| gates[number * UNITS + unit];
            *cell = sigmoid(gate(1)) * *cell + sigmoid(gate(0)) * libm::tanhf(gate(2));
            *state = sigmoid(gate(3)) * libm::tanhf(*cell);
        }
        Ok(())
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

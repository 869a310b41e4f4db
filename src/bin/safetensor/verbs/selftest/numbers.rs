//! Elements of every dtype, and the `f32` that each converts to.

use safetensors_zero::{dequant, Dtype};

/// An element, and the bits of the expected `f32`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) dtype: Dtype,
    /// The bytes of a few elements.
    pub(super) bytes: &'static [u8],
    /// The element's index.
    pub(super) at: u64,
    pub(super) value: &'static str,
    pub(super) bits: u32,
}

const fn sample(
    dtype: Dtype,
    bytes: &'static [u8],
    at: u64,
    value: &'static str,
    bits: u32,
) -> Sample {
    Sample { dtype, bytes, at, value, bits }
}

const NAN: u32 = f32::NAN.to_bits();

pub(super) const SAMPLES: &[Sample] = &[
    sample(Dtype::BOOL, &[0, 1, 2], 2, "2, which is true", 0x3f80_0000),
    sample(Dtype::F4, &[0x2f], 0, "-6, in the low nibble", 0xc0c0_0000),
    sample(Dtype::F4, &[0x1f], 1, "0.5, in the high nibble", 0x3f00_0000),
    sample(Dtype::F6_E2M3, &[0x1f, 0, 0], 0, "7.5", 0x40f0_0000),
    sample(Dtype::F6_E2M3, &[0, 0, 0x84], 3, "-0.125", 0xbe00_0000),
    sample(Dtype::F6_E3M2, &[0x1f, 0, 0], 0, "28", 0x41e0_0000),
    sample(Dtype::U8, &[255], 0, "255", 0x437f_0000),
    sample(Dtype::I8, &[0x80], 0, "-128", 0xc300_0000),
    sample(Dtype::F8_E5M2, &[0x01], 0, "2^-16, subnormal", 0x3780_0000),
    sample(Dtype::F8_E5M2, &[0x7c], 0, "infinity", 0x7f80_0000),
    sample(Dtype::F8_E4M3, &[0x7e], 0, "448", 0x43e0_0000),
    sample(Dtype::F8_E4M3, &[0x7f], 0, "NaN, where other dtypes have infinity", NAN),
    sample(Dtype::F8_E8M0, &[0x00], 0, "2^-127, subnormal", 0x0040_0000),
    sample(Dtype::F8_E8M0, &[0xff], 0, "NaN", NAN),
    sample(Dtype::F8_E4M3FNUZ, &[0x7f], 0, "240", 0x4370_0000),
    sample(Dtype::F8_E4M3FNUZ, &[0x80], 0, "NaN, where other dtypes have -0", NAN),
    sample(Dtype::F8_E5M2FNUZ, &[0x7f], 0, "57344", 0x4760_0000),
    sample(Dtype::F8_E5M2FNUZ, &[0x80], 0, "NaN, where other dtypes have -0", NAN),
    sample(Dtype::I16, &[0x00, 0x80], 0, "-32768", 0xc700_0000),
    sample(Dtype::U16, &[0xff, 0xff], 0, "65535", 0x477f_ff00),
    sample(Dtype::F16, &[0x01, 0x00], 0, "2^-24, subnormal", 0x3380_0000),
    sample(Dtype::F16, &[0xff, 0x7b], 0, "65504", 0x477f_e000),
    sample(Dtype::BF16, &[0x01, 0x80], 0, "a negative subnormal", 0x8001_0000),
    sample(Dtype::I32, &[0x01, 0, 0, 0x01], 0, "16777217, rounded to even", 0x4b80_0000),
    sample(Dtype::U32, &[0xff, 0xff, 0xff, 0xff], 0, "4294967295, rounded", 0x4f80_0000),
    sample(Dtype::F32, &[0x01, 0, 0, 0], 0, "the smallest subnormal", 0x0000_0001),
    sample(
        Dtype::F64,
        &[0, 0, 0, 0x10, 0, 0, 0xf0, 0x3f],
        0,
        "1 + 2^-24, rounded to even",
        0x3f80_0000,
    ),
    sample(Dtype::F64, &[0, 0, 0, 0, 0, 0, 0xf0, 0x47], 0, "2^128, infinite", 0x7f80_0000),
    sample(Dtype::I64, &[0, 0, 0, 0, 0, 0, 0, 0x80], 0, "-2^63", 0xdf00_0000),
    sample(
        Dtype::U64,
        &[1, 0, 0, 0, 0x80, 0, 0, 0x80],
        0,
        "2^63 + 2^39 + 1, rounded once",
        0x5f00_0001,
    ),
];

impl Sample {
    pub(super) fn what(&self) -> String {
        format!("{} {}", self.dtype, self.value)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let mut found = [0.0];
        dequant::dequant_range(self.dtype, self.bytes, self.at, &mut found)
            .map_err(|error| error.to_string())?;
        let [found] = found;
        let both_nan = found.is_nan() && f32::from_bits(self.bits).is_nan();
        if both_nan || found.to_bits() == self.bits {
            return Ok(());
        }
        Err(format!("{found:e}"))
    }
}

//! Code that the benches share: generated inputs, and tables of results.

pub mod process;
pub mod tables;

/// How a header is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// As the reference's writer does: no white space, in data order.
    Compact,
    /// The tensors in random order.
    Shuffled,
    /// Indented by two spaces, with each array element on its own line.
    Pretty,
    /// As Python's `json.dumps` does: a space after each comma and colon.
    Spaced,
    /// With the keys of each entry in alphabetical order, as MLX writes them.
    Sorted,
    /// With the first dot of each name as `\u002e`.
    Escaped,
    /// With every dot of each name as `\u002e`.
    AllEscaped,
}

const PARTS: [&str; 9] = [
    "input_layernorm",
    "mlp.down_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "post_attention_layernorm",
    "self_attn.k_proj",
    "self_attn.o_proj",
    "self_attn.q_proj",
    "self_attn.v_proj",
];

/// Returns a file with `tensors` BF16 tensors of shape [2, 2], named like those of a Llama model.
pub fn llama(tensors: usize, spelling: Spelling) -> Vec<u8> {
    let mut entries: Vec<String> = (0..tensors)
        .map(|i| {
            let name = format!("model.layers.{}.{}.weight", i / 9, PARTS[i % 9]);
            let (b, e) = (i * 8, i * 8 + 8);
            match spelling {
                Spelling::Compact | Spelling::Shuffled => format!(
                    r#""{name}":{{"dtype":"BF16","shape":[2,2],"data_offsets":[{b},{e}]}}"#
                ),
                Spelling::Sorted => format!(
                    r#""{name}":{{"data_offsets":[{b},{e}],"dtype":"BF16","shape":[2,2]}}"#
                ),
                Spelling::Spaced => format!(
                    r#" "{name}": {{"dtype": "BF16", "shape": [2, 2], "data_offsets": [{b}, {e}]}}"#
                ),
                Spelling::Pretty => {
                    let array = |a, b| format!("[\n      {a},\n      {b}\n    ]");
                    let (shape, offsets) = (array(2, 2), array(b, e));
                    format!(
                        "\n  \"{name}\": {{\n    \"dtype\": \"BF16\",\n    \"shape\": {shape},\n    \
                         \"data_offsets\": {offsets}\n  }}"
                    )
                }
                Spelling::Escaped | Spelling::AllEscaped => {
                    let dots = if spelling == Spelling::Escaped { 1 } else { usize::MAX };
                    let name = name.replacen('.', r"\u002e", dots);
                    format!(r#""{name}":{{"dtype":"BF16","shape":[2,2],"data_offsets":[{b},{e}]}}"#)
                }
            }
        })
        .collect();
    if spelling == Spelling::Shuffled {
        shuffle(&mut entries);
    }
    file(&format!("{{{}}}", entries.join(",")), tensors * 8)
}

/// Returns a file with the given header and `data_len` zero bytes of data.
pub fn file(header: &str, data_len: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + data_len, 0);
    file
}

/// Shuffles items into a fixed order that caches can't predict.
pub fn shuffle<T>(items: &mut [T]) {
    let mut state = 1_u64;
    for i in (1..items.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(i, (state >> 33) as usize % (i + 1));
    }
}

/// Returns the header's text.
pub fn header(file: &[u8]) -> &str {
    let len = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    std::str::from_utf8(&file[8..8 + len]).unwrap()
}

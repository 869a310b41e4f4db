//! The inputs of the benches, made anew each time.

/// A file with `tensors` BF16 tensors of shape [2, 2], named as those of a Llama, in compact JSON.
pub fn llama(tensors: usize) -> Vec<u8> {
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
    let names = (0..tensors).map(|i| format!("model.layers.{}.{}.weight", i / 9, PARTS[i % 9]));
    let entries: Vec<String> = names
        .enumerate()
        .map(|(i, name)| {
            let (begin, end) = (i * 8, i * 8 + 8);
            format!(r#""{name}":{{"dtype":"BF16","shape":[2,2],"data_offsets":[{begin},{end}]}}"#)
        })
        .collect();
    file(&format!("{{{}}}", entries.join(",")), tensors * 8)
}

/// The file with this header, and zero bytes of data.
pub fn file(header: &str, data_len: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + data_len, 0);
    file
}

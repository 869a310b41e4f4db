//! Builds files, valid or not, from header text and data.

/// Returns a file with the given header and data.
pub fn file(header: impl AsRef<[u8]>, data: &[u8]) -> Vec<u8> {
    let header = header.as_ref();
    [&(header.len() as u64).to_le_bytes(), header, data].concat()
}

/// Returns a file with the given header and `len` zero bytes of data.
pub fn zeros(header: impl AsRef<[u8]>, len: usize) -> Vec<u8> {
    file(header, &vec![0; len])
}

/// Returns the header entry of a U8 tensor of `len` bytes.
pub fn u8_entry(name: &str, begin: u64, len: u64) -> String {
    let end = begin + len;
    format!(r#""{name}":{{"dtype":"U8","shape":[{len}],"data_offsets":[{begin},{end}]}}"#)
}
